"""A plan, made in a cluster: pods are evicted one after the other, and nothing else is written.

    look again   the cluster is read anew, and the rest of the plan is run on it: it must come out as before
    evict        through the eviction API, the very pod that was meant; a budget that refuses is waited for
    wait         until the pod is gone and its replacement is on a node
    compare      the node must be the one that was foretold

What it promises
    DO1  No pod is evicted but by the plan, nor after something came out otherwise.
    DO2  Between two evictions the first pod's replacement has its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from allot.api import Object, errors
from allot.base import Clock
from allot.client import Client

from .course import Course, Misfit, Step

PAUSE_S: Final = 0.2


class Stopped(Exception):
    """Reality is not as the plan has it. The message says in what."""


@dataclass(frozen=True, slots=True)
class Applying:
    client: Client
    clock: Clock
    look: Callable[[], Awaitable[Course]]  # the cluster as it is now, and what is to fit
    agrees: Callable[[Step], bool]  # whoever is asked before each eviction
    tell: Callable[[str], None]
    patience_s: float = 300.0

    async def apply(self, steps: Sequence[Step]) -> dict[str, str]:
        """Where what was to fit goes at the end. Raises Stopped, and ApiError."""
        for at, step in enumerate(steps):
            if not self.agrees(step):
                raise Stopped(f"nobody agreed to evict pod {step.pod.key}")
            await self._compare(steps[at:])
            known = {one.uid for one in await self._pods(step)}
            await self._evict(step)
            self.tell(f"evicted  {step.pod.key}  from {step.node}")
            to = await self._replaced(step, known)
            if to != step.to:
                raise Stopped(f"another pod {step.pod.key} went to {to}, where the plan has {step.to}")
            if to:
                self.tell(f"placed   another {step.pod.key}  on {to}")
        return await self._reached()

    async def _compare(self, rest: Sequence[Step]) -> None:
        """Foretold again from how things are now."""
        course = await self.look()
        first = rest[0].pod
        now = {pod.uid: pod for node in course.snapshot.nodes() for pod in node.pods.values()}
        for step in rest:
            if step.pod.uid not in now:
                raise Stopped(f"pod {step.pod.key} is no longer on {step.node}")
        again = course.run([now[step.pod.uid] for step in rest])
        if isinstance(again, str):
            raise Stopped(again)
        for was, step in zip(rest, again, strict=True):
            if (was.node, was.to) != (step.node, step.to):
                raise Stopped(f"another pod {was.pod.key} would now go to {step.to}, not to {was.to}")
        places = course.places()
        if isinstance(places, Misfit):
            raise Stopped(f"moving pod {first.key} would no longer help: {course.explained(places)}")

    async def _reached(self) -> dict[str, str]:
        """Those that wait in the cluster may need a moment."""
        end = self.clock.monotonic_s() + self.patience_s
        while True:
            course = await self.look()
            places = course.places()
            if not isinstance(places, Misfit):
                return places
            if self.clock.monotonic_s() > end:
                raise Stopped(f"all moves are made, and still: {course.explained(places)}")
            await asyncio.sleep(PAUSE_S)

    # -- one move -------------------------------------------------------------------------------

    async def _evict(self, step: Step) -> None:
        pods, key = self.client.resource("", "v1", "pods"), step.pod.key
        end = self.clock.monotonic_s() + self.patience_s
        while True:
            try:
                await pods.evict(key.name, key.namespace, uid=step.pod.uid)
                return
            except errors.TooManyRequests as refused:
                if self.clock.monotonic_s() > end:
                    raise Stopped(f"pod {key} stays: {refused}") from None
                await asyncio.sleep(PAUSE_S)
            except (errors.NotFound, errors.Conflict):
                raise Stopped(f"pod {key} is no longer there") from None

    async def _replaced(self, step: Step, known: set[str]) -> str:
        """Where the pod is that was made in its place; "" where nobody makes one."""
        end = self.clock.monotonic_s() + self.patience_s
        while True:
            pods = await self._pods(step)
            is_gone = all(one.uid != step.pod.uid for one in pods)
            fresh = [one for one in pods if one.uid not in known and one.metadata.deletion_timestamp is None]
            place = next((node for one in fresh if (node := _node(one))), "")
            if is_gone and (place or not step.to):
                return place
            if self.clock.monotonic_s() > end:
                missing = "is placed" if is_gone else "is there, and the first one is still ending"
                raise Stopped(f"no other pod {step.pod.key} {missing} after {self.patience_s:.0f} s")
            await asyncio.sleep(PAUSE_S)

    async def _pods(self, step: Step) -> list[Object]:
        """The pod, and those that the same one has made."""
        owner = _controller(step.pod.object)
        listed = await self.client.resource("", "v1", "pods").list(step.pod.key.namespace)
        return [one for one in listed.objects if one.uid == step.pod.uid or _is_of(one, owner)]


def _controller(pod: Object) -> str:
    references: Any = pod.fields["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in references if one.get("controller")), "")


def _is_of(pod: Object, owner: str) -> bool:
    return bool(owner) and _controller(pod) == owner


def _node(pod: Object) -> str:
    return str((pod.fields.get("spec") or {}).get("nodeName") or "")
