"""What a container leaves to be read when it has ended. Pure.

It writes to the file that `terminationMessagePath` names. With the policy FallbackToLogsOnError, one that
failed and has written nothing is spoken for by the end of its output. Both are cut, as a kubelet cuts them.
"""

FILE_BYTES_MAX, LOG_BYTES_MAX, LOG_LINES_MAX = 4096, 2048, 80
FALLBACK = "FallbackToLogsOnError"


def message(written: bytes, printed: bytes, policy: str, exit_code: int) -> str:
    """`printed` is the plain text of the output, or its end."""
    if written:
        return written[:FILE_BYTES_MAX].decode(errors="replace")
    if policy != FALLBACK or exit_code == 0:
        return ""
    tail = b"".join(printed.splitlines(keepends=True)[-LOG_LINES_MAX:])
    return tail[-LOG_BYTES_MAX:].decode(errors="replace")
