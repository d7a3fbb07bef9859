"""What the containers of a pod ask of device plugins, in the order in which they start. Pure.

A resource is asked for by its own name where devices are counted. Where they are exported as compute
resources (KEP-14) it is asked for by that name or by one of a class, and the scheduler has recorded which
compute resources serve it: the record is heeded to the letter, and where it is missing nothing is chosen in
its place. A second opinion is what the record exists to prevent.

A resource that is served by a claim (KEP-5004) is not asked for here: the pod's status says which request of
which claim stands for it, and what counts is a claim that the pod really uses on this node. An attempt at
another node may have left the name of one that is gone.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from allot.api import Quantity, compute, core

from .compute import name, resource_of
from .loans import Asked, Loan, Part


class Unrecorded(NamedTuple):
    """Something that only a record could serve, and there is none."""

    container: str
    name: str


class Wanted(NamedTuple):
    asked: tuple[Asked, ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()


def wanted(
    pod: core.Pod,
    claims: Collection[str],
    is_counted: Callable[[str], bool],
    is_exported: Callable[[str], bool],
) -> Wanted:
    """`claims` are the names of those that the pod uses; the two others know the resources of plugins."""
    extended = pod.status.extended_resource_claim_status
    by_claim = {
        (one.container_name, one.resource_name)
        for one in (extended.request_mappings if extended is not None else ())
        if extended is not None and extended.resource_claim_name in claims
    }
    found: list[Asked] = []
    unrecorded: list[Unrecorded] = []
    records = compute.records.given(pod)
    for container, ends in (
        *((one, not one.is_sidecar) for one in pod.spec.init_containers),
        *((one, False) for one in pod.spec.containers),
    ):
        record = records.get(container.name, {})
        found += _recorded(container.name, (one for every in record.values() for one in every), ends)
        for resource, amount in sorted(container.resources.requests.items()):
            if resource in record or (container.name, resource) in by_claim:
                continue
            if compute.class_of(resource) or is_exported(resource):
                if Quantity.parse(amount):
                    unrecorded.append(Unrecorded(container.name, resource))
            elif is_counted(resource) and (count := Quantity.parse(amount).as_int()):
                found.append(Asked(container.name, resource, count, ends))
    return Wanted(tuple(found), tuple(unrecorded))


def by_name(loan: Loan, record: compute.records.Given) -> dict[str, tuple[str, ...]]:
    """The devices of a loan, under the names by which its container asked for them."""
    left: dict[str, list[str]] = {}
    for one in loan.devices:
        served = name(loan.resource, one.properties) if one.properties is not None else ""
        left.setdefault(served, []).append(one.id)
    found = {loan.resource: tuple(left[""])} if "" in left else {}
    for asked, entries in sorted(record.items()):
        for entry in entries:
            ids = left.get(entry.compute_resource_name, [])
            if taken := [ids.pop(0) for _ in range(min(entry.count, len(ids)))]:
                found[asked] = (*found.get(asked, ()), *taken)
    return found


def _recorded(container: str, entries: Iterable[core.AllocatedResource], ends: bool) -> list[Asked]:
    """Several names may be served by devices of one resource: its plugin is asked once for all of them."""
    counts = Counter[str]()
    for one in entries:
        if one.compute_resource_name:  # groups have amounts of something native too
            counts[one.compute_resource_name] += one.count
    by_resource: dict[str, list[Part]] = {}
    for chosen, count in sorted(counts.items()):
        by_resource.setdefault(resource_of(chosen), []).append(Part(chosen, count))
    return [
        Asked(container, resource, sum(one.number for one in parts), ends, tuple(parts))
        for resource, parts in by_resource.items()
    ]
