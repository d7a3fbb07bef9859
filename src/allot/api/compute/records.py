"""What containers were given of compute resources, and what a pod holds of each in all.

The record of a container is `allocatedComputeResources`. It travels to the server as an annotation of the
binding, by container (`{"c": {"gpu-gold": [{"computeResourceName": "...", "count": 2}]}}`); a server that has
no such field keeps the annotation on the pod, where it means the same. Whoever may write the pod may write it
there, and no server has judged it: so it is heeded only where it is what the containers ask for.

Containers run side by side; init containers run before them one after the other, and give what they had to
those that come later, except where they keep running. So of each compute resource a pod holds the most that
its containers have at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .. import core
from ..field import Path
from ..kind import Fields
from . import limits, pods

Given = Mapping[str, tuple[core.AllocatedResource, ...]]
"""By the name that was asked for."""
Counts = Mapping[str, int]

NOTHING: Mapping[str, Given] = {}
_ANNOTATION = Path("metadata.annotations")[limits.RECORD_ANNOTATION]
_RAW_DECODER = msgspec.json.Decoder(dict[str, dict[str, list[dict[str, Any]]]])
_DECODER = msgspec.json.Decoder(dict[str, dict[str, tuple[core.AllocatedResource, ...]]])


def given(pod: core.Pod) -> Mapping[str, Given]:
    """By container. Containers without a record are not there."""
    own = {
        one.name: one.allocated_compute_resources
        for one in (*pod.spec.init_containers, *pod.spec.containers)
        if one.allocated_compute_resources
    }
    text = pod.metadata.annotations.get(limits.RECORD_ANNOTATION) if pod.metadata.annotations else None
    if own or text is None:
        return own
    try:
        return _DECODER.decode(text) if _is_asked(pod, text) else NOTHING
    except msgspec.DecodeError:
        return NOTHING  # of somebody else: it names nothing that anybody has


def _is_asked(pod: core.Pod, text: str) -> bool:
    """Raises DecodeError."""
    asked = {one.name: one.resources for one in (*pod.spec.init_containers, *pod.spec.containers)}
    return all(
        name in asked
        and not pods.record_errors(record, {**asked[name].requests, **asked[name].limits}, _ANNOTATION)
        for name, record in _RAW_DECODER.decode(text).items()
    )


def written(given: Mapping[str, Given]) -> str:
    """The annotation."""
    return msgspec.json.encode(given, order="sorted").decode()


def held(pod: core.Pod) -> Counts:
    """Devices of each compute resource that the pod holds, wherever it is."""
    records = given(pod)
    if not records:
        return {}
    return peak(
        [(_counts(records.get(one.name, {})), one.is_sidecar) for one in pod.spec.init_containers],
        [_counts(records.get(one.name, {})) for one in pod.spec.containers],
    )


def held_by_fields(pod: Fields) -> Counts:
    """The same of a pod in the write path."""
    spec = pod.get("spec") or {}
    init, running = spec.get("initContainers") or (), spec.get("containers") or ()
    if not any("allocatedComputeResources" in one for one in (*init, *running)):
        return {}
    return peak(
        [(_counts_of_fields(one), one.get("restartPolicy") == "Always") for one in init],
        [_counts_of_fields(one) for one in running],
    )


def peak(init: Iterable[tuple[Counts, bool]], running: Iterable[Counts]) -> dict[str, int]:
    """The most of each at a time. `init` says of each init container whether it keeps running."""
    beside: dict[str, int] = {}  # those that keep running
    most: dict[str, int] = {}
    for counts, keeps_running in init:
        now = _plus(beside, counts)
        _raise(most, now)
        if keeps_running:
            beside = now
    for counts in running:
        beside = _plus(beside, counts)
    _raise(most, beside)
    return most


def _plus(left: Counts, right: Counts) -> dict[str, int]:
    total = dict(left)
    for name, count in right.items():
        total[name] = total.get(name, 0) + count
    return total


def _raise(most: dict[str, int], now: Counts) -> None:
    for name, count in now.items():
        most[name] = max(most.get(name, 0), count)


def _counts(record: Given) -> Counts:
    return _summed((one.compute_resource_name, one.count) for entries in record.values() for one in entries)


def _counts_of_fields(container: Fields) -> Counts:
    record: Mapping[str, Sequence[Mapping[str, Any]]] = container.get("allocatedComputeResources") or {}
    return _summed(
        (one.get("computeResourceName") or "", one.get("count") or 0)
        for entries in record.values()
        for one in entries or ()
    )


def _summed(entries: Iterable[tuple[str, int]]) -> Counts:
    total: dict[str, int] = {}
    for name, count in entries:
        if name:
            total[name] = total.get(name, 0) + count
    return total
