"""The pods of an agent: what is known of each, in memory and on disk.

A pod lies on disk (`ROOT/pods/UID.json`) before anything of it is there, so that an agent that begins anew
finds it, also when the API does not show it any more (N5, N8).
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from allot.api import Object, core
from allot.base import Clock

from . import views
from .life import Trouble
from .runtimes import Addresses, Attempt
from .sealed import BadCheckpoint
from .starting import Place


class Verdict(NamedTuple):
    reason: str
    message: str
    grace_s: float


@dataclass(slots=True)
class KnownPod:
    """What this process knows of a pod beside the pod."""

    since: float  # Unix time: it was first heard of
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)  # the last two of each container
    troubles: dict[str, Trouble] = field(default_factory=dict)
    addresses: Addresses = None  # since its last container was to start
    told_to_end_s: float | None = None
    verdict: Verdict | None = None  # why it has to end, whatever its containers do
    is_kept: bool = False  # on disk
    deeds: int = 0  # under way that may start something of it
    backed_off: set[tuple[str, int]] = field(default_factory=set)  # of which attempts that was said

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self.deeds += 1
        try:
            yield
        finally:
            self.deeds -= 1

    def note(self, attempt: Attempt) -> None:
        known = self.attempts.setdefault(attempt.name, [])
        known[:] = [one for one in known if one.number != attempt.number] + [attempt]
        known.sort(key=lambda one: one.number)
        del known[:-2]

    @property
    def runs(self) -> bool:
        """Some container does."""
        return any(one[-1].runs for one in self.attempts.values())

    def last(self, container: views.Container) -> Attempt | None:
        found = self.attempts.get(container.name)
        return found[-1] if found else None


class Pods:
    def __init__(self, place: Place, clock: Clock) -> None:
        """Raises BadCheckpoint, and OSError: what an earlier process has left cannot be read."""
        self._place, self._clock = place, clock
        self._known: dict[str, KnownPod] = {}
        self._shown: dict[str, Object] = {}
        self._read()

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(self._known)

    @property
    def shown(self) -> tuple[Object, ...]:
        """Those of which something is there, each as it was last shown."""
        return tuple(self._shown.values())

    @property
    def running(self) -> list[Object]:
        """Pods of which some container runs."""
        return [pod for uid, pod in self._shown.items() if self._known[uid].runs]

    def get(self, uid: str) -> KnownPod | None:
        return self._known.get(uid)

    def known(self, uid: str) -> KnownPod:
        if uid not in self._known:
            self._known[uid] = KnownPod(self._clock.now().timestamp())
        return self._known[uid]

    def last_shown(self, uid: str) -> Object | None:
        return self._shown.get(uid)

    def attempt(self, uid: str, container: str, *, previous: bool = False) -> Attempt | None:
        """The last one of a container, or the one before."""
        known = self._known.get(uid)
        attempts = known.attempts.get(container, []) if known is not None else []
        index = -2 if previous else -1
        return attempts[index] if len(attempts) >= -index else None

    # -- on disk --------------------------------------------------------------------------------

    async def keep(self, pod: Object) -> KnownPod:
        """Raises OSError."""
        known = self.known(pod.uid)
        self._shown[pod.uid] = pod
        if not known.is_kept:
            await asyncio.to_thread(self._write, pod)
            known.is_kept = True
        return known

    async def kept(self) -> list[Object]:
        """What an earlier process has left. Raises OSError."""
        pods = await asyncio.to_thread(self._settled)
        for pod in pods:
            self.known(pod.uid).is_kept = True
            self._shown[pod.uid] = pod
        return pods

    def forget(self, uid: str) -> None:
        """Not on disk."""
        self._known.pop(uid, None)
        self._shown.pop(uid, None)

    async def erase(self, uid: str) -> None:
        """Raises OSError."""
        await asyncio.to_thread(self._place.files.remove, self._place.pod(uid))

    def _write(self, pod: Object) -> None:
        place = self._place
        place.files.make_directory(place.pods, 0o750)
        place.files.write(place.pod(pod.uid), pod.raw)

    def _settled(self) -> list[Object]:
        """A process that died while it wrote may have left a file that a power cut takes away."""
        pods = self._read()
        if pods:
            self._place.files.settle(self._place.pods)
        return pods

    def _read(self) -> list[Object]:
        place = self._place
        names = [one for one in place.files.names(place.pods) if one.endswith(".json") and one[0] != "."]
        found = ((name, place.files.read(place.pods / name)) for name in names)
        return [_pod(name, content) for name, content in found if content is not None]


def _pod(name: str, content: bytes) -> Object:
    """Raises BadCheckpoint: of a pod that cannot be read nobody would end what is left of it."""
    pod = Object(content)
    try:
        pod.view(views.Pod), pod.view(core.Pod), pod.uid
    except (msgspec.DecodeError, UnicodeError) as wrong:
        raise BadCheckpoint(f"pods/{name}", f"it is not the JSON of a pod ({wrong})") from None
    if name != f"{pod.uid}.json":
        raise BadCheckpoint(f"pods/{name}", f"it holds a pod whose uid is {pod.uid!r}")
    return pod
