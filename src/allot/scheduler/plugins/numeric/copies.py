"""Classes and parameter objects as allocations keep them: whole, but for who wrote which of their fields."""

from collections import OrderedDict
from typing import Final

import msgspec

from allot.api import Object, encode

KEPT_MAX: Final = 256
KEPT_BYTES_MAX: Final = 16 * 1024  # of one of them: large ones are few, and written anew


class Copies:
    """Claims of one template keep the same objects, so what was written last stays at hand."""

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    def of(self, object: Object) -> msgspec.Raw:
        return msgspec.Raw(self._of(object))

    def size(self, *objects: Object | None) -> int:
        """Of all together, in bytes."""
        return sum(len(self._of(one)) for one in objects if one is not None)

    def _of(self, object: Object) -> bytes:
        version = object.api_version, object.uid, object.resource_version
        written = self._written.get(version)
        if written is None:
            written = encode(_unmanaged(object))
            if len(written) <= KEPT_BYTES_MAX:
                self._written[version] = written
            while len(self._written) > KEPT_MAX:
                self._written.popitem(last=False)
        return written


def _unmanaged(object: Object) -> dict[str, object]:
    fields = dict(object.fields)
    fields["metadata"] = {
        name: value for name, value in fields["metadata"].items() if name != "managedFields"
    }
    return fields
