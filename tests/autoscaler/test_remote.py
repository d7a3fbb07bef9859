"""A provider over gRPC, asked through a real socket: what it says, leaves out and gets wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object, encode, protobuf
from allot.autoscaler import Origin, ProviderFailed, RemoteProvider, read_groups
from allot.autoscaler.groups import Configuration, GroupEntry, Offer, Template, whole
from allot.autoscaler.providers.remote import NODE, SLICE, group_name
from allot.autoscaler.templates import groups_of, template_for
from allot.base import SystemClock
from allot.fleet import fleet
from allot.scheduler import SOURCE
from allot.wire import CallFailed, Code, cloudprovider, remote
from planning.clusters import cluster

MEMBER = next(fleet("gpu", 1).members())
NODE_BYTES = protobuf.encode_message(MEMBER.node, NODE)
SLICE_BYTES = tuple(protobuf.encode_message(one, SLICE) for one in MEMBER.slices)


class Scripted:
    """Answers as it is told, and remembers what it was asked to do."""

    def __init__(self, *groups: cloudprovider.NodeGroup) -> None:
        self.told = groups or (cloudprovider.NodeGroup("gpus", 0, 5),)
        self.targets = {one.id: 0 for one in self.told}
        self.template = cloudprovider.NodeGroupTemplateNodeInfoResponse(node_bytes=NODE_BYTES)
        self.price: float | None = None
        self.options: cloudprovider.NodeGroupAutoscalingOptions | None = None
        self.instances: tuple[cloudprovider.Instance, ...] = ()
        self.done: list[Any] = []
        self.hangs: set[str] = set()

    async def answer(self, name: str, asked: Any) -> Any:
        if name in self.hangs:
            await asyncio.Event().wait()
        match name:
            case "NodeGroups":
                return cloudprovider.NodeGroupsResponse(self.told)
            case "NodeGroupTargetSize":
                return cloudprovider.NodeGroupTargetSizeResponse(self.targets[asked.id])
            case "NodeGroupNodes":
                return cloudprovider.NodeGroupNodesResponse(self.instances)
            case "NodeGroupForNode":
                return cloudprovider.NodeGroupForNodeResponse(
                    self.told[0] if asked.node.provider_id else None
                )
            case "NodeGroupTemplateNodeInfo":
                if self.template is None:
                    raise CallFailed(Code.UNIMPLEMENTED, "")
                is_first = asked.id == self.told[0].id
                return (
                    self.template
                    if is_first
                    else cloudprovider.NodeGroupTemplateNodeInfoResponse(node_bytes=NODE_BYTES)
                )
            case "PricingNodePrice":
                if self.price is None:
                    raise CallFailed(Code.UNIMPLEMENTED, "")
                assert asked.end_timestamp.seconds - asked.start_timestamp.seconds == 3600
                assert (asked.start_time, asked.end_time) == (asked.start_timestamp, asked.end_timestamp)
                return cloudprovider.PricingNodePriceResponse(self.price)
            case "NodeGroupGetOptions":
                if self.options is None:
                    raise CallFailed(Code.UNIMPLEMENTED, "")
                return cloudprovider.NodeGroupAutoscalingOptionsResponse(self.options)
            case "NodeGroupIncreaseSize":
                self.targets[asked.id] += asked.delta
        self.done.append(asked)
        return {one.name: one.told for one in METHODS}[name]()

    def handlers(self):
        def by(method: Any) -> Any:
            return method.by(lambda asked: self.answer(method.name, asked))

        return [by(method) for method in METHODS]


METHODS = (
    cloudprovider.GROUPS,
    cloudprovider.GROUP_FOR_NODE,
    cloudprovider.NODE_PRICE,
    cloudprovider.CLEANUP,
    cloudprovider.REFRESH,
    cloudprovider.TARGET_SIZE,
    cloudprovider.INCREASE,
    cloudprovider.DELETE_NODES,
    cloudprovider.DECREASE,
    cloudprovider.NODES,
    cloudprovider.TEMPLATE,
    cloudprovider.OPTIONS,
)
Story = Callable[[RemoteProvider], Awaitable[Any]]


def told(scripted: Scripted, folder: Path, story: Story, file: str = "", timeout_s: float = 20.0) -> Any:
    """The story, with a provider at a unix socket."""
    known = read_groups(file) if file else Configuration()

    async def whole() -> Any:
        at = remote.Endpoint(address=f"unix:{folder}/p.sock")
        server, _ = await remote.serve(at, scripted.handlers())
        provider = RemoteProvider(remote.dial(at), known, SystemClock(), timeout_s, survey_s=0.0)
        try:
            return await story(provider)
        finally:
            await provider.close()
            await server.close()

    return asyncio.run(whole())


def surveyed(scripted: Scripted, folder: Path, file: str = "", nodes: Any = ()) -> Any:
    return told(scripted, folder, lambda provider: provider.survey({one.name: one for one in nodes}), file)


def node(name: str, provider_id: str = "", **labels: str) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels}
    return Object(encode({"metadata": metadata, "spec": {"providerID": provider_id}}))


def test_a_survey_says_how_groups_stand(tmp_path: Path):
    scripted = Scripted(cloudprovider.NodeGroup("gpus", 1, 5), cloudprovider.NodeGroup("none", 0, 0))
    scripted.targets["gpus"], scripted.price = 3, 2.5
    scripted.template = cloudprovider.NodeGroupTemplateNodeInfoResponse(
        node_bytes=NODE_BYTES, resource_slice_bytes=SLICE_BYTES
    )
    scripted.options = cloudprovider.NodeGroupAutoscalingOptions(
        scale_down_unneeded_duration=cloudprovider.Moment(7, 500_000_000),
        max_node_provision_time=cloudprovider.Nanoseconds(9_000_000_000),
    )
    failed = cloudprovider.InstanceErrorInfo("QUOTA", "no more", 1)
    scripted.instances = (
        cloudprovider.Instance("x://1", cloudprovider.InstanceStatus(cloudprovider.InstanceState.RUNNING)),
        cloudprovider.Instance("x://2", cloudprovider.InstanceStatus(error_info=failed)),
    )
    survey = surveyed(scripted, tmp_path, nodes=[node("a", "x://1"), node("b")])
    gpus, none = survey.offers
    assert (gpus.entry.name, gpus.entry.min, gpus.entry.max, gpus.entry.price) == ("gpus", 1, 5, 2.5)
    assert (gpus.target, gpus.closed, gpus.unneeded_s, gpus.arrival_s) == (3, "", 7.5, 9.0)
    assert gpus.broken == (("x://2", "QUOTA: no more"),)
    assert gpus.template.origin is Origin.PROVIDED
    assert gpus.template.node["status"]["allocatable"].keys() == MEMBER.node["status"]["allocatable"].keys()
    assert [one["spec"]["devices"] for one in gpus.template.slices] == [
        one["spec"]["devices"] for one in MEMBER.slices
    ]
    assert (none.entry.max, none.closed) == (0, "")
    assert survey.members == {"a": "gpus"}


def test_a_provider_of_the_older_contract_is_understood(tmp_path: Path):
    scripted = Scripted()
    scripted.template = cloudprovider.NodeGroupTemplateNodeInfoResponse(node_info=NODE_BYTES)
    scripted.options = cloudprovider.NodeGroupAutoscalingOptions(
        scale_down_unneeded_time=cloudprovider.Nanoseconds(4_000_000_000)
    )
    (offer,) = surveyed(scripted, tmp_path).offers
    assert offer.template.node["metadata"]["labels"] == MEMBER.node["metadata"]["labels"]
    assert (offer.unneeded_s, offer.arrival_s) == (4.0, None)


def test_what_a_provider_leaves_out_it_may_leave_out(tmp_path: Path):
    """REMOTE3: prices, options and templates; the administrator's file says the rest."""
    scripted = Scripted()
    scripted.template = None
    (offer,) = surveyed(scripted, tmp_path).offers
    assert (offer.entry.price, offer.template, offer.closed) == (None, None, "")
    file = "{provider: {address: 'x:1'}, groups: [{name: gpus, price: 7, max: 2, source: s}, {name: other}]}"
    (offer,) = surveyed(scripted, tmp_path, file).offers
    assert (offer.entry.price, offer.entry.max, offer.entry.source) == (7.0, 2, "s")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"node_bytes": b"\x0a"}, "its template is not Node in protobuf"),
        ({"node_bytes": b"\xff" * 40}, "its template is not Node in protobuf"),
        ({"node_bytes": NODE_BYTES, "resource_slice_bytes": (b"\x0a",)}, "not ResourceSlice in protobuf"),
        (
            {
                "node_bytes": NODE_BYTES,
                "resource_slice_bytes": (
                    protobuf.encode_message(
                        {"spec": {"driver": "d", "pool": {"name": "p"}, "allNodes": True}}, SLICE
                    ),
                ),
            },
            "devices that nodes share",
        ),
        (
            {
                "node_bytes": protobuf.encode_message(
                    {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "lots"}}}, NODE
                )
            },
            "not a quantity: 'lots'",
        ),
    ],
)
def test_a_template_that_says_nothing_closes_its_group_and_no_other(tmp_path: Path, template: Any, why: str):
    scripted = Scripted(cloudprovider.NodeGroup("gpus", 0, 5), cloudprovider.NodeGroup("good", -1, 5))
    scripted.template = cloudprovider.NodeGroupTemplateNodeInfoResponse(**template)
    bad, good = surveyed(scripted, tmp_path).offers
    assert why in bad.closed and bad.template is None
    assert (good.closed, good.template is None) == ("", False)


@pytest.mark.parametrize("bounds", [(5, 1), (-3, -1), (0, 2**31 - 1), (2**31 - 1, 2**31 - 1)])
def test_bounds_that_make_no_sense_do_no_harm(tmp_path: Path, bounds: tuple[int, int]):
    (offer,) = surveyed(Scripted(cloudprovider.NodeGroup("gpus", *bounds)), tmp_path).offers
    assert 0 <= offer.entry.min <= offer.entry.max <= 10_000
    assert bool(offer.closed) == (bounds != (0, 2**31 - 1))


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_a_price_that_is_none_is_not_used(tmp_path: Path, price: float):
    scripted = Scripted()
    scripted.price = price
    (offer,) = surveyed(scripted, tmp_path).offers
    assert offer.entry.price is None


def test_groups_without_a_name_or_twice_are_left_out(tmp_path: Path):
    scripted = Scripted(*(cloudprovider.NodeGroup(one, 0, 1) for one in ("", "a", "a", "zones/b/c")))
    names = [one.entry.name for one in surveyed(scripted, tmp_path).offers]
    assert names == ["a", group_name("zones/b/c")]
    assert names[1].startswith("zones-b-c-") and group_name("zones/b-c") != names[1]
    assert len(group_name("x/" * 200)) <= 63 and group_name("/") and group_name("é" * 99)


def test_asking_twice_is_asking_once(tmp_path: Path):
    """REMOTE2: sizes are absolute; who was begun anew asks for what is there."""
    scripted = Scripted()
    entry = GroupEntry(name="gpus")

    async def story(provider: RemoteProvider) -> None:
        await provider.survey({})
        for _ in range(2):
            await provider.resize(entry, 3)
        await provider.resize(entry, 2)

    told(scripted, tmp_path, story)
    raised = [one for one in scripted.done if isinstance(one, cloudprovider.NodeGroupIncreaseSizeRequest)]
    assert raised == [cloudprovider.NodeGroupIncreaseSizeRequest(3, "gpus")]


def test_a_node_goes_by_all_that_names_it_and_what_did_not_come_is_forgone(tmp_path: Path):
    scripted = Scripted()
    entry = GroupEntry(name="gpus")

    async def story(provider: RemoteProvider) -> None:
        await provider.survey({"a": node("a", "x://1", zone="z")})
        await provider.remove(entry, "a")
        await provider.forgo(entry, 2)
        await provider.discard(entry, "x://9")
        with pytest.raises(ProviderFailed, match="no group other any more"):
            await provider.resize(GroupEntry(name="other"), 1)

    told(scripted, tmp_path, story)
    assert [one for one in scripted.done if not isinstance(one, cloudprovider.RefreshRequest)] == [
        cloudprovider.NodeGroupDeleteNodesRequest(
            (cloudprovider.ExternalGrpcNode("x://1", "a", {"zone": "z"}),), "gpus"
        ),
        cloudprovider.NodeGroupDecreaseTargetSizeRequest(-2, "gpus"),
        cloudprovider.NodeGroupDeleteNodesRequest(
            (cloudprovider.ExternalGrpcNode("x://9", "x://9"),), "gpus"
        ),
        cloudprovider.CleanupRequest(),
    ]


@pytest.mark.parametrize("method", ["Refresh", "NodeGroups", "NodeGroupTemplateNodeInfo", "NodeGroupForNode"])
def test_a_provider_that_hangs_is_not_waited_for(tmp_path: Path, method: str):
    """REMOTE1."""
    scripted = Scripted(*(cloudprovider.NodeGroup(f"g{n}", 0, 1) for n in range(40)))
    scripted.hangs = {method}

    async def story(provider: RemoteProvider) -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(ProviderFailed, match=f"{method}: DEADLINE_EXCEEDED"):
            await provider.survey({"a": node("a")})
        scripted.hangs.clear()
        await provider.survey({"a": node("a")})
        return asyncio.get_running_loop().time() - began

    assert told(scripted, tmp_path, story, timeout_s=1.0) < 20


def test_a_provider_that_comes_back_is_asked_again_for_everything(tmp_path: Path):
    """It may be another one by now, that knows prices."""

    async def story() -> tuple[Any, Any]:
        at = remote.Endpoint(address=f"unix:{tmp_path}/p.sock")
        provider = RemoteProvider(remote.dial(at), Configuration(), SystemClock(), 20.0, survey_s=0.0)
        with pytest.raises(ProviderFailed, match="Refresh: UNAVAILABLE"):
            await provider.survey({})
        first, second = Scripted(), Scripted()
        second.price = 4.0
        found = []
        for scripted in (first, second):
            server, _ = await remote.serve(at, scripted.handlers())
            found.append(await _sooner_or_later(provider))
            await server.close()
            with pytest.raises(ProviderFailed):
                await provider.survey({})
        await provider.close()
        return found[0].offers[0].entry.price, found[1].offers[0].entry.price

    assert asyncio.run(story()) == (None, 4.0)


async def _sooner_or_later(provider: RemoteProvider) -> Any:
    for _ in range(200):
        try:
            return await provider.survey({})
        except ProviderFailed:
            await asyncio.sleep(0.05)
    raise AssertionError("it did not come back")


def test_devices_come_from_what_is_published_under_the_name_that_a_template_gives():
    """AUTO-08: a provider that knows no devices names whose they are like; what was learned counts before."""
    said = {**MEMBER.node, "metadata": {**MEMBER.node["metadata"], "annotations": {SOURCE: "like"}}}
    offered = protobuf.decode_message(protobuf.encode_message(said, NODE), NODE)
    template = whole("gpus", offered, [], "its template", Origin.PROVIDED)
    published = [
        Object(encode({**one, "spec": {**one["spec"], "nodeName": "like"}})) for one in MEMBER.slices
    ]
    entry = GroupEntry(name="gpus")
    found = template_for(entry, {}, published, said=template)
    assert found is not None and found.origin is Origin.PROVIDED
    more = found.named("new", "gpus")
    assert [one.fields["spec"]["nodeName"] for one in more.slices] == ["new"] * len(published)
    assert more.node.metadata.annotations == {SOURCE: "like"}
    learned = Template({"metadata": {"name": "n"}}, (), Origin.LEARNED)
    assert template_for(entry, {}, published, learned, said=template) is learned
    offer = Offer(entry, 0, template, "closed for now", (), 3.0, 4.0)
    (group,) = groups_of([entry], {}, published, cluster().reading.snapshot, offers={"gpus": offer})
    assert (group.closed, group.unneeded_s, group.arrival_s, group.price) == ("closed for now", 3.0, 4.0, 1.0)
