"""What the demo sees of the cluster: everything that the API tells, and how to read it.

An onlooker watches over HTTPS like any client. It waits for the API to show something,
and when that does not come it says how the pods stand.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from allot.api import Quantity
from allot.client import Client
from allot.sim import recording

Fields = Mapping[str, Any]
T = TypeVar("T")


class NotSeen(Exception):
    """Something that was promised did not come true. The message says what is there instead."""


class Onlooker:
    def __init__(self, client: Client, patience_s: float) -> None:
        self._recorder = recording.Recorder(client)
        self._patience_s = patience_s
        self._seen: list[recording.Seen] = []
        self._news = asyncio.Event()
        self._recorder.tell(self._hear)

    async def __aenter__(self) -> "Onlooker":
        self._recorder.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._recorder.stop()

    def _hear(self, seen: recording.Seen) -> None:
        self._seen.append(seen)
        self._news.set()

    async def history(self) -> Sequence[recording.Seen]:
        """Everything that was told, in order. Nothing is heard after this."""
        return await self._recorder.stop()

    async def until(self, what: str, question: Callable[[], T]) -> T:
        """The first answer that is not empty. Asked again whenever the API tells something."""
        try:
            async with asyncio.timeout(self._patience_s):
                while not (answer := question()):
                    self._news.clear()
                    await self._news.wait()
                return answer
        except TimeoutError:
            pods = [standing(pod) for pod in self.pods()] or ["there are no pods"]
            raise NotSeen("\n".join([f"not within {self._patience_s:g} s: {what}", *pods])) from None

    # -- objects --------------------------------------------------------------------------------

    def all(self, plural: str) -> list[Fields]:
        return [one.fields for one in self._recorder.all(plural)]

    def pods(self, *names: str, app: str = "") -> list[Fields]:
        """These pods, or those of an app, or all."""
        found = [pod for pod in self.all("pods") if not names or name_of(pod) in names]
        return [pod for pod in found if not app or (pod["metadata"].get("labels") or {}).get("app") == app]

    def running(self, *names: str) -> list[Fields]:
        """All of these pods in this order, once all of them run; until then none."""
        found = {name_of(pod): pod for pod in self.pods(*names) if self.is_served(pod)}
        return [found[name] for name in names] if found.keys() == set(names) else []

    def is_served(self, pod: Fields) -> bool:
        """It runs, and its claims hold devices. Pods and claims are told apart: one may come later."""
        holding = {name_of(claim) for claim in self.claims_of(pod) if devices_in(claim)}
        return runs(pod) and holding == claim_names(pod)

    def claims_of(self, pod: Fields) -> list[Fields]:
        names = claim_names(pod)
        return [claim for claim in self.all("resourceclaims") if name_of(claim) in names]

    def was_evicted(self, pod: str) -> bool:
        """Whether the API has ever shown this pod as one that the scheduler makes room with."""
        told = (seen.fields for seen in self._seen if seen.resource == "pods" and seen.object.name == pod)
        return any(
            (one["type"], one.get("reason")) == ("DisruptionTarget", "PreemptionByScheduler")
            for fields in told
            for one in conditions(fields)
        )

    # -- devices --------------------------------------------------------------------------------

    def devices(self) -> Iterator[tuple[str, Fields]]:
        """Every published device by its pool and name; with the node that has it, if one has."""
        for spec in (one["spec"] for one in self.all("resourceslices")):
            for device in spec.get("devices") or ():
                where = {"node": spec.get("nodeName", ""), "pool": spec["pool"]["name"]}
                yield f"{spec['driver']}/{where['pool']}/{device['name']}", {**device, **where}

    def devices_of(self, pod: Fields) -> dict[str, Fields]:
        """What is published of the devices that the pod may use."""
        published = dict(self.devices())
        held = [device for claim in self.claims_of(pod) for device in devices_in(claim)]
        return {device: published.get(device, {}) for device in held}

    def draws(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """By pool, counter set and counter: how much is drawn by what is allocated, and of how much."""
        published, drawn = dict(self.devices()), Counter[tuple[str, str, str]]()
        for claim in self.all("resourceclaims"):
            for device in (published.get(one, {}) for one in devices_in(claim)):
                for draw in device.get("consumesCounters") or ():
                    for name, amount in draw["counters"].items():
                        drawn[device["pool"], draw["counterSet"], name] += _whole(amount)
        return {
            (spec["pool"]["name"], one["name"], name): (
                drawn[spec["pool"]["name"], one["name"], name],
                _whole(has),
            )
            for spec in (one["spec"] for one in self.all("resourceslices"))
            for one in spec.get("sharedCounters") or ()
            for name, has in one["counters"].items()
        }


# -- reading one object -------------------------------------------------------------------------


def name_of(fields: Fields) -> str:
    return str(fields["metadata"]["name"])


def node_of(pod: Fields) -> str:
    return str(pod["spec"].get("nodeName") or "")


def runs(pod: Fields) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def claim_names(pod: Fields) -> set[str]:
    """Claims that the pod names, and those that were made for it."""
    status = pod.get("status") or {}
    entries = [*(pod["spec"].get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    entries.append(status.get("extendedResourceClaimStatus") or {})
    return {entry["resourceClaimName"] for entry in entries if entry.get("resourceClaimName")}


def conditions(pod: Fields) -> list[Fields]:
    return list((pod.get("status") or {}).get("conditions") or ())


def why_it_waits(pod: Fields) -> str:
    """What a pod without a node says about that; "" while it says nothing."""
    told = [one for one in conditions(pod) if (one["type"], one["status"]) == ("PodScheduled", "False")]
    return str(told[0].get("message") or "") if told and not node_of(pod) else ""


def standing(pod: Fields) -> str:
    said = [
        " ".join(str(one.get(part) or "") for part in ("type", "status", "reason", "message")).strip()
        for one in conditions(pod)
    ]
    where = f"on {node_of(pod)}" if node_of(pod) else "on no node"
    return f"pod {name_of(pod)} is {where}: {'; '.join(said) or 'no conditions'}"


def devices_in(claim: Fields) -> list[str]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [f"{one['driver']}/{one['pool']}/{one['device']}" for one in results]


def _whole(amount: Fields) -> int:
    return Quantity.parse(amount["value"]).nano // 10**9
