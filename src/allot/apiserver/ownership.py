"""Who owns which field: `metadata.managedFields`, kept on every write."""

from allot.api import Fields

from .call import Call
from .occasion import WriteOccasion


class Ownership:
    def record(self, call: Call, old: Fields | None, new: Fields, occasion: WriteOccasion) -> None:
        return None
