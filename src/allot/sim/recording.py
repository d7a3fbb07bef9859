"""Everything that happened, in the order in which it happened, as the API told it.

A recorder watches some resources through the API with a client that has no faults.
Afterwards its events, sorted by revision, are the history of the world: a checker
reads them one by one and sees every state that any watcher could have seen.

Those who live in the world and are not under test (people, kubelets) look at the same
record to see how things stand, and may ask to be told.

What happens on machines, which no API tells, is noted beside it (`Notes`): containers that begin and
end, devices that drivers make ready and give back, power that goes; and so is what a provider of nodes is
asked for. Each note bears the revision at which it happened, so that a checker sees what the API said at
that moment.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from allot.api import Object
from allot.client import Client, EventType, Resource

WATCH_S = 3600
"""As long as a server lets a watch live."""


class Seen(NamedTuple):
    revision: int
    resource: str
    type: str  # ADDED, MODIFIED or DELETED
    object: Object
    at_s: float = 0.0  # when it was heard of

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.object.fields


@dataclass(frozen=True, slots=True)
class Followed:
    group: str
    version: str
    plural: str
    namespaced: bool = True


FOLLOWED = (
    Followed("", "v1", "namespaces", namespaced=False),
    Followed("", "v1", "nodes", namespaced=False),
    Followed("", "v1", "pods"),
    Followed("", "v1", "configmaps"),
    Followed("", "v1", "resourcequotas"),
    Followed("resource.k8s.io", "v1", "deviceclasses", namespaced=False),
    Followed("resource.k8s.io", "v1", "resourceslices", namespaced=False),
    Followed("resource.k8s.io", "v1", "devicetaintrules", namespaced=False),
    Followed("resource.k8s.io", "v1", "resourceclaimtemplates"),
    Followed("resource.k8s.io", "v1", "resourceclaims"),
    Followed("resource.k8s.io", "v1alpha1", "resourceclasses", namespaced=False),
    Followed("resource.k8s.io", "v1alpha1", "podschedulings"),
    Followed("resource.k8s.io", "v1alpha1", "noderesourcecapacities", namespaced=False),
    Followed("apps", "v1", "deployments"),
    Followed("apps", "v1", "replicasets"),
    Followed("apps", "v1", "daemonsets"),
    Followed("apps", "v1", "statefulsets"),
    Followed("apps", "v1", "controllerrevisions"),
    Followed("batch", "v1", "jobs"),
    Followed("batch", "v1", "cronjobs"),
    Followed("node.allot.dev", "v1alpha1", "preparedclaims", namespaced=False),
)

EVENTS = Followed("", "v1", "events")
"""Followed where somebody is judged by what was said."""

MACHINES, PROVIDER = "machines", "provider"
_RANKS = {"resourceclaims": 0, MACHINES: 2, PROVIDER: 2}

Hear = Callable[[Seen], None]


class Notes:
    """What happens beside the API, in order: on machines, or with whoever has nodes to give."""

    def __init__(self, revision: Callable[[], int], resource: str = MACHINES) -> None:
        self._revision = revision
        self._resource = resource
        self.seen: list[Seen] = []

    def note(self, name: str, what: str, **of: object) -> None:
        fields = {"metadata": {"name": name}, **of}
        note = Object(msgspec.json.encode(fields), fields=fields)
        now_s = asyncio.get_running_loop().time()
        self.seen.append(Seen(self._revision(), self._resource, what, note, now_s))


class Recorder:
    def __init__(self, client: Client, followed: Sequence[Followed] = FOLLOWED) -> None:
        self._client = client
        self._followed = followed
        self._seen: list[Seen] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._now: dict[str, dict[tuple[str, str], Object]] = {one.plural: {} for one in followed}
        self._hearers: list[Hear] = []

    def start(self) -> None:
        for followed in self._followed:
            resource = self._client.resource(
                followed.group, followed.version, followed.plural, namespaced=followed.namespaced
            )
            name = f"record {followed.plural}"
            self._tasks.append(asyncio.create_task(self._follow(followed.plural, resource), name=name))

    async def stop(self, beside: Sequence[Seen] = ()) -> Sequence[Seen]:
        """The history so far, in order, with what was noted beside it. Of what happened at one revision,
        claims come first: whatever else changes with a claim presumes it."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task  # one that failed has missed something: better no answer than half of it
        return sorted((*self._seen, *beside), key=lambda seen: (seen.revision, _RANKS.get(seen.resource, 1)))

    # -- how things stand -----------------------------------------------------------------------

    def get(self, plural: str, name: str, namespace: str = "") -> Object | None:
        return self._now[plural].get((namespace, name))

    def all(self, plural: str, namespace: str = "") -> list[Object]:
        """In the order in which they came."""
        found = self._now[plural].items()
        return [object for (there, _), object in found if not namespace or there == namespace]

    def tell(self, hear: Hear) -> Callable[[], None]:
        """Call this for every event from now on. Returns how to stop."""
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)

    # -- listening ------------------------------------------------------------------------------

    async def _follow(self, plural: str, resource: Resource) -> None:
        """A watch lives an hour at most; the next one goes on where it ended. Expired would be a gap."""
        since = "1"
        while True:
            async for event in resource.watch(resource_version=since, bookmarks=True, timeout_s=WATCH_S):
                since = event.object.resource_version
                if event.type is not EventType.BOOKMARK:
                    self._heard(plural, event.type, event.object)

    def _heard(self, plural: str, type: EventType, object: Object) -> None:
        here, key = self._now[plural], (object.namespace, object.name)
        known = here.get(key)
        version = object.resource_version
        is_gone = type is EventType.DELETED
        if known is None if is_gone else known is not None and known.resource_version == version:
            return  # a watch that resumes repeats the last revision if several objects changed at it
        seen = Seen(int(version), plural, type.value, object, asyncio.get_running_loop().time())
        self._seen.append(seen)
        if is_gone:
            here.pop(key, None)
        else:
            here[key] = object
        for hear in tuple(self._hearers):
            hear(seen)
