"""A provider in another process: the cluster autoscaler's external gRPC protocol, as its client.

A survey asks which groups there are, how large each is meant to be, what a node of it would be, what it
costs and which machines failed; then, for nodes that were not asked about before, whose they are. It is
asked anew after SURVEY_S at the earliest; whose a node is, when that is not known.

What it promises
    REMOTE1  A call ends within its time, and a survey within SURVEY_CALLS_S of them: a provider that hangs,
             is away or speaks nonsense is a ProviderFailed, and nothing of ours waits for it longer.
    REMOTE2  Sizes are absolute. The target is read before it is raised, and raised by what is missing; so
             asking twice, or by two autoscalers one after the other, gives what asking once would.
    REMOTE3  What a provider may leave out it may leave out: prices, templates, options. What it says and
             cannot be used closes the one group, with the reason, and no other.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Iterable, Mapping
from hashlib import sha256
from math import inf
from typing import Any, Final

from msgspec import structs

from allot.api import Fields, Object, names, protobuf
from allot.base import Clock
from allot.wire import CallFailed, Channel, Code, Unary, cloudprovider

from ..groups import NODES_MAX, Broken, Configuration, GroupEntry, Offer, Origin, Template, whole
from ..shapes import BadGroups, check_shapes
from .contract import ProviderFailed, Survey

log = logging.getLogger(__name__)

SURVEY_S: Final = 10.0
SURVEY_CALLS_S: Final = 6
"""How many calls one after the other a survey may take the time of."""
STRANGERS_S: Final = 60.0
"""How long a node that is in no group is left alone."""
AT_ONCE: Final = 8
GROUPS_MAX: Final = 1_000
TOLD_MAX: Final = 400
NODE: Final = "io.k8s.api.core.v1.Node"
SLICE: Final = "io.k8s.api.resource.v1.ResourceSlice"
_HOUR_S: Final = 3600
_ANSWERLESS: Final = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)


class RemoteProvider:
    def __init__(
        self,
        channel: Channel,
        configuration: Configuration,
        clock: Clock,
        timeout_s: float = 5.0,
        survey_s: float = SURVEY_S,
        usual: tuple[float, float] = (600.0, 900.0),
    ) -> None:
        """`usual` is how long nodes are not needed before they go, and how long they may take to come."""
        self._channel, self._clock = channel, clock
        self._timeout_s, self._survey_s = timeout_s, survey_s
        self._usual = _as_options(*usual)
        self._known_better = {entry.name: entry for entry in configuration.groups}
        self._ids: dict[str, str] = {}  # of groups, by the name that we give them
        self._nodes: Mapping[str, Object] = {}
        self._groups_of: dict[str, str] = {}  # by who a node is; none: ""
        self._strangers_s = -inf  # when those in no group were last asked about
        self._offers: tuple[Offer, ...] = ()
        self._lacks: set[str] = set()  # methods that it does not have
        self._surveyed_s = -inf
        self._at_once = asyncio.Semaphore(AT_ONCE)

    # -- asking -----------------------------------------------------------------------------------

    async def survey(self, nodes: Mapping[str, Object]) -> Survey:
        self._nodes = nodes
        try:
            async with asyncio.timeout(SURVEY_CALLS_S * self._timeout_s):
                if self._clock.monotonic_s() - self._surveyed_s >= self._survey_s:
                    await self._look()
                await self._ask_whose(nodes.values())
        except TimeoutError:
            self._surveyed_s = -inf
            raise ProviderFailed("the provider takes too long to answer everything") from None
        except ProviderFailed:
            self._surveyed_s = -inf
            self._lacks.clear()  # who comes back may be another
            raise
        whose = {name: self._groups_of.get(_who(node), "") for name, node in nodes.items()}
        return Survey(self._offers, {name: group for name, group in whose.items() if group})

    async def _look(self) -> None:
        await self._call(cloudprovider.REFRESH, cloudprovider.RefreshRequest())
        answer = await self._call(cloudprovider.GROUPS, cloudprovider.NodeGroupsRequest())
        groups: dict[str, cloudprovider.NodeGroup] = {}
        for one in answer.node_groups[:GROUPS_MAX]:
            if one.id and group_name(one.id) not in groups:
                groups[group_name(one.id)] = one
            else:
                log.warning("the provider has a group without a name, or twice: %r", one.id[:TOLD_MAX])
        if len(answer.node_groups) > GROUPS_MAX:
            log.warning("the provider has %d groups; the first %d count", len(answer.node_groups), GROUPS_MAX)
        self._ids = {name: one.id for name, one in groups.items()}
        self._offers = tuple(await _all(self._offer(name, one) for name, one in groups.items()))
        self._groups_of = {
            who: group for who, group in self._groups_of.items() if not group or group in groups
        }
        self._surveyed_s = self._clock.monotonic_s()

    async def _offer(self, name: str, group: cloudprovider.NodeGroup) -> Offer:
        entry = self._known_better.get(name) or GroupEntry(name=name)
        bounded = structs.replace(
            entry, min=max(entry.min, group.min_size), max=min(entry.max, group.max_size)
        )
        if not 0 <= bounded.min <= bounded.max <= NODES_MAX:
            why = f"its bounds are {group.min_size} and {group.max_size}"
            return Offer(structs.replace(bounded, min=0, max=max(0, min(bounded.max, NODES_MAX))), closed=why)
        try:
            sized = cloudprovider.NodeGroupTargetSizeRequest(group.id)
            target = (await self._call(cloudprovider.TARGET_SIZE, sized)).target_size
            listed = await self._call(cloudprovider.NODES, cloudprovider.NodeGroupNodesRequest(group.id))
            template = await self._template(name, group.id)
            priced = structs.replace(bounded, price=await self._price(entry, group.id, template))
            options = await self._options(group.id)
        except (_Refused, BadGroups) as wrong:
            return Offer(bounded, closed=f"the provider says of it: {wrong}")
        broken = tuple(_broken(one) for one in listed.instances if _is_broken(one))
        closed = "it grows to its maximum at once or not at all" if options.zero_or_max_node_scaling else ""
        unneeded_s = _seconds(options.scale_down_unneeded_duration, options.scale_down_unneeded_time)
        arrival_s = _seconds(options.max_node_provision_duration, options.max_node_provision_time)
        return Offer(priced, target, template, closed, broken, unneeded_s, arrival_s)

    async def _template(self, name: str, id: str) -> Template | None:
        """Raises BadGroups: there is one, and it says nothing."""
        request = cloudprovider.NodeGroupTemplateNodeInfoRequest(id)
        found = await self._optional(cloudprovider.TEMPLATE, request)
        data = (found.node_bytes or found.node_info) if found is not None else b""
        if found is None or not data:
            return None
        try:
            node = protobuf.decode_message(data, NODE)
            slices = [protobuf.decode_message(one, SLICE) for one in found.resource_slice_bytes]
        except protobuf.Unreadable as junk:
            raise BadGroups(f"its template is {junk}") from None
        check_shapes(node, slices, "its template")
        return whole(name, node, slices, "its template", Origin.PROVIDED)

    async def _price(self, entry: GroupEntry, id: str, template: Template | None) -> float | None:
        """Of an hour. What the administrator wrote counts more."""
        if entry.price is not None or template is None:
            return entry.price
        now_s = int(self._clock.now().timestamp())
        begin, end = cloudprovider.Moment(now_s), cloudprovider.Moment(now_s + _HOUR_S)
        metadata = template.node["metadata"]
        node = cloudprovider.ExternalGrpcNode(
            (template.node.get("spec") or {}).get("providerID") or "",
            metadata["name"],
            metadata.get("labels") or {},
            metadata.get("annotations") or {},
        )
        request = cloudprovider.PricingNodePriceRequest(node, begin, end, begin, end)
        answer = await self._optional(cloudprovider.NODE_PRICE, request)
        if answer is None:
            return None
        if not 0 <= answer.price < inf:
            log.warning("the provider says that a node of group %s costs %s", id[:TOLD_MAX], answer.price)
            return None
        return float(answer.price)

    async def _options(self, id: str) -> cloudprovider.NodeGroupAutoscalingOptions:
        request = cloudprovider.NodeGroupAutoscalingOptionsRequest(id, self._usual)
        found = await self._optional(cloudprovider.OPTIONS, request)
        said = found.node_group_autoscaling_options if found is not None else None
        return said if said is not None else cloudprovider.NodeGroupAutoscalingOptions()

    async def _ask_whose(self, nodes: Iterable[Object]) -> None:
        """Nodes stay in their group. Those in none are asked about again after a while."""
        there = {_who(node): node for node in nodes}
        now_s = self._clock.monotonic_s()
        again = now_s - self._strangers_s >= STRANGERS_S
        if again:
            self._strangers_s = now_s
        self._groups_of = {
            who: group for who, group in self._groups_of.items() if who in there and (group or not again)
        }
        await _all(self._whose(node) for who, node in there.items() if who not in self._groups_of)

    async def _whose(self, node: Object) -> None:
        request = cloudprovider.NodeGroupForNodeRequest(_as_asked(node))
        try:
            found = (await self._call(cloudprovider.GROUP_FOR_NODE, request)).node_group
        except _Refused as refused:
            log.debug("the provider says of node %s: %s", node.name, refused)
            found = None
        name = group_name(found.id) if found is not None and found.id else ""
        self._groups_of[_who(node)] = name if name in self._ids else ""

    # -- telling ----------------------------------------------------------------------------------

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        """REMOTE2."""
        id = self._id(group)
        try:
            sized = cloudprovider.NodeGroupTargetSizeRequest(id)
            target = (await self._call(cloudprovider.TARGET_SIZE, sized)).target_size
            if nodes > target:
                raised = cloudprovider.NodeGroupIncreaseSizeRequest(nodes - target, id)
                await self._call(cloudprovider.INCREASE, raised)
        finally:
            self._surveyed_s = -inf

    async def remove(self, group: GroupEntry, node: str) -> None:
        known = self._nodes.get(node)
        if known is not None:
            await self._delete(group, _as_asked(known))

    async def forgo(self, group: GroupEntry, nodes: int) -> None:
        try:
            less = cloudprovider.NodeGroupDecreaseTargetSizeRequest(-nodes, self._id(group))
            await self._call(cloudprovider.DECREASE, less)
        finally:
            self._surveyed_s = -inf

    async def discard(self, group: GroupEntry, instance: str) -> None:
        await self._delete(group, cloudprovider.ExternalGrpcNode(instance, instance))

    async def _delete(self, group: GroupEntry, node: cloudprovider.ExternalGrpcNode) -> None:
        try:
            request = cloudprovider.NodeGroupDeleteNodesRequest((node,), self._id(group))
            await self._call(cloudprovider.DELETE_NODES, request)
        finally:
            self._surveyed_s = -inf

    async def close(self) -> None:
        """The provider is told that nobody asks it any more, if it was asked at all."""
        if self._ids:
            try:
                await self._call(cloudprovider.CLEANUP, cloudprovider.CleanupRequest())
            except ProviderFailed as failed:
                log.info("the provider did not clean up: %s", failed)
        await self._channel.close()

    def _id(self, group: GroupEntry) -> str:
        found = self._ids.get(group.name)
        if found is None:
            raise ProviderFailed(f"the provider has no group {group.name} any more")
        return found

    # -- calls ------------------------------------------------------------------------------------

    async def _optional(self, method: Unary[Any, Any], request: Any) -> Any:
        """None: it does not have this (REMOTE3)."""
        if method.name in self._lacks:
            return None
        try:
            return await self._call(method, request)
        except _Refused as refused:
            if refused.code is not Code.UNIMPLEMENTED:
                raise
            self._lacks.add(method.name)
            return None

    async def _call(self, method: Unary[Any, Any], request: Any) -> Any:
        async with self._at_once:
            try:
                return await self._channel.call(method, request, timeout_s=self._timeout_s)
            except CallFailed as failed:
                told = f"{method.name}: {str(failed)[:TOLD_MAX]}"
                if failed.code in _ANSWERLESS:
                    raise ProviderFailed(told) from None
                raise _Refused(failed.code, told) from None


class _Refused(ProviderFailed):
    """It is there, and says no."""

    def __init__(self, code: Code, told: str) -> None:
        super().__init__(told)
        self.code = code


_NAME_MAX: Final = 63
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def group_name(id: str) -> str:
    """A provider may call its groups by paths; we need a name that fits into a label."""
    if not names.label_value(id):
        return id
    digest = sha256(id.encode()).hexdigest()[:8]
    fit = _UNFIT.sub("-", id)[-(_NAME_MAX - len(digest) - 1) :].strip("-._")
    return f"{fit}-{digest}" if fit else digest


def _who(node: Object) -> str:
    """A node that gets a `providerID` is another one for its provider."""
    return f"{node.uid} {(node.fields.get('spec') or {}).get('providerID') or ''}"


def _as_options(unneeded_s: float, arrival_s: float) -> cloudprovider.NodeGroupAutoscalingOptions:
    unneeded, arrival = (cloudprovider.Moment(int(one)) for one in (unneeded_s, arrival_s))
    old_unneeded, old_arrival = (cloudprovider.Nanoseconds(int(one * 1e9)) for one in (unneeded_s, arrival_s))
    return cloudprovider.NodeGroupAutoscalingOptions(
        scale_down_unneeded_time=old_unneeded,
        max_node_provision_time=old_arrival,
        scale_down_unneeded_duration=unneeded,
        max_node_provision_duration=arrival,
    )


def _as_asked(node: Object) -> cloudprovider.ExternalGrpcNode:
    spec: Fields = node.fields.get("spec") or {}
    metadata = node.metadata
    return cloudprovider.ExternalGrpcNode(
        spec.get("providerID") or "", node.name, metadata.labels or {}, metadata.annotations or {}
    )


def _is_broken(one: cloudprovider.Instance) -> bool:
    info = one.status.error_info if one.status is not None else None
    return info is not None and bool(info.error_code)


def _broken(one: cloudprovider.Instance) -> Broken:
    assert one.status is not None and one.status.error_info is not None
    info = one.status.error_info
    return Broken(one.id, f"{info.error_code}: {info.error_message}"[:TOLD_MAX].removesuffix(": "))


def _seconds(new: cloudprovider.Moment | None, old: cloudprovider.Nanoseconds | None) -> float | None:
    found = (
        new.seconds + new.nanos / 1e9 if new is not None else old.duration / 1e9 if old is not None else 0.0
    )
    return found if found > 0 else None


async def _all(work: Iterable[Awaitable[Any]]) -> list[Any]:
    """The first failure ends the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return [await one for one in tasks]
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
