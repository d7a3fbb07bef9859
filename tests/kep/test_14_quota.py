"""KEP-14: quotas by class name, and the three steps from raw names to classes."""

import pytest

from allot.api import Object, compute, errors

from .compute import RAW, Place, class_, container, cr, given, heard, named, node, pod, put, to_a_cluster
from .objects import NS

SILVER, GOLD = {"type": "k80"}, {"type": "p100"}
CLASSES = (class_("gpu-silver", ("type", "In", "k80")), class_("gpu-gold", ("type", "In", "p100")))


async def allow(here: Place, namespace: str = NS, **hard: str) -> None:
    """Sets the quota of a namespace."""
    quotas = here.client.resource("", "v1", "resourcequotas")
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    try:
        await quotas.create(body, namespace)
    except errors.AlreadyExists:
        known = await quotas.get("q", namespace)
        await quotas.update(known.changed({"spec": {"hard": None}}).changed({"spec": {"hard": hard}}))

    async def in_force() -> bool:
        found = await quotas.get("q", namespace)
        return (found.fields.get("status") or {}).get("hard") == hard

    await here.until(in_force, "the quota is in force")


async def used(here: Place, namespace: str = NS) -> dict[str, str]:
    found = await here.client.resource("", "v1", "resourcequotas").get("q", namespace)
    return (found.fields.get("status") or {}).get("used") or {}


async def until_used(here: Place, **amounts: str) -> None:
    async def so() -> bool:
        now = await used(here)
        return all(now.get(name) == amount for name, amount in amounts.items())

    await here.until(so, f"used is {amounts}")


async def ask(here: Place, name: str, namespace: str = NS, **limits: int) -> Object:
    made = pod(name, limits)
    made["metadata"]["namespace"] = namespace
    return await here.client.resource("", "v1", "pods").create(made, namespace)


async def fills(here: Place, asked: str, amount: int) -> None:
    """So much is admitted under the name, and not one more."""
    await ask(here, f"most-{asked.replace('/', '-')}", **{asked: amount})
    with pytest.raises(errors.Forbidden, match="exceeded quota: q"):
        await ask(here, f"more-{asked.replace('/', '-')}", **{asked: 1})


@to_a_cluster(scheduled=False)
async def test_step_1_raw_names(here: Place):
    """14-QUOTA-02, 14-QUOTA-07: in the words of any exceeded quota; both spellings limit."""
    await allow(here, **{RAW: "100"})
    await fills(here, RAW, 100)
    await allow(here, **{f"requests.{RAW}": "100", RAW: "101"})
    with pytest.raises(errors.Forbidden, match=f"requested: requests.{RAW}=1"):
        await ask(here, "one-more", **{RAW: 1})


@to_a_cluster(scheduled=False)
async def test_step_2_some_workloads_use_classes(here: Place):
    """14-QUOTA-01, 14-QUOTA-03, 14-QUOTA-04, 14-QUOTA-08: each name counts for itself."""
    await put(here, *CLASSES)
    await allow(here, **{RAW: "90", "gpu-silver": "6", "gpu-gold": "4"})
    for name, amount in ((RAW, 90), ("gpu-silver", 6), ("gpu-gold", 4)):
        await fills(here, name, amount)
    assert await used(here) == {RAW: "90", "gpu-silver": "6", "gpu-gold": "4"}


@to_a_cluster(scheduled=False)
async def test_step_3_all_of_them_do(here: Place):
    """14-QUOTA-06, 14-QUOTA-09, 14-STORY-10: zero forbids."""
    await put(here, *CLASSES)
    await allow(here, **{RAW: "0", "gpu-silver": "60", "gpu-gold": "40"})
    with pytest.raises(errors.Forbidden, match="exceeded quota"):
        await ask(here, "raw", **{RAW: 1})
    await fills(here, "gpu-silver", 60)
    await fills(here, "gpu-gold", 40)


@to_a_cluster(scheduled=False)
async def test_all_spellings_of_a_class_count_alike(here: Place):
    """14-ASK-08, 14-QUOTA-01: bare and qualified asks add up, under whichever name the quota has."""
    qualified = f"{compute.limits.QUALIFIED}gpu-gold"
    for hard in ("gpu-gold", "requests.gpu-gold", qualified, f"requests.{qualified}"):
        await allow(here, **{hard: "3"})
        made = pod("both", None, container(**{"gpu-gold": 2}), container("d", **{qualified: 1}))
        await here.resource("pods").create(made, NS)
        assert await used(here) == {hard: "3"}
        with pytest.raises(errors.Forbidden):
            await ask(here, "more", **{qualified: 1})
        await here.delete_pod("both")
        await here.client.resource("", "v1", "resourcequotas").delete("q", NS)


@to_a_cluster(scheduled=False)
async def test_quotas_of_two_namespaces_are_independent(here: Place):
    """14-QUOTA-06, 14-QUOTA-12: and where there is none there is no limit."""
    namespaces = here.client.resource("", "v1", "namespaces", namespaced=False)
    for name in ("red", "blue", "free"):
        await namespaces.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await allow(here, "red", **{"gpu-gold": "1"})
    await allow(here, "blue", **{"gpu-gold": "2"})
    await ask(here, "p", "red", **{"gpu-gold": 1})
    await ask(here, "p", "blue", **{"gpu-gold": 2})
    await ask(here, "p", "free", **{"gpu-gold": 500})
    with pytest.raises(errors.Forbidden):
        await ask(here, "q", "red", **{"gpu-gold": 1})


@to_a_cluster()
async def test_quota_knows_names_and_the_scheduler_knows_no_quota(here: Place):
    """14-QUOTA-05, 14-QUOTA-10, 14-QUOTA-11, 14-CHG-09, 14-GROUP-06, 14-CLUS-04

    An admitted raw request may end on a device of a class without quota. What a class stands for changes
    nothing; lowering a limit ends nobody; who has finished uses nothing."""
    pair = class_("pair", raw="", members=[{"resourceName": RAW, "count": 2}])
    fabric = class_("fabric", raw="net.example.com/fabric", scope="Cluster")
    await put(here, *CLASSES, pair, fabric, node("n1", cr(GOLD, 5)))
    await heard(here)
    await allow(here, **{RAW: "1", "gpu-gold": "1", "pair": "1", "fabric": "2"})
    await ask(here, "raw", **{RAW: 1})
    assert given(await here.settled("raw")) == {RAW: {named(GOLD): 1}}
    await ask(here, "two", pair=1, fabric=2)
    await here.settled("two")
    now = {RAW: "1", "gpu-gold": "0", "pair": "1", "fabric": "2"}
    assert await used(here) == now
    await put(here, class_("gpu-gold", ("type", "In", "k80")))
    await allow(here, **{RAW: "0", "gpu-gold": "0", "pair": "0", "fabric": "0"})
    assert (await here.settled("raw")).fields["spec"]["nodeName"] == "n1"
    await until_used(here, **now)
    await here.finish("two")
    await until_used(here, pair="0", fabric="0")
