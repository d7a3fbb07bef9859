"""Objects that somebody could not take in.

Whatever the server accepted may reach a handler, an index or a scheduler, and a server may be
another one than ours, or older or newer. One object that is not understood must not end a
component, nor stop news of the others. It is set aside: logged once, counted while it lasts, and
taken in again when it changes. What its absence means is for whoever set it aside to decide.
"""

import logging
from collections import Counter
from collections.abc import Mapping

from allot.api import Object

from .cache import Key

log = logging.getLogger(__name__)


class SetAside:
    def __init__(self, reader: str) -> None:
        """`reader` is who could not take them in, for the log."""
        self._reader = reader
        self._known: dict[tuple[str, Key], str] = {}

    def add(self, what: str, object: Object, bug: Exception) -> None:
        """`what` is the kind of object, or which part of the reader failed on it."""
        key, said = (what, Key.of(object)), repr(bug)
        if self._known.get(key) != said:
            log.error(
                "%s cannot take in %s %s; it is set aside until it changes",
                self._reader,
                what,
                key[1],
                exc_info=bug,
            )
        self._known[key] = said

    def well(self, what: str, key: Key) -> None:
        """It reads well now, or is gone."""
        if self._known and self._known.pop((what, key), None) is not None:
            log.info("%s can take in %s %s again, or it is gone", self._reader, what, key)

    def __len__(self) -> int:
        return len(self._known)

    def counts(self) -> Mapping[str, int]:
        """How many there are, by what they are."""
        return Counter(what for what, _ in self._known)
