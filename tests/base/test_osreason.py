"""The operating system's reasons, as event loops pass them on."""

import errno
import socket
import ssl

import pytest

from allot.base import os_reason


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"),
            "Connection refused",
        ),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 101] no"),
            "Connection refused",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (
            ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
            "wrong version number",
        ),
        (OSError("something else"), "something else"),
    ],
)
def test_a_reason_has_words_and_no_numbers(failure, why):
    assert os_reason(failure) == why
