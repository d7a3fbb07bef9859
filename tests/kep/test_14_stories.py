"""The use stories of KEP-14, from the YAML in examples/compute to what containers are given."""

import pytest
import yaml

from allot.api import Object, compute, core, errors, meta
from allot.scheduler.compute import ComputeClasses, Offer
from tidy.documents import ROOT

from .compute import RAW, Place, class_, cr, given, heard, named, node, pod, put, to_a_cluster
from .objects import NS
from .test_14_scheduling import stays_pending

NIC, FPGA = "sfc.com/nic", "xilinx.com/fpga"
_PLURALS = {
    "Namespace": ("", "namespaces"),
    "ResourceQuota": ("", "resourcequotas"),
    "Pod": ("", "pods"),
    "Deployment": ("apps", "deployments"),
}


async def apply(here: Place, name: str) -> None:
    """As `kubectl apply -f` does."""
    for one in yaml.safe_load_all((ROOT / "examples" / "compute" / name).read_text()):
        if one["kind"] == "ResourceClass":
            await put(here, one)
            continue
        await heard(here)  # classes and pods reach the scheduler on watches of their own
        group, plural = _PLURALS[one["kind"]]
        resource = here.client.resource(group, "v1", plural, namespaced=plural != "namespaces")
        own = "" if plural == "namespaces" else one["metadata"].get("namespace", NS)
        await resource.create(one, own)
        if one["kind"] == "ResourceQuota":
            await in_force(here, resource, one)
    await heard(here)


async def in_force(here: Place, quotas, wanted) -> None:
    async def so() -> bool:
        found = await quotas.get(wanted["metadata"]["name"], wanted["metadata"]["namespace"])
        return (found.fields.get("status") or {}).get("hard") == wanted["spec"]["hard"]

    await here.until(so, "the quota is in force")


async def bound(here: Place, name: str, namespace: str = NS) -> Object:
    pods = here.client.resource("", "v1", "pods")

    async def so() -> bool:
        return bool((await pods.get(name, namespace)).fields["spec"].get("nodeName"))

    await here.until(so, f"{name} has a node")
    return await pods.get(name, namespace)


def gpu(type_: str, **more: str) -> dict[str, str]:
    return {"type": type_, **more}


@to_a_cluster()
async def test_many_types_of_gpus(here: Place):
    """14-STORY-01"""
    await put(here, node("n1", *(cr(gpu(one), 2) for one in ("k20", "k80", "p40"))))
    await put(here, node("n2", *(cr(gpu(one), 2) for one in ("p100", "v100"))))
    await apply(here, "gpu-types.yaml")
    assert given(await bound(here, "train", "research")) == {"gpu-v100": {named(gpu("v100")): 2}}
    assert given(await bound(here, "homework", "teaching")) == {"gpu-k80": {named(gpu("k80")): 1}}
    pods = here.client.resource("", "v1", "pods")
    for namespace, asked in (("research", "gpu-v100"), ("teaching", "gpu-v100"), ("teaching", "gpu-k80")):
        more = pod("more", {asked: 1})
        more["metadata"]["namespace"] = namespace
        with pytest.raises(errors.Forbidden, match="exceeded quota"):
            await pods.create(more, namespace)


@to_a_cluster()
async def test_nics_by_speed_and_ability(here: Place):
    """14-STORY-02, 14-STORY-05: who needs few abilities is served by what has more."""
    slow, fast = {"speed": "10Gbps"}, {"speed": "40Gbps"}
    rich = {"speed": "100Gbps", "rdma": "true", "ptp": "true"}
    await put(here, node("n1", cr(slow, 1, NIC), cr(fast, 1, NIC), cr(rich, 1, NIC)))
    await apply(here, "nics.yaml")
    assert given(await bound(here, "slow")) == {"nic-10g": {named(slow, NIC): 1}}
    assert given(await bound(here, "rdma")) == {"nic-rdma": {named(rich, NIC): 1}}
    assert given(await bound(here, "fast")) == {"nic-40g": {named(fast, NIC): 1}}


@to_a_cluster()
async def test_fpgas_by_function(here: Place):
    """14-STORY-03"""
    one, both = {"crypto": "true"}, {"crypto": "true", "sdn": "true"}
    await put(here, node("n1", cr(one, 1, FPGA), cr(both, 1, FPGA)))
    await apply(here, "fpga.yaml")
    assert given(await bound(here, "gateway")) == {"fpga-sdn-crypto": {named(both, FPGA): 1}}
    assert given(await bound(here, "tls")) == {"fpga-crypto": {named(one, FPGA): 1}}


@to_a_cluster()
async def test_three_rates_and_a_new_type(here: Place):
    """14-STORY-04: the class alone changes."""
    await put(
        here, node("n1", cr(gpu("k80")), cr(gpu("p40")), cr(gpu("v100"), 1)), node("n2", cr(gpu("a100")))
    )
    await apply(here, "tiers.yaml")
    for tier, type_ in (("silver", "k80"), ("gold", "p40"), ("platinum", "v100")):
        assert given(await bound(here, tier)) == {f"gpu-{tier}": {named(gpu(type_)): 1}}
    await put(here, pod("next", {"gpu-platinum": 1}))
    await stays_pending(here, "next", "Insufficient gpu-platinum")
    await apply(here, "tiers-grown.yaml")
    assert given(await bound(here, "next")) == {"gpu-platinum": {named(gpu("a100")): 1}}
    assert given(await bound(here, "platinum")) == {"gpu-platinum": {named(gpu("v100")): 1}}


@pytest.mark.parametrize(
    ("where", "raw", "properties"),
    [("east", NIC, {"speed": "100GBPS"}), ("west", "mellanox.com/nic", {"model": "cx7"})],
)
def test_a_workload_moves_between_clusters(where, raw, properties):
    """14-STORY-06: one Deployment, the same name, other hardware."""

    @to_a_cluster()
    async def story(here: Place):
        await put(here, node("n1", cr(properties, 1, raw)))
        await apply(here, f"portable-{where}.yaml")
        await apply(here, "portable.yaml")

        async def made() -> bool:
            return bool(await here.all("pods"))

        await here.until(made, "the Deployment has a pod")
        name = (await here.all("pods"))[0].name
        assert given(await bound(here, name)) == {"fast-nic": {named(properties, raw): 1}}

    story()


@to_a_cluster()
async def test_a_vendor_brings_new_hardware(here: Place):
    """14-STORY-07: pods of old classes run on, and keep off it while something else is free."""
    old, new = gpu("v100"), gpu("v100", fp8="true")
    await put(here, class_("gpu-any"), node("old", cr(old, 1)), pod("before", {"gpu-any": 1}))
    first = await bound(here, "before")
    await put(here, node("new", cr(old, 1), cr(new, 1)))
    await apply(here, "vendor.yaml")
    assert given(await bound(here, "new-kernel")) == {"gpu-fp8": {named(new): 1}}
    await put(here, pod("after", {"gpu-any": 1}))
    assert given(await bound(here, "after")) == {"gpu-any": {named(old): 1}}
    assert (await bound(here, "before")).fields["spec"] == first.fields["spec"]


@to_a_cluster()
async def test_nvlink_is_told_from_pcie_on_one_node(here: Place):
    """14-STORY-08, 14-STORY-09"""
    one = {"interconnect": "nvlink", "link": "0"}
    other, plain = {"interconnect": "nvlink", "link": "1"}, {"interconnect": "pcie"}
    await put(here, node("n1", cr(one, 2), cr(other, 2), cr(plain, 1)))
    await apply(here, "nvlink.yaml")
    assert given(await bound(here, "single")) == {"gpu-pcie": {named(plain): 1}}
    linked, pair = given(await bound(here, "linked")), given(await bound(here, "pair"))
    assert sum(linked["gpu-nvlink"].values()) == 2
    assert list(pair["gpu-pair"].values()) == [2]
    assert RAW in next(iter(pair["gpu-pair"]))


def test_a_class_is_asked_once_about_a_set_of_properties():
    """14-SCALE-03, 14-SEL-11: on however many nodes it is; the answer is the same on all."""
    classes = ComputeClasses()
    classes.classes.put(meta.view(compute.ResourceClass, class_("gold", ("type", "In", "p100"))))

    def offers(*types: str) -> tuple[Offer, ...]:
        exported = [
            meta.view(core.ComputeResource, {**cr(gpu(one)), "name": named(gpu(one))}) for one in types
        ]
        return Offer.all_of(tuple(exported))

    answers = {classes.serves("gold", offers("k80", "p100")) for _ in range(1000)}
    assert (answers, classes.evaluations) == ({True}, 2)
    classes.classes.put(meta.view(compute.ResourceClass, class_("gold", ("type", "In", "v100"))))
    assert not classes.serves("gold", offers("k80", "p100"))
    assert classes.evaluations == 4


def test_no_relation_to_storage_classes():
    """14-NON-02"""
    spec = compute.RESOURCE_CLASS.versions[0].shape().fields["spec"].fields
    assert not {"provisioner", "reclaimPolicy", "volumeBindingMode", "storageClassName"} & set(spec)


@to_a_cluster()
async def test_a_device_serves_one_node_only(here: Place):
    """14-NON-05: devices of one id on two nodes are two devices, and each is given on its own node."""
    await put(here, class_("gold"), node("n1", cr(gpu("p100"), 1)), node("n2", cr(gpu("p100"), 1)))
    for name in ("a", "b"):
        await put(here, pod(name, {"gold": 1}))
    assert {(await bound(here, name)).fields["spec"]["nodeName"] for name in "ab"} == {"n1", "n2"}


@pytest.mark.allot_cluster(fleet="compute", nodes=2)
def test_a_pod_that_names_a_class_runs_on_a_hollow_node(allot_cluster):
    """14-AGENT-03: it is not looked for in what the node has to give out."""
    client = allot_cluster.client()

    async def story() -> Object:
        pods = client.resource("", "v1", "pods")
        await client.of(compute.RESOURCE_CLASS).create(class_("gpu-fast", ("type", "In", "v100")))
        await pods.create({**pod("p", {"gpu-fast": 2}), "metadata": {"name": "p", "namespace": NS}}, NS)
        async for event in pods.watch(NS, resource_version="1"):
            if event.object.name == "p" and event.object.fields["status"]["phase"] != "Pending":
                return event.object
        raise AssertionError("the watch ended")

    found = allot_cluster.run(story(), 60)
    assert found.fields["status"]["phase"] in ("Running", "Succeeded"), found.fields["status"]
    assert sum(given(found)["gpu-fast"].values()) == 2
