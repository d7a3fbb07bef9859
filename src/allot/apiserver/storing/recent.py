"""The objects that this server wrote last, with what they say decoded.

Whoever writes an object has it decoded in hand. The answer to the client, the watchers in the
same process and the next write of the same object want it decoded too, within moments: they
get this very object, and nobody reads the same bytes again. It is an opinion about speed only:
what is not here, or is here at another revision, is made from the bytes of the store.

Only a few are kept, in number and in bytes. Dictionaries take many times the memory of their
bytes, and each of them is one more thing for the garbage collector to look at; so an object that
is not recent any more goes on without them, whoever still has it.
"""

from allot.api import Fields, Object

KEPT_MAX = 4096
KEPT_BYTES_MAX = 12 << 20  # as they are stored


class Recent:
    def __init__(self, kept_max: int = KEPT_MAX, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_max = kept_max
        self._kept_bytes_max = kept_bytes_max
        self._bytes = 0
        self._objects: dict[str, Object] = {}  # by key, the longest unwritten first

    def written(self, key: str, stored: bytes, revision: int, fields: Fields) -> Object:
        """What has just been stored. `fields` belong to the object from now on: nobody changes them."""
        fields["metadata"]["resourceVersion"] = str(revision)
        written = Object(stored, revision, fields)
        if (before := self._objects.get(key)) is not None:
            self._forget(key, before)
        self._objects[key] = written
        self._bytes += len(stored)
        while len(self._objects) > self._kept_max or self._bytes > self._kept_bytes_max:
            oldest = next(iter(self._objects))
            if oldest == key:
                break  # whoever wrote it reads it next, however large it is
            self._forget(oldest, self._objects[oldest])
        return written

    def _forget(self, key: str, object: Object) -> None:
        del self._objects[key]
        self._bytes -= len(object.stored)
        object.forget_fields()

    def at(self, key: str, revision: int) -> Object | None:
        found = self._objects.get(key)
        return found if found is not None and found.revision == revision else None
