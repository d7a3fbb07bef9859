"""Groups of hollow nodes, served over the cluster autoscaler's external gRPC protocol.

For authors of autoscalers and for tests: an autoscaler that speaks the protocol, ours or Kubernetes' own,
grows and shrinks fleets without a machine. A target is set at once; nodes come one after the other behind it.
What is kept is in the API: after a restart the nodes that there are are the target.

Templates carry the slices of the fleet; with `tells_devices` off they carry none, as those of most providers.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from allot.api import Object, errors, protobuf
from allot.client import Client
from allot.wire import CallFailed, Code, Handler, cloudprovider

from ..groups import LABEL, GroupEntry
from ..templates import group_of, provided
from .contract import Provider, ProviderFailed
from .hollow import PROVIDER_ID
from .remote import NODE, SLICE

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
_HOUR_S: Final = 3600


class Serving:
    def __init__(
        self,
        client: Client,
        provider: Provider,
        groups: Iterable[GroupEntry],
        *,
        tells_devices: bool = True,
        delay_s: float = 0.0,
    ) -> None:
        """`delay_s` is how long a node takes to come."""
        self._nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._provider = provider
        self._groups = {entry.name: entry for entry in groups}
        self._tells_devices, self._delay_s = tells_devices, delay_s
        self._targets: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()  # targets are read and set by one call after the other

    def handlers(self) -> tuple[Handler, ...]:
        """Pod prices and options are UNIMPLEMENTED: autoscalers do without."""
        return (
            cloudprovider.GROUPS.by(self.groups),
            cloudprovider.GROUP_FOR_NODE.by(self.group_for_node),
            cloudprovider.NODE_PRICE.by(self.node_price),
            cloudprovider.GPU_LABEL.by(self.gpu_label),
            cloudprovider.GPU_TYPES.by(self.gpu_types),
            cloudprovider.CLEANUP.by(self.cleanup),
            cloudprovider.REFRESH.by(self.refresh),
            cloudprovider.TARGET_SIZE.by(self.target_size),
            cloudprovider.INCREASE.by(self.increase),
            cloudprovider.DELETE_NODES.by(self.delete),
            cloudprovider.DECREASE.by(self.decrease),
            cloudprovider.NODES.by(self.instances),
            cloudprovider.TEMPLATE.by(self.template),
        )

    async def run(self) -> None:
        """For ever: there are as many nodes as were asked for."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(self._delay_s)
            for name, target in [*self._targets.items()]:
                try:
                    await self._provider.resize(self._groups[name], target)
                except ProviderFailed as failed:
                    log.warning("group %s: %s", name, failed)
                    asyncio.get_running_loop().call_later(AGAIN_S, self._changed.set)

    # -- answers: groups and nodes ----------------------------------------------------------------

    async def groups(self, asked: cloudprovider.NodeGroupsRequest) -> cloudprovider.NodeGroupsResponse:
        return cloudprovider.NodeGroupsResponse(tuple(_as_told(one) for one in self._groups.values()))

    async def group_for_node(
        self, asked: cloudprovider.NodeGroupForNodeRequest
    ) -> cloudprovider.NodeGroupForNodeResponse:
        group = ""
        if asked.node is not None and asked.node.provider_id.startswith(PROVIDER_ID):
            node = await self._found(asked.node.provider_id.removeprefix(PROVIDER_ID))
            group = group_of(node) if node is not None else ""
        told = _as_told(self._groups[group]) if group in self._groups else cloudprovider.NodeGroup()
        return cloudprovider.NodeGroupForNodeResponse(told)

    async def instances(
        self, asked: cloudprovider.NodeGroupNodesRequest
    ) -> cloudprovider.NodeGroupNodesResponse:
        entry = self._group(asked.id)
        there = [_instance(node.name, _RUNNING) for node in await self._members(entry)]
        coming = max(0, await self._target(entry) - len(there))
        made = [_instance(f"{entry.name}-coming-{number}", _CREATING) for number in range(coming)]
        return cloudprovider.NodeGroupNodesResponse((*there, *made))

    async def template(
        self, asked: cloudprovider.NodeGroupTemplateNodeInfoRequest
    ) -> cloudprovider.NodeGroupTemplateNodeInfoResponse:
        entry = self._group(asked.id)
        known = provided(entry)
        if known is None:
            why = f"group {entry.name}: no fleet of the catalogue is called {entry.fleet!r}"
            raise CallFailed(Code.FAILED_PRECONDITION, why)
        like = known.named(f"{entry.name}-template", entry.name)
        node = like.node.fresh()
        node["metadata"] = {"name": like.name, "labels": like.node.metadata.labels}
        data = protobuf.encode_message(node, NODE)
        shown = like.slices if self._tells_devices else ()
        slices = tuple(protobuf.encode_message(one.fresh(), SLICE) for one in shown)
        return cloudprovider.NodeGroupTemplateNodeInfoResponse(data, data, slices)

    async def node_price(
        self, asked: cloudprovider.PricingNodePriceRequest
    ) -> cloudprovider.PricingNodePriceResponse:
        """The file's prices are those of an hour."""
        group = (asked.node.labels if asked.node is not None else {}).get(LABEL, "")
        entry = self._group(group)
        begin, end = asked.start_timestamp or asked.start_time, asked.end_timestamp or asked.end_time
        if begin is None or end is None or end.seconds < begin.seconds:
            raise CallFailed(Code.INVALID_ARGUMENT, "from when until when?")
        price = 1.0 if entry.price is None else entry.price
        return cloudprovider.PricingNodePriceResponse(price * (end.seconds - begin.seconds) / _HOUR_S)

    # -- answers: sizes ---------------------------------------------------------------------------

    async def target_size(
        self, asked: cloudprovider.NodeGroupTargetSizeRequest
    ) -> cloudprovider.NodeGroupTargetSizeResponse:
        return cloudprovider.NodeGroupTargetSizeResponse(await self._target(self._group(asked.id)))

    async def increase(
        self, asked: cloudprovider.NodeGroupIncreaseSizeRequest
    ) -> cloudprovider.NodeGroupIncreaseSizeResponse:
        entry = self._group(asked.id)
        if asked.delta <= 0:
            raise CallFailed(Code.INVALID_ARGUMENT, f"a group grows by one at least, not by {asked.delta}")
        async with self._turn:
            wanted = await self._target(entry) + asked.delta
            if wanted > entry.max:
                why = f"group {entry.name} may have {entry.max} nodes, not {wanted}"
                raise CallFailed(Code.OUT_OF_RANGE, why)
            self._aim(entry, wanted)
        return cloudprovider.NodeGroupIncreaseSizeResponse()

    async def decrease(
        self, asked: cloudprovider.NodeGroupDecreaseTargetSizeRequest
    ) -> cloudprovider.NodeGroupDecreaseTargetSizeResponse:
        entry = self._group(asked.id)
        if asked.delta >= 0:
            raise CallFailed(Code.INVALID_ARGUMENT, f"{asked.delta} is not below nothing")
        async with self._turn:
            there, wanted = len(await self._members(entry)), await self._target(entry) + asked.delta
            if wanted < there:
                why = f"group {entry.name} has {there} nodes: whoever wants fewer names them"
                raise CallFailed(Code.FAILED_PRECONDITION, why)
            self._aim(entry, wanted)
        return cloudprovider.NodeGroupDecreaseTargetSizeResponse()

    async def delete(
        self, asked: cloudprovider.NodeGroupDeleteNodesRequest
    ) -> cloudprovider.NodeGroupDeleteNodesResponse:
        """All of them or none: a node of another group is refused before anything is done."""
        entry = self._group(asked.id)
        async with self._turn:
            members = {node.name for node in await self._members(entry)}
            going = {one.provider_id.removeprefix(PROVIDER_ID) or one.name for one in asked.nodes}
            if strangers := going - members:
                why = f"not in group {entry.name}: {', '.join(sorted(strangers))}"
                raise CallFailed(Code.FAILED_PRECONDITION, why)
            wanted = await self._target(entry) - len(going)
            if wanted < entry.min:
                raise CallFailed(Code.FAILED_PRECONDITION, f"group {entry.name} has {entry.min} at least")
            self._aim(entry, wanted)
            for name in sorted(going):
                try:
                    await self._provider.remove(entry, name)
                except ProviderFailed as failed:
                    raise CallFailed(Code.INTERNAL, str(failed)) from None
        return cloudprovider.NodeGroupDeleteNodesResponse()

    # -- answers: what hollow nodes have none of ---------------------------------------------------

    async def gpu_label(self, asked: cloudprovider.GPULabelRequest) -> cloudprovider.GPULabelResponse:
        return cloudprovider.GPULabelResponse()

    async def gpu_types(
        self, asked: cloudprovider.GetAvailableGPUTypesRequest
    ) -> cloudprovider.GetAvailableGPUTypesResponse:
        return cloudprovider.GetAvailableGPUTypesResponse()

    async def cleanup(self, asked: cloudprovider.CleanupRequest) -> cloudprovider.CleanupResponse:
        return cloudprovider.CleanupResponse()

    async def refresh(self, asked: cloudprovider.RefreshRequest) -> cloudprovider.RefreshResponse:
        return cloudprovider.RefreshResponse()

    # -- what there is ------------------------------------------------------------------------------

    def _group(self, id: str) -> GroupEntry:
        found = self._groups.get(id)
        if found is None:
            raise CallFailed(Code.NOT_FOUND, f"there is no group {id!r}")
        return found

    async def _members(self, entry: GroupEntry) -> Sequence[Object]:
        try:
            return (await self._nodes.list(label_selector=f"{LABEL}={entry.name}")).objects
        except errors.ApiError as refused:
            raise CallFailed(Code.UNAVAILABLE, str(refused)) from None

    async def _found(self, name: str) -> Object | None:
        try:
            return await self._nodes.get(name)
        except errors.NotFound:
            return None
        except errors.ApiError as refused:
            raise CallFailed(Code.UNAVAILABLE, str(refused)) from None

    async def _target(self, entry: GroupEntry) -> int:
        """What was asked for; before that, what there is."""
        if entry.name not in self._targets:
            self._targets.setdefault(entry.name, len(await self._members(entry)))
        return self._targets[entry.name]

    def _aim(self, entry: GroupEntry, nodes: int) -> None:
        log.info("group %s: %d nodes are wanted", entry.name, nodes)
        self._targets[entry.name] = nodes
        self._changed.set()


_RUNNING, _CREATING = cloudprovider.InstanceState.RUNNING, cloudprovider.InstanceState.CREATING


def _as_told(entry: GroupEntry) -> cloudprovider.NodeGroup:
    return cloudprovider.NodeGroup(
        entry.name, entry.min, entry.max, f"hollow nodes of the fleet {entry.fleet}"
    )


def _instance(name: str, state: cloudprovider.InstanceState) -> cloudprovider.Instance:
    return cloudprovider.Instance(f"{PROVIDER_ID}{name}", cloudprovider.InstanceStatus(state))
