"""The key file."""

import base64
import os

import pytest

from allot.store import BadKeys
from allot.store.sealed.keys import read_keys

ONE, TWO = (base64.b64encode(letter * 32).decode() for letter in (b"1", b"2"))


def written(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_every_line_is_a_key_and_the_order_counts(tmp_path):
    file = written(tmp_path / "keys", f"# since March\n{TWO}\n\n  {ONE}  \n")
    assert read_keys(file) == [b"2" * 32, b"1" * 32]


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "has no key"),
        ("# nothing\n", "has no key"),
        (f"{ONE}\nnot base64!\n", "line 2 is not base64"),
        (base64.b64encode(b"short").decode(), "line 1 is a key of 5 bytes: 32 are wanted"),
        (f"{ONE}\n{ONE}\n", "the same key twice"),
        ("x" * 100_000, "is no key file"),
        ("\n".join(base64.b64encode(bytes([n]) * 32).decode() for n in range(17)), "17 keys: at most 16"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path, text, says):
    with pytest.raises(BadKeys, match=says):
        read_keys(written(tmp_path / "keys", text))


def test_a_file_that_others_can_read_is_refused(tmp_path):
    with pytest.raises(BadKeys, match=r"others can read .*keys: make it 0600"):
        read_keys(written(tmp_path / "keys", ONE, 0o640))


def test_what_is_no_file_is_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_keys(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError) as wrong:
        read_keys(tmp_path)
    assert wrong.value.filename == str(tmp_path)  # it was the number of the open file
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(BadKeys, match="is not a regular file"):
        read_keys(tmp_path / "pipe")
