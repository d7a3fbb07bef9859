"""Why the operating system said no, in its own words and without numbers."""

import os
import re
import ssl

_MARKS = re.compile(r"^\[[^]]*\] *| *\(_ssl\.c:\d+\)$")
_NUMBERED = re.compile(r"\[Errno (\d+)\]")


def os_reason(failure: OSError) -> str:
    """Of several failures, as when a host has several addresses, the first."""
    if isinstance(failure, ssl.SSLError):
        return _MARKS.sub("", failure.strerror or str(failure))
    if failure.errno is not None and failure.errno > 0:
        return os.strerror(failure.errno)  # event loops put their own words beside the number
    several = _NUMBERED.search(str(failure))
    if several is not None:
        return os.strerror(int(several[1]))
    return failure.strerror or str(failure)
