"""What a container leaves to be read."""

from allot.nodeagent.termination import FALLBACK, FILE_BYTES_MAX, LOG_BYTES_MAX, message


def test_what_it_wrote_is_told_and_cut():
    assert message(b"disk is full", b"log\n", "File", 1) == "disk is full"
    assert len(message(b"x" * 9000, b"", "File", 0)) == FILE_BYTES_MAX


def test_the_end_of_its_output_stands_in_only_if_it_failed_and_the_policy_says_so():
    assert message(b"", b"boom\n", FALLBACK, 1) == "boom\n"
    assert message(b"", b"boom\n", FALLBACK, 0) == ""
    assert message(b"", b"boom\n", "File", 1) == ""
    assert message(b"said", b"boom\n", FALLBACK, 1) == "said"


def test_of_a_long_output_the_last_lines_are_told():
    lines = b"".join(b"%d\n" % number for number in range(200))
    assert message(b"", lines, FALLBACK, 1).startswith("120\n")
    assert message(b"", b"y" * 5000, FALLBACK, 1) == "y" * LOG_BYTES_MAX


def test_bytes_that_are_no_text_are_no_hindrance():
    assert message(b"\xff\xfe", b"", "File", 0) == "��"
