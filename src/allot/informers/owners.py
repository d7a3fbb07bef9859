"""Who owns an object: the index that garbage collection and controllers share."""

from allot.api import Object, meta


class _Owned(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()


OWNER_INDEX = "owner uid"


def owners(object: Object) -> tuple[meta.OwnerReference, ...]:
    return object.view(_Owned).metadata.owner_references


def owner_uids(object: Object) -> tuple[str, ...]:
    """An index function: `informer.cache.index(OWNER_INDEX, owner_uids)`."""
    return tuple(owner.uid for owner in owners(object))


def controller_of(object: Object) -> meta.OwnerReference | None:
    """The owner that manages the object, if one does."""
    return object.view(_Owned).metadata.controller
