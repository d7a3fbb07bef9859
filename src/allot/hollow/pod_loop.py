"""Plays the kubelet for pods: reads the caches, asks the plan, writes as the pod's node.

The order around claims is what N1 and N2 need. Before a pod starts, its node says which
claims it is about to prepare, and then asks the server for these claims once more: only if
they are still the pod's does anything run. After a pod has ended, the node takes the claims
off its list, and only then lets a deleted pod go.

Before all that a pod is admitted, when it is first seen on its node; so whoever was bound first
has the room. After a restart those that run come first, then the others by age.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Object, age, core, errors, kinds, podclaims
from allot.base import require
from allot.client import Resource
from allot.informers import Again, Change, Deleted, Informer, Key, Reconciler, Telemetry
from allot.node import (
    Admission,
    ClaimRef,
    Holding,
    Lookup,
    NotReady,
    Refusal,
    claims_of,
    known_claims,
    require_ready,
)

from . import statuses
from .actors import Actors
from .addresses import Addresses
from .life import Exit, Explain, Leave, Life, Refuse, Rest, Revive, Start, Step, Wait, plan
from .registering import is_hollow, owner_reference
from .settings import Stages

Fields = dict[str, Any]

_SOON_S = 1.0
_AT_ONCE_S = 0.01  # a wait that rounding made nothing would not move a clock
NODE_INDEX = "hollow node"


class Pods:
    def __init__(
        self,
        actors: Actors,
        stages: Stages,
        informers: Sequence[Informer],
        telemetry: Telemetry,
    ) -> None:
        """`informers` are those of pods, claims, nodes and prepared claims."""
        self._actors = actors
        self._stages = stages
        self._pods, self._claims, self._nodes, self._prepared = informers
        self._lives: dict[str, Life] = {}  # by uid
        self._holding: Holding[Key] = Holding()
        self._addresses = Addresses()
        self._admission = Admission()
        self._since = age.micro_timestamp(actors.clock.now())
        self._versions: dict[str, str] = {}  # node -> of its list, as we last wrote it
        self._on_node = self._pods.cache.index(NODE_INDEX, _node_name)
        self._using = self._pods.cache.index("hollow claims", _claim_keys)
        self.playing: Reconciler[Key] = Reconciler("hollow_pods", self._play, actors.clock, telemetry)
        self.saying: Reconciler[str] = Reconciler("hollow_prepared", self._say, actors.clock, telemetry)

    # -- hearing --------------------------------------------------------------------------------

    def on_prepared(self, change: Change) -> None:
        """A list that is not our last word: of an earlier process, or written over ours."""
        listed = change.object
        known = self._versions.get(listed.name, "0")
        if not isinstance(change, Deleted) and int(listed.resource_version) <= int(known):
            return
        is_right = _uids(listed) == self._holding.wanted_uids(listed.name)
        if isinstance(change, Deleted) or not is_right or listed.name not in self._holding.speakers:
            self._holding.doubt(listed.name)
            self.saying.add(listed.name)

    def on_pod(self, change: Change) -> None:
        pod = change.object
        view = pod.view(core.Pod)
        if not view.spec.node_name:
            return
        if isinstance(change, Deleted):
            self._ended(view)
            self._admission.release(view)
            self._lives.pop(pod.uid, None)
            return
        if not self._is_ours(view.spec.node_name):
            return
        self._meet(view)
        self.playing.add(Key.of(pod))

    def on_claim(self, change: Change) -> None:
        """Somebody may have waited for it. Pods that run do not mind."""
        for pod in self._using[str(Key.of(change.object))]:
            view = pod.view(core.Pod)
            if view.status.phase in ("", "Pending") and self._is_ours(view.spec.node_name):
                self.playing.add(Key.of(pod))

    def on_node(self, change: Change) -> None:
        node = change.object
        if isinstance(change, Deleted):
            self._holding.forget(node.name)
            self._versions.pop(node.name, None)
            self._addresses.forget(node.name)
            self._admission.forget(node.name)
        elif is_hollow(node):
            for pod in sorted(self._on_node[node.name], key=_place_in_line):
                self._meet(pod.view(core.Pod))
                self.playing.add(Key.of(pod))

    def _meet(self, pod: core.Pod) -> None:
        """Begin to remember a pod; one that runs already brings its past along.

        So does one that an earlier process was about to start: that it runs may still be
        written, late, so its claims stay on the list.
        """
        now_s = self._actors.clock.monotonic_s()
        uid = pod.metadata.uid
        life = self._lives.get(uid)
        if life is None:
            life = self._lives[uid] = Life(now_s, self._since_s(pod, now_s))
            node = pod.spec.node_name
            claims = known_claims(pod, self._lookup(pod))
            if pod.status.phase == "Running":
                life.has_started = True
                self._holding.hold(node, uid, claims)
                self._addresses.keep(node, uid, pod.status.pod_ip)
            elif not pod.is_finished and self._is_listed(node, claims):
                self._holding.hold(node, uid, claims)
        if pod.metadata.deletion_timestamp and life.leaving_s is None:
            life.leaving_s = now_s
        self._admit(pod, life)

    def _admit(self, pod: core.Pod, life: Life) -> Refusal | None:
        """Whether there is room for the pod; once there was, it has it until it has ended."""
        offered = self._offered(pod.spec.node_name)
        if pod.is_finished:
            self._admission.release(pod)
        elif pod.status.phase == "Running" or life.has_started:
            self._admission.count(pod, offered)
        elif not pod.metadata.deletion_timestamp:
            return self._admission.admit(pod, offered)
        return None

    def _offered(self, name: str) -> Mapping[str, str]:
        """What a node has for pods, device plugins included, as last told."""
        node = self._nodes.cache.get(name)
        return node.view(core.Node).status.allocatable if node is not None else {}

    def _is_listed(self, node: str, claims: Sequence[ClaimRef]) -> bool:
        listed = self._prepared.cache.get(node)
        return listed is not None and not _uids(listed).isdisjoint(claim.uid for claim in claims)

    def _since_s(self, pod: core.Pod, now_s: float) -> float:
        began = age.moment(pod.status.start_time)
        if began is None:
            return now_s
        return now_s - max(0.0, (self._actors.clock.now() - began).total_seconds())

    def _ended(self, pod: core.Pod) -> None:
        node, uid = pod.spec.node_name, pod.metadata.uid
        self._addresses.give_back(node, uid)
        self._holding.release(node, uid)
        if self._holding.is_behind(node) and self._is_ours(node):
            self.saying.add(node)

    def _is_ours(self, node: str) -> bool:
        found = self._nodes.cache.get(node)
        return found is not None and is_hollow(found)

    def _lookup(self, pod: core.Pod) -> Lookup:
        return lambda name: self._claims.cache.get(name, pod.metadata.namespace)

    # -- one pod --------------------------------------------------------------------------------

    async def _play(self, key: Key) -> Again | None:
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None:
            return None
        view = pod.view(core.Pod)
        life = self._lives.get(pod.uid)
        if life is None or not self._is_ours(view.spec.node_name):
            return None
        lacking, claims = self._needs(view)
        if lacking and not life.has_started:
            self._ended(view)  # what was about to be prepared is not, any more
        refusal = self._admit(view, life)  # there may be room since it was seen
        step = plan(view, life, lacking, self._stages, self._actors.clock.monotonic_s(), refusal)
        try:
            return await self._do(step, pod, life, claims)
        except errors.NotFound:
            return None  # its end is told in a moment

    def _needs(self, pod: core.Pod) -> tuple[str, tuple[ClaimRef, ...]]:
        try:
            return "", claims_of(pod, self._lookup(pod), self._offered(pod.spec.node_name))
        except NotReady as why:
            return str(why), ()

    async def _do(
        self,
        step: Step,
        pod: Object,
        life: Life,
        claims: tuple[ClaimRef, ...],
    ) -> Again | None:
        now = age.timestamp(self._actors.clock.now())
        match step:
            case Rest():
                self._ended_if_finished(pod)
            case Wait(until_s):
                return Again(max(_AT_ONCE_S, until_s - self._actors.clock.monotonic_s()))
            case Explain(reason, message):
                said = statuses.explained(pod, reason, message)
                if said is not None:
                    await self._write(pod, said)
            case Refuse():
                return await self._refuse(pod)
            case Start():
                return await self._start(pod, life, claims)
            case Exit(code, True, _):
                await self._write(pod, statuses.crashed(pod, code, now))
                life.since_s = self._actors.clock.monotonic_s()
            case Exit(code, False, reason):
                await self._write(pod, statuses.exited(pod, code, reason, now))
            case Revive():
                await self._write(pod, statuses.revived(pod, now))
                life.since_s = self._actors.clock.monotonic_s()
            case Leave():
                await self._leave(pod, now)
        return None

    async def _refuse(self, pod: Object) -> Again | None:
        """By the word of the server: nobody takes a refusal back, and a cache may be behind.

        The node may have more by now. And while a list is taken over piece by piece, pods show
        up before the end of others whose room they were given.
        """
        view = pod.view(core.Pod)
        own = self._actors.of_node(view.spec.node_name)
        node = await own.resource("", "v1", "nodes", namespaced=False).get(view.spec.node_name)
        is_current = self._pods.cache.get(pod.name, pod.namespace) is pod
        if not is_current or not self._pods.has_heard(pod.resource_version):
            return Again(_SOON_S)
        refusal = self._admission.admit(view, node.view(core.Node).status.allocatable)
        if refusal is None:
            return Again(_AT_ONCE_S)
        await self._write(pod, statuses.refused(refusal.reason, refusal.message))
        return None

    async def _start(self, pod: Object, life: Life, claims: tuple[ClaimRef, ...]) -> Again | None:
        view = pod.view(core.Pod)
        node = view.spec.node_name
        self._holding.hold(node, pod.uid, claims)
        if not self._holding.says(node, claims):
            self._speak_first(node, Key.of(pod))
            return None
        try:
            await self._confirm(view, claims)
        except NotReady:
            self._holding.release(node, pod.uid)
            self.saying.add(node)
            return Again(_SOON_S)
        address = "" if view.spec.host_network else self._addresses.take(node, self._network(node), pod.uid)
        now = age.timestamp(self._actors.clock.now())
        await self._write(pod, statuses.started(pod, address, now))
        life.has_started = True
        life.since_s = self._actors.clock.monotonic_s()
        return None

    async def _confirm(self, pod: core.Pod, claims: tuple[ClaimRef, ...]) -> None:
        """N1, by the word of the server: a cache may be behind."""
        own = self._actors.of_node(pod.spec.node_name)
        asking = own.resource("resource.k8s.io", "v1", "resourceclaims")
        for claim in claims:
            try:
                found = await asking.get(claim.name, claim.namespace)
            except (errors.NotFound, errors.Forbidden) as gone:
                raise NotReady(str(gone)) from None
            if found.uid != claim.uid:
                raise NotReady(f"claim {claim.name} is another one now")
            require_ready(pod, found)

    async def _leave(self, pod: Object, now: str) -> None:
        view = pod.view(core.Pod)
        node = view.spec.node_name
        if not view.is_finished:
            pod = await self._write(pod, statuses.exited(pod, statuses.STOPPED, "", now))
        self._addresses.give_back(node, pod.uid)
        self._holding.release(node, pod.uid)
        if self._holding.is_behind(node):
            self._speak_first(node, Key.of(pod))
            return
        if pod.view(core.Pod).metadata.deletion_grace_period_seconds != 0:
            await self._resource(node).delete(pod.name, pod.namespace, uid=pod.uid, grace_period_s=0)

    def _ended_if_finished(self, pod: Object) -> None:
        view = pod.view(core.Pod)
        if view.is_finished:
            self._ended(view)

    async def _write(self, pod: Object, status: Fields) -> Object:
        metadata = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        patch = {"metadata": metadata, "status": status}
        node = pod.view(core.Pod).spec.node_name
        return await self._resource(node).patch(pod.name, patch, pod.namespace, subresource="status")

    def _resource(self, node: str) -> Resource:
        return self._actors.of_node(node).resource("", "v1", "pods")

    def _network(self, node: str) -> str:
        found = self._nodes.cache.get(node)
        return str((found.fields.get("spec") or {}).get("podCIDR") or "") if found is not None else ""

    # -- what a node has prepared ---------------------------------------------------------------

    def _speak_first(self, node: str, key: Key) -> None:
        """The pod is looked at again once its node has spoken (H3)."""
        self._holding.wait(node, key)
        self.saying.add(node)

    async def _say(self, name: str) -> None:
        node = self._nodes.cache.get(name)
        if node is None or not is_hollow(node):
            return
        wanted = self._holding.wanted(name)
        if self._holding.is_behind(name):
            await self._publish(node, [claim._asdict() for claim in wanted])
        for key in self._holding.said(name, [claim.uid for claim in wanted]):
            self.playing.add(key)
        require(self._holding.says(name, wanted), "H2: what was accepted is what is said")

    async def _publish(self, node: Object, claims: list[Fields]) -> None:
        """Each write follows the one before it, so that none comes late and overtakes another.

        After an answer that did not come nobody knows which one was the last: then the
        server is asked. `since` differs between processes, so that the first word of each one
        moves the list on, even if it says the same.
        """
        prepared = self._actors.of_node(node.name).of(kinds.PREPARED_CLAIMS)
        version = self._versions.pop(node.name, "") or await _version(prepared, node.name)
        status = {"since": self._since, "claims": claims}
        if version:
            patch = {"metadata": {"resourceVersion": version}, "status": status}
            written = await prepared.patch(node.name, patch, subresource="status")
        else:
            metadata = {"name": node.name, "ownerReferences": [owner_reference(node)]}
            body = {"apiVersion": prepared.api_version, "kind": "PreparedClaims", "metadata": metadata}
            written = await prepared.create({**body, "status": status})
        self._versions[node.name] = written.resource_version


async def _version(prepared: Resource, node: str) -> str:
    try:
        return (await prepared.get(node)).resource_version
    except errors.NotFound:
        return ""


def _uids(prepared: Object) -> frozenset[str]:
    claims = (prepared.fields.get("status") or {}).get("claims") or ()
    return frozenset(one["uid"] for one in claims)


def _node_name(pod: Object) -> tuple[str, ...]:
    name = pod.view(core.Pod).spec.node_name
    return (name,) if name else ()


def _place_in_line(pod: Object) -> tuple[bool, str, Key]:
    """Whoever runs, then the older one: nobody remembers in which order they were bound."""
    view = pod.view(core.Pod)
    return view.status.phase != "Running", view.metadata.creation_timestamp, Key.of(pod)


def _claim_keys(pod: Object) -> tuple[str, ...]:
    """An index function: bound pods that wait, by the claims they name."""
    view = pod.view(core.Pod)
    if not view.spec.node_name or view.status.phase not in ("", "Pending"):
        return ()
    return tuple(str(Key(pod.namespace, name)) for name in podclaims.names(view))
