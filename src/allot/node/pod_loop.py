"""Leads the pods of its nodes through their lives: reads, asks the plan, does the deed, reads again.

What is known of a pod comes from three places: the pod as heard, the node's list (`prepared_loop`)
and the machine. A pod is admitted when it is first seen on its node, so whoever was bound first has
the room; when a node is taken over, those that run come first, then the others by age.

A pod that vanished from the API is stopped, unprepared, taken off the list and removed like any
other; only nothing is written about it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from msgspec.structs import replace

from allot.api import Object, age, core, errors, podclaims
from allot.client import Resource
from allot.informers import Again, Change, Deleted, Key, Reconciler

from . import statuses
from .admission import Admission, Refusal
from .claims import ClaimRef, Lookup, NotReady, Unfinished, Unreserved, claims_of, known_claims, require_ready
from .hosts import Heard, Hosts, node_of, pods_by_node
from .machine import NOTHING, Found, Machine, Rejected
from .plan import PATIENCE_S, PodState, plan
from .prepared_loop import PreparedLoop
from .stages import (
    Deed,
    Delete,
    Explain,
    List,
    Prepare,
    Refuse,
    Remove,
    Report,
    Rest,
    Run,
    Stop,
    Unlist,
    Unprepare,
    Wait,
)

Fields = dict[str, Any]

_SOON_S, _LATE_S = 1.0, 60.0
_AT_ONCE_S = 0.01  # a wait that rounding made nothing would not move a clock


@dataclass(slots=True)
class Life:
    pod: Object  # as last heard or written
    view: core.Pod
    node: str
    state: PodState
    let_go: tuple[ClaimRef, ...] = ()  # no longer held, and perhaps still listed
    denials: int = 0  # of its claims, by the server or a driver, against the cache
    asked: dict[str, Object] = field(default_factory=dict)  # its claims by name, where none are heard of
    verdict: Fields | None = None  # that it is over, said and not answered


Pause = Again | None


class PodLoop:
    def __init__(
        self,
        hosts: Hosts,
        heard: Heard,
        machine: Machine,
        *,
        patience_s: float = PATIENCE_S,
        publishes: bool = True,
        heeds_classic: bool = True,
    ) -> None:
        self._hosts = hosts
        self._heard = heard
        self._machine = machine
        self._patience_s = patience_s
        self._heeds_classic = heeds_classic
        self._lives: dict[str, Life] = {}  # by uid
        self._taken_over: set[str] = set()  # nodes whose machine said what is there
        self._admission = Admission()
        self._on_node = pods_by_node(heard.pods)
        self._using = heard.pods.cache.index("claims of waiting pods", _claim_keys)
        self.playing: Reconciler[str] = Reconciler(
            f"{hosts.name}_pods", self._play, hosts.clock, hosts.telemetry, workers=hosts.workers
        )
        self.prepared = PreparedLoop(hosts, heard, self._take_over, self.playing.add, publishes=publishes)
        machine.changed(self._changed)

    # -- hearing --------------------------------------------------------------------------------

    def on_pod(self, change: Change) -> None:
        pod = change.object
        node = node_of(pod)
        if not node:
            return
        if isinstance(change, Deleted):
            self._vanished(pod)
        elif self._is_ours(node) and self._meet(pod):
            if self._heard.claims is None:
                self._changed(pod.uid)
            else:
                self.playing.add(pod.uid)

    def on_claim(self, change: Change) -> None:
        """Somebody may have waited for it. Pods that run do not mind."""
        for pod in self._using[str(Key.of(change.object))]:
            if pod.uid in self._lives:
                self._changed(pod.uid)

    def _changed(self, uid: str) -> None:
        """Whatever the pod waited for may be there."""
        life = self._lives.get(uid)
        if life is not None:
            life.state.retry_s = None
        self.playing.add(uid)

    def on_node(self, change: Change) -> None:
        node = change.object
        if isinstance(change, Deleted):
            self._forget_node(node.name)
        elif self._hosts.is_ours(node):
            if node.name not in self._taken_over:
                self.prepared.saying.add(node.name)
            for pod in sorted(self._on_node[node.name], key=_place_in_line):
                self._meet(pod)
                self.playing.add(pod.uid)

    def _meet(self, pod: Object) -> bool:
        """Remember the pod as it is now. False if that is no news: the node wrote it."""
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = self._begun(pod)
        elif life.pod.resource_version == pod.resource_version:
            life.pod, life.view = pod, pod.view(core.Pod)  # those that all others share
            return False
        elif _is_before(pod, life.pod):
            return False
        life.pod, life.view, life.state.is_gone = pod, pod.view(core.Pod), False
        life.state.refusal = self._admit(life)
        return True

    def _begun(self, pod: Object) -> Life:
        """One that runs already brings its claims along.

        So does one that an earlier process was about to start: that it runs may still be
        written, late, so its claims stay on the list.
        """
        view, node = pod.view(core.Pod), node_of(pod)
        life = Life(
            pod, view, node, PodState(self._hosts.clock.monotonic_s(), is_kept=self._hosts.keeps_ended)
        )
        claims = known_claims(view, self._lookup(life))
        if claims and (view.status.phase == "Running" or self._is_listed(node, claims)):
            if view.is_finished:
                life.let_go = claims
            else:
                self._hold(life, claims)
        return life

    def _is_listed(self, node: str, claims: tuple[ClaimRef, ...]) -> bool:
        return not self.prepared.listed(node).isdisjoint(claim.uid for claim in claims)

    def _vanished(self, pod: Object) -> None:
        life = self._lives.get(pod.uid)
        if life is None:
            return
        life.pod, life.view, life.state.is_gone = pod, pod.view(core.Pod), True
        if life.state.is_there or life.state.held:
            self.playing.add(pod.uid)
        else:
            self._forget(life)

    def _forget(self, life: Life) -> None:
        self._admission.release(life.view)
        self._lives.pop(life.pod.uid, None)

    def _forget_node(self, node: str) -> None:
        self.prepared.forget(node)
        self._admission.forget(node)
        self._taken_over.discard(node)
        for pod in self._on_node[node]:
            self._lives.pop(pod.uid, None)

    def _is_ours(self, name: str) -> bool:
        found = self._heard.node(name)
        return found is not None and self._hosts.is_ours(found)

    # -- reading --------------------------------------------------------------------------------

    async def _play(self, uid: str) -> Pause:
        life = self._lives.get(uid)
        if life is None:
            return None
        if not self._is_ours(life.node):
            del self._lives[uid]
            return None
        if life.node not in self._taken_over:
            await self._take_over(life.node)
        if self._heard.claims is None and self._waits_for_claims(life):
            await self._ask(life)
        self._read(life)
        try:
            while self._lives.get(uid) is life:
                if life.verdict is not None and not (life.view.is_finished or life.state.is_gone):
                    await self._end(life, life.verdict)
                now_s = self._hosts.clock.monotonic_s()
                match plan(life.view, life.state, now_s, self._patience_s):
                    case Rest():
                        if life.state.is_gone and not (life.state.is_there or life.state.held):
                            self._forget(life)
                        return None
                    case Wait(until_s):
                        return Again(max(_AT_ONCE_S, until_s - now_s))
                    case deed:
                        is_done, pause = await self._do(deed, life)
                        if not is_done:
                            return pause
        except errors.NotFound:
            pass  # its end is told in a moment
        return None

    async def _take_over(self, node: str) -> None:
        """Learn what the machine has, of pods that the API does not show any more too (N5, N8)."""
        if node in self._taken_over:
            return
        for found in await self._machine.standing(node):
            life = self._lives.get(found.pod.uid)
            if life is None:
                state = PodState(
                    self._hosts.clock.monotonic_s(), is_gone=True, is_kept=self._hosts.keeps_ended
                )
                life = self._lives[found.pod.uid] = Life(found.pod, found.pod.view(core.Pod), node, state)
                self.playing.add(found.pod.uid)
            if not life.state.is_there:
                self._find(life, found)
        self._taken_over.add(node)

    def _find(self, life: Life, found: Found) -> None:
        state = life.state
        state.is_there = True
        state.devices = found.devices
        state.is_told = bool(found.claims) and found.devices is None
        state.observed, state.reported = found.observed, found.reported
        if found.claims:
            self._hold(life, found.claims)
        state.refusal = self._admit(life)

    def _read(self, life: Life) -> None:
        """What may have changed since the pod was last looked at; the rest is changed by deeds."""
        state = life.state
        state.is_fresh = False
        if self._waits_for_claims(life):
            self._read_claims(life)
        if state.refusal is not None:
            state.refusal = self._admit(life)  # there may be room by now
        state.is_unlisted = not state.held and self._is_unlisted(life)
        state.is_doubted = self._is_heard(life.node) and statuses.is_doubted(life.pod, state.reported)

    def _is_heard(self, name: str) -> bool:
        """While a node counts as lost, its pods are not to be counted on: it says first that it is there."""
        node = self._heard.node(name)
        conditions = node.view(core.Node).status.conditions if node is not None else ()
        return all(one.status == "True" for one in conditions if one.type == "Ready")

    def _waits_for_claims(self, life: Life) -> bool:
        state = life.state
        if state.observed.containers:
            return False
        return state.retry_s is None or self._hosts.clock.monotonic_s() >= state.retry_s

    async def _ask(self, life: Life) -> None:
        """For the claims of the pod, by name: who may not list them is not told of them either."""
        asking = self._claims(life.node)
        for name in podclaims.names(life.view):
            try:
                life.asked[name] = await asking.get(name, life.pod.namespace)
            except (errors.NotFound, errors.Forbidden):
                life.asked.pop(name, None)

    def _read_claims(self, life: Life) -> None:
        state = life.state
        state.retry_s = None
        try:
            state.needs = claims_of(
                life.view,
                self._lookup(life),
                self._offered(life.node),
                heeds_classic=self._heeds_classic,
            )
            state.lacking, state.is_barred = "", False
        except NotReady as why:
            state.needs, state.lacking = (), str(why)
            state.is_barred = isinstance(why, Unreserved)
            if self._heard.claims is None:
                state.retry_s = self._later(life)
        state.is_listed = state.held == state.needs and self.prepared.says(life.node, state.needs)

    def _is_unlisted(self, life: Life) -> bool:
        if life.let_go and self.prepared.lacks(life.node, life.let_go):
            life.let_go = ()
        return not life.let_go

    def _admit(self, life: Life) -> Refusal | None:
        """Whether there is room for the pod; once there was, it has it until it has ended."""
        pod, observed = life.view, life.state.observed
        if pod.is_finished:
            if not observed.runs:
                self._admission.release(pod)
        elif observed.containers or pod.status.phase == "Running":
            self._admission.count(pod, self._offered(life.node))
        elif not pod.metadata.deletion_timestamp:
            return self._admission.admit(pod, self._offered(life.node))
        return None

    def _offered(self, name: str) -> Mapping[str, str]:
        """What a node has for pods, device plugins included, as last told."""
        node = self._heard.node(name)
        return node.view(core.Node).status.allocatable if node is not None else {}

    def _lookup(self, life: Life) -> Lookup:
        if self._heard.claims is None:
            return life.asked.get
        cache = self._heard.claims.cache
        return lambda name: cache.get(name, life.pod.namespace)

    def _later(self, life: Life) -> float:
        """When it is tried again: each time after a longer wait."""
        wait_s = min(_LATE_S, _SOON_S * 2.0 ** min(life.denials, 10))
        life.denials += 1
        return self._hosts.clock.monotonic_s() + wait_s

    # -- doing ----------------------------------------------------------------------------------

    async def _do(self, deed: Deed, life: Life) -> tuple[bool, Pause]:
        """Whether it is done; what is not is looked at again after the pause, or when told."""
        state, machine = life.state, self._machine
        match deed:
            case Refuse():
                return await self._refuse(life)
            case Explain(reason, message):
                said = statuses.explained(life.pod, reason, message)
                if said is not None:
                    await self._write(life, said)
                state.explained = message
            case List():
                return self._list(life)
            case Prepare():
                return await self._prepare(life)
            case Run():
                await self._run(life)
            case Stop(grace_s):
                state.observed = await machine.stop(life.node, life.pod, grace_s)
                state.is_fresh = True
            case Report():
                await self._report(life)
            case Unprepare():
                return await self._unprepare(life)
            case Unlist():
                return self._unlist(life)
            case Remove():
                await machine.remove(life.node, life.pod.uid)
                state.observed, state.is_there = NOTHING, False
                self._admission.release(life.view)
            case Delete():
                name, namespace = life.pod.name, life.pod.namespace
                await self._pods(life.node).delete(name, namespace, uid=life.pod.uid, grace_period_s=0)
                return False, None  # what comes of it is heard
            case Rest() | Wait():
                pass
            case _:
                assert_never(deed)
        return True, None

    async def _refuse(self, life: Life) -> tuple[bool, Pause]:
        """By the word of the server: nobody takes a refusal back, and a cache may be behind.

        The node may have more by now. And while a list is taken over piece by piece, pods show
        up before the end of others whose room they were given.
        """
        if life.state.is_barred:
            return await self._bar(life)
        pod = life.pod
        nodes = self._hosts.client(life.node).resource("", "v1", "nodes", namespaced=False)
        node = await nodes.get(life.node)
        if life.pod is not pod or not self._heard.pods.has_heard(pod.resource_version):
            return False, Again(_SOON_S)
        offered = node.view(core.Node).status.allocatable
        refusal = self._admission.admit(life.view, offered)
        if refusal is None:
            return False, Again(_AT_ONCE_S)
        if self._admission.would_fit(life.view, offered, self._leaving(life)):
            return await self._wait_for_room(life, refusal)
        await self._end(life, statuses.refused(refusal))
        return True, None

    def _leaving(self, life: Life) -> Iterator[core.Pod]:
        """Whom the API does not show any more, and who is being ended on the node of `life`."""
        return (one.view for one in self._lives.values() if one.state.is_gone and one.node == life.node)

    async def _wait_for_room(self, life: Life, refusal: Refusal) -> tuple[bool, Pause]:
        """A scheduler takes the room of a pod that was deleted by force for free before the node does: that
        is nobody's mistake, and nobody is refused for it."""
        state = life.state
        if self._hosts.clock.monotonic_s() >= state.seen_s + self._patience_s and not state.explained:
            state.explained = f"pods that were deleted are still being ended: {refusal.shortage}"
            said = statuses.explained(life.pod, refusal.reason, state.explained)
            if said is not None:
                await self._write(life, said)
        return False, Again(_SOON_S)

    async def _run(self, life: Life) -> None:
        state = life.state
        state.is_there = True
        try:
            state.observed = await self._machine.run(life.node, life.pod, state.devices or {})
        except Rejected as why:
            await self._reject(life, why)
        state.is_fresh = True

    async def _reject(self, life: Life, why: Rejected) -> None:
        """The machine has the last word: it knows which devices are behind what is counted."""
        self._hosts.complain(life.pod, why.reason, str(why))
        await self._end(life, statuses.refused(why))
        self._admission.release(life.view)

    async def _bar(self, life: Life) -> tuple[bool, Pause]:
        """Likewise by the word of the server: the claim may have been reserved by now, or be another."""
        asking = self._claims(life.node)
        try:
            for use in podclaims.used(life.view):
                claim = await asking.get(use.name, life.pod.namespace)
                require_ready(life.view, claim, use.is_generated)
        except Unreserved as why:
            self._hosts.complain(life.pod, "FailedPrepareDynamicResources", f"the pod never starts: {why}")
            await self._end(life, statuses.barred(str(why)))
            return True, None
        except (NotReady, errors.NotFound, errors.Forbidden):
            pass
        life.state.retry_s = self._later(life)
        life.state.is_barred = False
        return True, None

    def _list(self, life: Life) -> tuple[bool, Pause]:
        state = life.state
        self._hold(life, state.needs)
        state.is_unlisted = False
        state.is_listed = self.prepared.says(life.node, state.held)
        if state.is_listed:
            return True, None
        self.prepared.call_when_spoken(life.node, life.pod.uid)
        return False, None

    def _unlist(self, life: Life) -> tuple[bool, Pause]:
        state = life.state
        if state.held:
            life.let_go, state.held = state.held, ()
            self.prepared.release(life.node, life.pod.uid)
        state.is_listed, state.is_unlisted = False, self._is_unlisted(life)
        if state.is_unlisted:
            return True, None
        self.prepared.call_when_spoken(life.node, life.pod.uid)
        return False, None

    def _hold(self, life: Life, claims: tuple[ClaimRef, ...]) -> None:
        life.state.held = claims
        self.prepared.hold(life.node, life.pod.uid, claims)

    async def _prepare(self, life: Life) -> tuple[bool, Pause]:
        state = life.state
        try:
            claims = await self._confirmed(life)
        except NotReady as why:
            state.needs, state.lacking = (), str(why)
            self._failed(life, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {why}")
            return True, None
        state.is_there = True
        try:
            state.devices = await self._machine.prepare(life.node, life.pod, claims)
        except Rejected as why:
            await self._reject(life, why)
            return True, None
        except NotReady as why:
            state.is_told |= isinstance(why, Unfinished)
            state.trouble = str(why)
            self._failed(life, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {why}")
            return True, None
        state.is_told, state.trouble, life.denials = False, "", 0
        return True, None

    async def _unprepare(self, life: Life) -> tuple[bool, Pause]:
        """The pod does not end before that is done."""
        state = life.state
        try:
            await self._machine.unprepare(life.node, life.pod, state.held)
        except NotReady as why:
            reason = "FailedUnprepareDynamicResources"
            self._failed(life, reason, f"Failed to unprepare dynamic resources: {why}")
            return False, Again((state.retry_s or 0.0) - self._hosts.clock.monotonic_s())
        state.devices, state.is_told, life.denials = None, False, 0
        return True, None

    def _failed(self, life: Life, reason: str, message: str) -> None:
        life.state.retry_s = self._later(life)
        self._hosts.complain(life.pod, reason, message)

    async def _confirmed(self, life: Life) -> list[Object]:
        """N1, by the word of the server: a cache may be behind."""
        asking = self._claims(life.node)
        found = []
        for claim in life.state.held:
            try:
                one = await asking.get(claim.name, claim.namespace)
            except (errors.NotFound, errors.Forbidden) as gone:
                raise NotReady(str(gone)) from None
            if one.uid != claim.uid:
                raise NotReady(f"claim {claim.name} is another one now")
            require_ready(life.view, one)
            found.append(one)
        return found

    async def _report(self, life: Life) -> None:
        state = life.state
        observed, now = state.observed.seen, age.timestamp(self._hosts.clock.now())
        must_go = bool(life.view.metadata.deletion_timestamp)
        say = statuses.ended if observed.has_ended or must_go else statuses.observed
        await self._write(life, say(life.pod, observed, now))
        state.reported, state.is_doubted = observed, False
        if life.view.is_finished:
            self._admission.release(life.view)

    async def _end(self, life: Life, status: Fields) -> None:
        """The pod is over before anything of it ran. While no answer comes, that may still arrive: nobody
        takes it back, and nothing of the pod is started meanwhile (N7)."""
        life.verdict = status
        try:
            await self._write(life, status)
        except (errors.Timeout, errors.Unavailable, errors.Internal):
            raise
        except errors.ApiError:
            life.verdict = None
            raise
        life.verdict = None

    async def _write(self, life: Life, status: Fields) -> None:
        pod = life.pod
        metadata = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        patch = {"metadata": metadata, "status": status}
        written = await self._pods(life.node).patch(pod.name, patch, pod.namespace, subresource="status")
        if life.pod is pod or _is_before(life.pod, written):
            phase = status.get("phase", life.view.status.phase)
            # Nothing else was written, and reading all of it again would cost more than the rest.
            life.pod = written
            life.view = replace(life.view, status=replace(life.view.status, phase=phase))

    def _claims(self, node: str) -> Resource:
        return self._hosts.client(node).resource("resource.k8s.io", "v1", "resourceclaims")

    def _pods(self, node: str) -> Resource:
        return self._hosts.client(node).resource("", "v1", "pods")


def _is_before(pod: Object, other: Object) -> bool:
    """Of the same pod; a server that does not count its versions is believed."""
    mine, theirs = pod.resource_version, other.resource_version
    return mine.isdigit() and theirs.isdigit() and int(mine) < int(theirs)


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
