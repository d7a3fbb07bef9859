"""No device is given twice, whoever writes the claims (D1)."""

from allot.api import Fields, Kind

from .occasion import WriteOccasion
from .repository import Repository


async def guard_devices(
    repository: Repository, kind: Kind, old: Fields | None, new: Fields | None, occasion: WriteOccasion
) -> None:
    """Add to the write what the hold records of the pools must compare and become."""
    if kind.group != "resource.k8s.io" or kind.plural != "resourceclaims":
        return
