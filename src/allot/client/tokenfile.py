"""A bearer token in a file that somebody else rotates."""

from pathlib import Path

from allot.base import Clock

from .access import NOTHING, BadAccess, Credential

REREAD_S = 10.0


class TokenFile:
    """The file is read again every REREAD_S, and at once when the server refuses the token.

    A file that cannot be read leaves the last token in use: it may be in the middle
    of a rotation.
    """

    def __init__(self, path: Path, clock: Clock, always: Credential = NOTHING, *, fallback: str = "") -> None:
        self._path = path
        self._clock = clock
        self._always = always
        self._token = fallback
        self._read_at_s: float | None = None

    async def current(self) -> Credential:
        now_s = self._clock.monotonic_s()
        if self._read_at_s is None or now_s - self._read_at_s >= REREAD_S:
            self._read()
            self._read_at_s = now_s
        shown = Credential.token(self._token)
        return Credential((*shown.headers, *self._always.headers), self._always.certificate, self._always.key)

    async def refused(self) -> bool:
        before = self._token
        self._read()
        return self._token != before

    def _read(self) -> None:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as unreadable:
            if not self._token:
                raise BadAccess(f"token file {self._path}: {unreadable}") from unreadable
            return
        if token:
            self._token = token
