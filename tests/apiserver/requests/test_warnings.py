"""Warnings that every client can read."""

import http.client
import io

from allot.apiserver.requests.warnings import WARNINGS_BYTES_MAX, WARNINGS_MAX, warning_headers

CONFIGS = "/api/v1/namespaces/default/configmaps"


def test_few_are_shown_as_they_are():
    assert warning_headers([]) == ()
    assert warning_headers(['a "b" \\ c']) == (("Warning", '299 - "a \\"b\\" \\\\ c"'),)


def test_many_are_counted(api):
    made = api("POST", CONFIGS, {"metadata": {"name": "a"}, **{f"x{n:04}": 1 for n in range(5_000)}})
    assert len(made.warnings) == WARNINGS_MAX + 1
    assert made.warnings[0] == '299 - "unknown field \\"x0000\\""'
    assert made.warnings[-1] == f'299 - "{100 - WARNINGS_MAX} more warnings are not shown"'


def test_long_ones_are_cut(api):
    """A single one of 300 KB ended the connection of Python's clients."""
    made = api("POST", CONFIGS, {"metadata": {"name": "a"}, "x" * 15_000: 1, "y" * 15_000: {"z": 1}})
    assert made.status == 201
    assert len(made.warnings) == 2
    assert sum(map(len, made.warnings)) < WARNINGS_BYTES_MAX
    all_long = warning_headers(["ä" * 300_000] * 40)
    assert sum(len(text.encode()) for _, text in all_long) < WARNINGS_BYTES_MAX + 1000
    assert all_long[-1][1].endswith('more warnings are not shown"')


def test_no_text_makes_another_header():
    for _, text in warning_headers(["a\r\nSet-Cookie: x\x00\x85\u2028b"]):
        assert text == '299 - "a  Set-Cookie: x   b"'


def test_the_client_of_python_reads_them_all():
    lines = "".join(f"{name}: {text}\r\n" for name, text in warning_headers(["w" * 900] * 3_000))
    parsed = http.client.parse_headers(io.BytesIO(f"{lines}\r\n".encode()))
    assert len(parsed.get_all("Warning")) <= WARNINGS_MAX + 1
