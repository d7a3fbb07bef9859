"""The autoscaler as it runs: it listens, decides, and does one thing after the other.

    news      whatever changes in the cluster wakes it; between two decisions there is a pause
    deciding  `deciding`, on a fork of what was heard: nothing is written
    acting    groups are resized, nodes marked, pods evicted, empty nodes removed
    telling   events on pods and nodes, a ConfigMap that shows how it stands, metrics

What was learned of groups is kept in another ConfigMap, so that a group whose last node has gone can grow
again after a restart, and which templates promised too much in a third. Nothing else has to survive one:
sizes are absolute, a young node is taken for what it will be, and a node on its way out says so.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from allot.api import Gates, Object, age, errors
from allot.base import Clock, Ids, Metrics
from allot.client import Client
from allot.informers import NORMAL, WARNING, Election, Events, Informers, Telemetry, lead_forever
from allot.planning import belongs_to_node
from allot.scheduler import PodInfo, deciding_plugins
from allot.scheduler import Settings as SchedulerSettings

from .classic import Asked, unready
from .deciding import Decider, Decision, Settings, View
from .following import Following
from .groups import LABEL, LEAVING, Configuration, Group, Origin, Template
from .memory import Late, Memory, Patience
from .providers import Cloud, Provider, ProviderFailed
from .shapes import BadGroups, check_shapes
from .surveying import Surveying
from .templates import group_of, groups_of

log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
STATUS: Final = "allot-autoscaler-status"
TEMPLATES: Final = "allot-autoscaler-templates"
BROKEN: Final = "allot-autoscaler-broken-templates"
HELPLESS_MAX: Final = 20
"""Shown in the status; every pod has its event."""
KEPT_MAX: Final = 100
"""Nodes of which the status says why they stay: a ConfigMap holds a megabyte."""


@dataclass(frozen=True, slots=True)
class Pace:
    pause_s: float = 1.0  # between two decisions, at least
    period_s: float = 10.0  # and at most


@dataclass(frozen=True, slots=True)
class Options:
    configuration: Configuration
    settings: Settings = field(default_factory=Settings)
    patience: Patience = field(default_factory=Patience)
    pace: Pace = field(default_factory=Pace)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Dependencies:
    client: Client
    informers: Informers
    provider: Provider
    clock: Clock
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    gates: Gates
    extenders: Mapping[str, Asked] = field(default_factory=dict)  # drivers that can be asked, by name
    cloud: Cloud | None = None  # the provider, if it knows more than what it is told


async def run(
    dependencies: Dependencies,
    options: Options,
    election: Election | None = None,
    *,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Until cancelled; with an election, only while this copy leads."""

    async def term() -> None:
        await Autoscaler(dependencies, options).run(ready)

    if election is None:
        await term()
    else:
        await lead_forever(election, term)


class Autoscaler:
    def __init__(self, dependencies: Dependencies, options: Options) -> None:
        self._client, self._clock = dependencies.client, dependencies.clock
        self._provider, self._extenders = dependencies.provider, dependencies.extenders
        self._options = options
        entries = {entry.name: entry for entry in options.configuration.groups}
        self._surveying = Surveying(entries, dependencies.cloud)
        self._told_to_go: dict[str, float] = {}  # nodes that the provider was told of, until when: by uid
        self._refused: dict[str, str] = {}  # why groups did not grow this time
        plugins = deciding_plugins(dependencies.ids, options.scheduler)
        self._following = Following(
            self._client,
            dependencies.informers,
            plugins,
            dependencies.gates,
            self._clock,
            dependencies.telemetry,
        )
        self._decider = Decider(options.settings, plugins)
        self._memory = Memory(options.patience)
        self._untold: list[Late] = []
        self._events = Events(
            self._client,
            "allot-autoscaler",
            self._clock,
            dependencies.ids,
            dependencies.telemetry,
            dependencies.metrics,
        )
        self._maps = self._client.resource("", "v1", "configmaps")
        self._written: dict[str, Mapping[str, str]] = {}
        metrics = dependencies.metrics
        self._sizes = metrics.gauge("allot_autoscaler_nodes", "Nodes there are or come.", "group", "state")
        self._helpless = metrics.gauge("allot_autoscaler_helpless_pods", "Pods that no node would help.")
        self._changes = metrics.counter(
            "allot_autoscaler_nodes_changed_total", "Nodes that were asked for or removed.", "group", "change"
        )
        self._decisions = metrics.histogram("allot_autoscaler_decision_seconds", "How long a decision takes.")

    async def run(self, ready: Callable[[], None]) -> None:
        beside = [asyncio.ensure_future(work) for work in (self._events.run(), self._following.run())]
        try:
            await self._begin()
            ready()
            while True:
                await self._insist(self.once)
                await asyncio.sleep(self._options.pace.pause_s)
                await self._stirred()
        finally:
            for task in beside:
                task.cancel()
            self._following.end()

    async def _begin(self) -> None:
        """All is known then that there is to know before the first decision. It is asked for until then."""
        while True:
            try:
                self._memory.learned.update(await self._remembered())
                self._memory.broken.update(await self._data(BROKEN))
                await self._following.begin()
                return
            except errors.ApiError as refused:
                log.warning("the autoscaler cannot begin yet: %s", refused)
                self._following.end()
            await asyncio.sleep(self._options.pace.pause_s)

    async def _stirred(self) -> None:
        """Something has happened, or enough time has passed: what is late is late without any news."""
        try:
            async with asyncio.timeout(self._options.pace.period_s):
                await self._following.stirred.wait()
        except TimeoutError:
            pass
        self._following.stirred.clear()

    async def _insist(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except errors.ApiError as refused:
            log.warning("the autoscaler tries again: %s", refused)

    async def once(self) -> Decision:
        """One decision, and what follows from it."""
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        view = await self._surveying.look(self._following.view(now))
        unsettled = self._memory.unsettled(view.nodes.values(), (pod.object for pod in view.waiting))
        groups = groups_of(
            self._surveying.entries.values(),
            view.nodes,
            view.slices,
            view.snapshot,
            self._memory.learned,
            unsettled,
            self._surveying.offers,
        )
        waits = await unready(self._extenders, [one.node for one in self._memory.arriving])
        promises = {one.name: one.template for one in groups if one.template is not None}
        expected = {
            name: promises[group] for name in unsettled if (group := group_of(view.nodes[name])) in promises
        }
        self._untold += self._memory.observe(view.nodes.values(), view.slices, now_s, waits, expected)
        if not self._options.dry_run:
            await self._keep(BROKEN, self._memory.broken)  # before anybody is told (Y4)
        late = [*self._untold]
        while self._untold:
            self._tell_late(self._untold.pop(0))
        self._learn(groups)
        await self._hear_of_machines(late, now_s)
        self._surveying.expect(groups, self._memory, now_s)
        begun = await self._decider.begin(view, self._memory, groups, now, now_s, self._extenders)
        decision = self._decider.decide(view, begun, now_s)
        self._decisions.observe(self._clock.monotonic_s() - now_s)
        self._helpless.set(len(decision.growth.helpless))
        if self._options.dry_run:
            self._log(decision)
            return decision
        await self._act(decision, view, {group.name: group for group in groups}, now_s)
        self._tell(decision, view)
        await self._show(decision, view, groups)
        await self._keep(TEMPLATES, _kept(self._memory.learned))
        return decision

    # -- acting ---------------------------------------------------------------------------------

    async def _hear_of_machines(self, late: Sequence[Late], now_s: float) -> None:
        """Those that will be no nodes are given up, and the provider is told so."""
        for entry, one in self._surveying.newly_broken():
            log.warning("machine %s of group %s: %s", one.instance, entry.name, one.why)
            self._memory.give_up(entry.name, 1)
            self._memory.wait(entry.name, now_s, one.why)
            if not self._options.dry_run:
                await self._surveying.discard(entry, one)
        if not self._options.dry_run:
            await self._surveying.forgo(late)

    async def _act(self, decision: Decision, view: View, groups: Mapping[str, Group], now_s: float) -> None:
        self._refused.clear()
        for name, group in self._surveying.mislabelled(self._following.nodes).items():
            await self._label(name, group)
        for name, count in decision.grow.items():
            await self._grow(groups[name], count, now_s)
        for name in decision.keep:
            await self._taint(view.nodes[name], leaves=False)
        if self._surveying.away:
            return  # nobody would remove what was emptied
        for name in decision.mark:
            await self._taint(view.nodes[name], leaves=True)
        for pod in decision.evict:
            await self._evict(pod)
        for name in decision.remove:
            await self._remove(view.nodes[name])

    async def _grow(self, group: Group, count: int, now_s: float) -> None:
        wanted = group.size + self._memory.coming(group.name) + count
        try:
            await self._provider.resize(self._surveying.entries[group.name], wanted)
        except ProviderFailed as failed:
            log.warning("group %s does not grow to %d: %s", group.name, wanted, failed)
            self._refused[group.name] = str(failed)
            self._memory.wait(group.name, now_s, f"the provider did not do it: {failed}")
            return
        log.info("group %s grows to %d", group.name, wanted)
        self._changes.add(count, group.name, "asked")
        self._memory.order(group, count, now_s)

    async def _label(self, name: str, group: str) -> None:
        try:
            await self._nodes.patch(name, {"metadata": {"labels": {LABEL: group or None}}})
        except (errors.Conflict, errors.NotFound):
            return

    async def _taint(self, node: Object, *, leaves: bool) -> None:
        taints = [one for one in (node.fields.get("spec") or {}).get("taints") or () if one["key"] != LEAVING]
        if leaves:
            taints.append({"key": LEAVING, "effect": "NoSchedule"})
        log.info("node %s %s", node.name, "is to be emptied" if leaves else "stays after all")
        version = {"resourceVersion": node.resource_version}
        try:
            await self._nodes.patch(node.name, {"metadata": version, "spec": {"taints": taints}})
        except (errors.Conflict, errors.NotFound):
            return  # it is another one by now: the next decision sees it

    async def _evict(self, pod: PodInfo) -> None:
        pods = self._client.resource("", "v1", "pods")
        try:
            await pods.evict(pod.key.name, pod.key.namespace)
        except (errors.NotFound, errors.Conflict):
            return
        except errors.TooManyRequests as kept:
            log.info("pod %s stays for now: %s", pod.key, kept)
            return
        self._events.record(pod.object, NORMAL, "ScaleDown", f"node {pod.spec.node_name} is not needed")

    async def _remove(self, node: Object) -> None:
        group, now_s = group_of(node), self._clock.monotonic_s()
        entry = self._surveying.entries.get(group)
        self._told_to_go = {uid: until_s for uid, until_s in self._told_to_go.items() if now_s < until_s}
        if entry is None or node.uid in self._told_to_go:
            return
        if await self._is_used(node.name):
            return
        try:
            await self._provider.remove(entry, node.name)
        except ProviderFailed as failed:
            log.warning("node %s is not removed: %s", node.name, failed)
            return
        self._told_to_go[node.uid] = now_s + self._options.patience.backoff_s
        log.info("node %s of group %s is removed", node.name, group)
        self._changes.add(1, group, "removed")

    async def _is_used(self, node: str) -> bool:
        """Asked once more (Y2): what was heard may be old, and so may be what a scheduler has heard."""
        pods = self._client.resource("", "v1", "pods")
        there = (await pods.list(field_selector=f"spec.nodeName={node}")).objects
        found = [PodInfo.of(one) for one in there]
        return any(not belongs_to_node(pod) and not pod.view.is_finished for pod in found)

    @property
    def _nodes(self) -> Any:
        return self._client.resource("", "v1", "nodes", namespaced=False)

    # -- telling --------------------------------------------------------------------------------

    def _tell(self, decision: Decision, view: View) -> None:
        for node in decision.growth.nodes:
            for pod in node.pods:
                if node.group in self._refused:
                    words = f"group {node.group} did not grow: {self._refused[node.group]}"
                    self._events.record(pod.object, WARNING, "FailedScaleUp", words)
                    continue
                words = f"pod triggered scale-up: a node of group {node.group} is asked for"
                self._events.record(pod.object, NORMAL, "TriggeredScaleUp", words)
        for pod in view.waiting:
            why = decision.growth.helpless.get(pod.uid)
            if why is not None and self._surveying.away:
                why = f"the provider does not answer: {self._surveying.away}"
            if why is not None:
                words = f"pod didn't trigger scale-up: {why}"
                self._events.record(pod.object, NORMAL, "NotTriggerScaleUp", words)

    def _tell_late(self, late: Late) -> None:
        if late.node is None:
            log.warning("a node of group %s was asked for and has not come", late.group)
            return
        words = f"not what the template of group {late.group} promises: {'; '.join(late.missing)}"
        log.warning("node %s: %s", late.node.name, words)
        self._events.record(late.node, WARNING, "TemplateBroken", words)

    def _log(self, decision: Decision) -> None:
        for name, count in decision.grow.items():
            log.info("dry run: group %s would grow by %d", name, count)
        for name in decision.mark:
            log.info("dry run: node %s would be emptied and removed", name)

    async def _show(self, decision: Decision, view: View, groups: Sequence[Group]) -> None:
        kept = dict([*decision.kept.items()][:KEPT_MAX])
        shown: dict[str, Any] = {"groups": {}, "helpless": {}, "kept": kept}
        if self._surveying.cloud is not None:
            shown["provider"] = self._surveying.away or "answers"
        for group in groups:
            coming = self._memory.coming(group.name)
            arriving = sum(one.group == group.name for one in self._memory.arriving)
            self._sizes.set(group.size, group.name, "there")
            self._sizes.set(coming + arriving, group.name, "coming")
            shown["groups"][group.name] = {
                "nodes": group.size,
                "coming": coming + arriving,
                "min": group.least,
                "max": group.most,
                "template": group.template.origin.value if group.template is not None else "unknown",
                "closed": group.closed or self._memory.closed(group, self._clock.monotonic_s()),
            }
        names = {pod.uid: str(pod.key) for pod in view.waiting}
        for uid, why in [*decision.growth.helpless.items()][:HELPLESS_MAX]:
            shown["helpless"][names.get(uid, uid)] = why
        await self._keep(STATUS, {"status": json.dumps(shown, indent=2)})

    # -- what is kept ---------------------------------------------------------------------------

    def _learn(self, groups: Sequence[Group]) -> None:
        for group in groups:
            if group.template is not None and group.template.origin is Origin.LEARNED:
                self._memory.learned[group.name] = group.template

    async def _keep(self, name: str, data: Mapping[str, str]) -> None:
        """As a ConfigMap, written where it differs from what was written last."""
        if self._written.get(name, {}) == data:
            return
        told = {"allot.dev/last-updated": age.timestamp(self._clock.now())}
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": told},
            "data": dict(data),
        }
        try:
            await self._maps.patch(name, wanted, NAMESPACE)
        except errors.NotFound:
            await self._maps.create(wanted, NAMESPACE)
        self._written[name] = dict(data)

    async def _data(self, name: str) -> dict[str, str]:
        try:
            found = await self._maps.get(name, NAMESPACE)
        except errors.NotFound:
            return {}
        return dict(found.fields.get("data") or {})

    async def _remembered(self) -> dict[str, Template]:
        learned = {}
        for group, text in (await self._data(TEMPLATES)).items():
            try:
                kept = msgspec.json.decode(text, type=_Kept)
                check_shapes(kept.node, kept.slices, "it")
                if not (kept.node.get("metadata") or {}).get("name"):
                    raise BadGroups("a node without a name")
            except (msgspec.DecodeError, BadGroups) as wrong:
                log.warning("what was learned of group %s cannot be read: %s", group, wrong)
                continue
            learned[group] = Template(kept.node, kept.slices, Origin.LEARNED)
        return learned


class _Kept(msgspec.Struct, frozen=True):
    node: dict[str, Any]
    slices: tuple[dict[str, Any], ...] = ()


def _kept(templates: Mapping[str, Template]) -> dict[str, str]:
    """Templates as a ConfigMap has them."""
    return {
        group: msgspec.json.encode(_Kept(template.node, template.slices)).decode()
        for group, template in templates.items()
    }
