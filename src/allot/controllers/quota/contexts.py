"""What the charge of a claim depends on, from caches or from lists: classes, pods, other claims."""

from collections.abc import Callable, Iterable

from allot import quota
from allot.api import Fields, Object
from allot.informers import OWNER_INDEX, Informer, owner_uids


def from_caches(
    names: Callable[[], quota.ExtendedNames], pods: Informer, claims: Informer
) -> Callable[[], quota.Context]:
    owned = claims.cache.index(OWNER_INDEX, owner_uids)

    def find_owner(claim: Fields) -> quota.Owner | None:
        reference = quota.owning_pod(claim)
        pod = pods.cache.get(reference["name"], claim["metadata"]["namespace"]) if reference else None
        if pod is None:
            return None
        return quota.Owner(dict(pod.fields), quota.claims_for(pod.uid, _decoded(owned[pod.uid])))

    return lambda: quota.Context(names(), find_owner)


def from_lists(names: quota.ExtendedNames, pods: Iterable[Object], claims: Iterable[Object]) -> quota.Context:
    by_name = {pod.name: pod for pod in pods}
    made = [claim for claim in _decoded(claims) if quota.is_extended_claim(claim)]

    def find_owner(claim: Fields) -> quota.Owner | None:
        reference = quota.owning_pod(claim)
        pod = by_name.get(reference["name"]) if reference else None
        return quota.Owner(dict(pod.fields), quota.claims_for(pod.uid, made)) if pod is not None else None

    return quota.Context(names, find_owner)


def _decoded(objects: Iterable[Object]) -> list[Fields]:
    return [dict(one.fields) for one in objects]
