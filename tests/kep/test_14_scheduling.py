"""KEP-14: where pods that ask for classes and raw names go, and what they are given."""

import asyncio
import copy
import json

import pytest

from allot.api import compute, errors

from .compute import (
    RAW,
    Place,
    class_,
    container,
    cr,
    drop_class,
    given,
    heard,
    named,
    node,
    pod,
    put,
    to_a_cluster,
)
from .objects import NS

K80, P100, ECC = {"type": "k80"}, {"type": "p100"}, {"type": "p100", "ecc": "true"}
OLD = {"type": "p100"}
PLAIN = class_("p100", ("type", "In", "p100"))
WITH_ECC = class_("p100-ecc", ("type", "In", "p100"), ("ecc", "In", "true"))


async def stays_pending(here: Place, name: str, words: str) -> None:
    async def told() -> bool:
        return words in await here.why_not(name)

    await here.until(told, f"{name} is told {words!r}")


async def leaves(here: Place, name: str) -> None:
    """Until somebody has evicted the pod; then its node has ended it."""

    async def told_to_go() -> bool:
        found = await here.resource("pods").get(name, NS)
        return "deletionTimestamp" in found.fields["metadata"]

    await here.until(told_to_go, f"{name} is evicted")
    await here.delete_pod(name)


@to_a_cluster()
async def test_a_class_is_served_by_what_matches_it(here: Place):
    """14-BIND-01, 14-BIND-02, 14-BIND-04, 14-SEL-01, 14-SCHED-03, 14-ASK-05, 14-ASK-08

    Node and record appear at the same revision, under the names that were asked for."""
    other = cr(P100, 2, raw="amd.com/gpu", ids="amd")
    await put(here, PLAIN, node("n1", cr(K80), other), node("n2", cr(P100, 3)))
    seen: list[tuple[bool, bool]] = []
    qualified = f"{compute.limits.QUALIFIED}p100"
    await put(here, pod("p", None, container(p100=2, cpu="1"), container("d", **{qualified: 1})))
    bound = await here.settled("p")
    assert bound.fields["spec"]["nodeName"] == "n2"
    assert given(bound) == {"p100": {named(P100): 2}}
    assert given(bound, "d") == {qualified: {named(P100): 1}}
    for one in [entry async for entry in _history(here, "p")]:
        spec = one["spec"]
        seen.append(("nodeName" in spec, "allocatedComputeResources" in spec["containers"][0]))
    assert set(seen) <= {(False, False), (True, True)}


async def _history(here, name):
    """Every revision of the pod that a watch shows from the beginning."""
    async for event in here.resource("pods").watch(NS, resource_version="1"):
        if event.object.name == name:
            yield event.object.fields
            if event.object.fields["spec"].get("nodeName"):
                return


@to_a_cluster()
async def test_one_request_may_be_spread_and_overlaps_are_seen(here: Place):
    """14-SCHED-02, 14-SCHED-04, 14-SCHED-05, 14-MULTI-01, 14-MULTI-02, 14-SCHED-07"""
    await put(here, class_("a"), class_("b", ("ecc", "In", "true")), node("n1", cr(ECC, 1), cr(P100, 1)))
    await put(here, pod("wide", {"a": 2}))
    assert given(await here.settled("wide")) == {"a": {named(ECC): 1, named(P100): 1}}
    await put(here, pod("late", {"b": 1}))
    await stays_pending(here, "late", "b: 1 wanted, at most 0 free on a node, of 1 on 1 node")
    await here.delete_pod("wide")
    await here.settled("late")
    await here.delete_pod("late")
    await put(here, pod("both", {"a": 1, "b": 1}))
    assert given(await here.settled("both")) == {"a": {named(P100): 1}, "b": {named(ECC): 1}}
    await here.delete_pod("both")
    await put(here, pod("too-much", {"a": 2, "b": 1}))
    await stays_pending(here, "too-much", "Insufficient a and b together")


@to_a_cluster()
async def test_only_healthy_devices_count_and_zero_asks_for_nothing(here: Place):
    """14-SCHED-06, 14-ASK-03, 14-SCHED-08, 14-SCHED-09"""
    await put(here, PLAIN, node("n1", cr(P100, 2, healthy=1)), node("n2"))
    await put(here, pod("none", {"p100": 0}), pod("two", {"p100": 2}))
    assert given(await here.settled("none")) == {}
    await stays_pending(here, "two", "p100: 2 wanted, at most 1 free on a node, of 1 on 1 node")
    assert "1 node(s) without compute resources of class p100" in await here.why_not("two")
    await here.update_node(node("n1", cr(P100, 2)))
    assert given(await here.settled("two")) == {"p100": {named(P100): 2}}


@to_a_cluster()
async def test_a_class_that_comes_later_serves_who_waits(here: Place):
    """14-ASK-04, 14-CHG-01, 14-SCHED-09, 14-CHG-04"""
    await put(here, node("n1", cr(P100, 2)), pod("p", {"p100": 1}))
    await stays_pending(here, "p", "resource class p100 does not exist")
    await put(here, PLAIN)
    await here.settled("p")
    await drop_class(here, "p100")
    await heard(here)
    await put(here, pod("q", {"p100": 1}))
    await stays_pending(here, "q", "does not exist")
    assert given(await here.settled("p")) == {"p100": {named(P100): 1}}
    await put(here, PLAIN)
    await here.settled("q")


@to_a_cluster()
async def test_classes_change_under_pods_that_run(here: Place):
    """14-CHG-02, 14-CHG-03, 14-CHG-05, 14-CHG-06, 14-CHG-08, 14-BIND-10, 14-BIND-11

    Two devices are given out as rc-a; then the resource is of rc-b alone. A scheduler that begins anew counts
    the same."""
    await put(here, class_("rc-a", ("type", "In", "p100")), node("n1", cr(P100, 3), cr(K80, 1)))
    await put(here, pod("p", {"rc-a": 2}))
    await here.settled("p")
    await put(here, class_("rc-a", ("type", "In", "k80")), class_("rc-b", ("type", "In", "p100")))
    await heard(here)
    await put(here, pod("a", {"rc-a": 1}))
    assert given(await here.settled("a")) == {"rc-a": {named(K80): 1}}
    await put(here, pod("b", {"rc-b": 2}))
    await stays_pending(here, "b", "rc-b: 2 wanted, at most 1 free")
    await here.restart()
    await stays_pending(here, "b", "rc-b: 2 wanted, at most 1 free")
    assert given(await here.settled("p")) == {"rc-a": {named(P100): 2}}
    await put(here, class_("rc-b"))
    await heard(here)
    await stays_pending(here, "b", "of 4 on 1 node")
    await put(here, class_("rc-b", raw="amd.com/gpu"), node("n2", cr(P100, 2, raw="amd.com/gpu")))
    assert (await here.settled("b")).fields["spec"]["nodeName"] == "n2"


@to_a_cluster()
async def test_pods_that_ended_hold_nothing(here: Place):
    """14-SCHED-10, 14-BIND-03: and what is recorded does not change."""
    await put(here, PLAIN, node("n1", cr(P100, 1)), pod("p", {"p100": 1}))
    bound = await here.settled("p")
    await put(here, pod("q", {"p100": 1}))
    await stays_pending(here, "q", "Insufficient p100")
    changed = copy.deepcopy(dict(bound.fields))
    other = {"p100": [{"computeResourceName": named(K80), "count": 1}]}
    changed["spec"]["containers"][0]["allocatedComputeResources"] = other
    with pytest.raises(errors.Invalid):
        await here.resource("pods").update(changed)
    await here.finish("p")
    await here.settled("q")


@to_a_cluster()
async def test_raw_names_are_classes_without_constraints(here: Place):
    """14-RAW-01, 14-RAW-02, 14-RAW-03, 14-RAW-04, 14-BIND-04, 14-MIX-05

    On a node without compute resources they are served as ever. No node offers a class, or a raw name that it
    exports as compute resources, in `allocatable`: who knows neither finds no node."""
    await put(here, node("n1", cr(P100, 1), cr(ECC, 1)), pod("r1", {RAW: 1}))
    first = given(await here.settled("r1"))
    await put(here, PLAIN)
    await heard(here)
    await put(here, pod("r2", {RAW: 1}))
    second = given(await here.settled("r2"))
    assert {*first[RAW], *second[RAW]} == {named(P100), named(ECC)}
    await put(here, pod("c", {"p100": 1}))
    await stays_pending(here, "c", "Insufficient p100")
    await put(here, pod("r3", {RAW: 1}))
    await stays_pending(here, "r3", f"Insufficient {RAW}")
    await put(here, node("n2", **{RAW: "1"}))
    third = await here.settled("r3")
    assert (third.fields["spec"]["nodeName"], given(third)) == ("n2", {})
    offered = {name for one in await here.all("nodes") for name in one.fields["status"]["allocatable"]}
    assert "p100" not in offered


@to_a_cluster()
async def test_records_that_authors_wrote(here: Place):
    """14-BIND-06, 14-BIND-07, 14-BIND-08, 14-MULTI-03"""
    record = {"a": [{"computeResourceName": named(ECC), "count": 1}]}
    await put(
        here, class_("a"), class_("b", ("ecc", "In", "true")), node("n0"), node("n1", cr(P100, 1), cr(ECC, 1))
    )
    await put(here, pod("p", None, container(record=record, a=1)))
    bound = await here.settled("p")
    assert bound.fields["spec"]["containers"][0]["allocatedComputeResources"] == record
    await put(here, pod("b", {"b": 1}))
    await stays_pending(here, "b", "Insufficient b")  # had it been the other one, this would fit
    await here.delete_pod("p")
    await here.settled("b")
    cheap = {"plain": [{"computeResourceName": named(ECC), "count": 1}]}
    await put(
        here, class_("plain", ("ecc", "DoesNotExist")), pod("sly", None, container(record=cheap, plain=1))
    )
    await stays_pending(here, "sly", "is not of that class")
    nowhere = {"a": [{"computeResourceName": f"{RAW}-0000000000000000", "count": 1}]}
    await put(here, pod("lost", None, container(record=nowhere, a=1)))
    await stays_pending(here, "lost", "without the compute resource that the pod names")
    unchanged = await here.resource("pods").get("lost", NS)
    assert unchanged.fields["spec"]["containers"][0]["allocatedComputeResources"] == nowhere


@to_a_cluster()
async def test_a_pod_that_is_made_on_a_node_is_counted(here: Place):
    """14-BIND-09"""
    record = {"p100": [{"computeResourceName": named(P100), "count": 1}]}
    await put(here, PLAIN, node("n1", cr(P100, 1)))
    await put(here, pod("p", None, container(record=record, p100=1), nodeName="n1"))
    await put(here, pod("q", {"p100": 1}))
    await stays_pending(here, "q", "Insufficient p100")


@to_a_cluster()
async def test_init_containers_give_what_they_had_to_those_after_them(here: Place):
    """14-ASK-06"""
    await put(here, PLAIN, node("n1", cr(P100, 2)))
    first, side = container("first", p100=2), container("side", always=True, p100=1)
    await put(here, pod("p", {"p100": 1}, init=[first, side]))
    bound = await here.settled("p")
    assert [given(bound, one) for one in ("first", "side", "c")] == [
        {"p100": {named(P100): 2}},
        {"p100": {named(P100): 1}},
        {"p100": {named(P100): 1}},
    ]
    await put(here, pod("q", {"p100": 1}))
    await stays_pending(here, "q", "Insufficient p100")


@to_a_cluster()
async def test_idle_dear_devices_are_kept_and_plain_pods_give_way(here: Place):
    """14-PRIO-01, 14-PRIO-02, 14-PRIO-03, 14-PRE-01, 14-PRE-02, 14-PRE-03, 14-MULTI-06, 14-NON-06

    Plain requests keep off devices of a dear class while others are free, have them when nothing else is, and
    are evicted for somebody more important who needs just these."""
    dear = class_("p100-ecc", ("ecc", "In", "true"), priority=10)
    await put(here, PLAIN, dear, node("n1", cr(P100, 1), cr(ECC, 3)))
    await put(here, pod("one", {"p100": 1}))
    assert given(await here.settled("one")) == {"p100": {named(P100): 1}}
    await put(here, pod("two", {"p100": 3}))
    assert given(await here.settled("two")) == {"p100": {named(ECC): 3}}
    important = {"metadata": {"name": "important"}, "value": 1000}
    classes = here.client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
    await classes.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **important})
    await put(here, pod("boss", {"p100-ecc": 1}, priorityClassName="important"))
    await leaves(here, "two")
    assert given(await here.settled("boss")) == {"p100-ecc": {named(ECC): 1}}
    left = {one.name for one in await here.all("pods")}
    assert left == {"one", "boss"}  # its devices would not have helped
    await put(here, pod("peer", {"p100-ecc": 3}, priorityClassName="important"))
    await stays_pending(here, "peer", "Insufficient p100-ecc")
    assert {one.name for one in await here.all("pods")} == {"one", "boss", "peer"}


@to_a_cluster()
async def test_without_priorities_what_fewest_classes_want_is_taken_first(here: Place):
    """14-PRIO-01"""
    await put(here, PLAIN, WITH_ECC, class_("ecc", ("ecc", "Exists")), node("n1", cr(ECC, 3), cr(P100, 1)))
    await heard(here)
    await put(here, pod("p", {"p100": 1}))
    assert given(await here.settled("p")) == {"p100": {named(P100): 1}}


@to_a_cluster()
async def test_two_plugin_versions_side_by_side(here: Place):
    """14-MULTI-04, 14-MULTI-05, 14-RAW-05, 14-STORY-11: excluding by NotIn keeps nodes with old plugins."""
    await put(here, class_("k80", ("type", "In", "k80")), PLAIN, WITH_ECC)
    await put(
        here,
        node("old", cr(K80, 1), cr(OLD, 1)),
        node("new", cr(ECC, 1), cr({"type": "p100", "ecc": "false"}, 1)),
    )
    await heard(here)
    await put(here, pod("e", {"p100-ecc": 1}))
    assert (await here.settled("e")).fields["spec"]["nodeName"] == "new"
    await put(here, pod("k", {"k80": 1}), pod("p1", {"p100": 1}), pod("p2", {"p100": 1}))
    assert (await here.settled("k")).fields["spec"]["nodeName"] == "old"
    where = {(await here.settled(one)).fields["spec"]["nodeName"] for one in ("p1", "p2")}
    assert where == {"old", "new"}
    for one in ("e", "p1", "p2"):
        await here.delete_pod(one)
    await put(here, class_("p100", ("type", "In", "p100"), ("ecc", "NotIn", "true")))
    await heard(here)
    await put(here, pod("p3", {"p100": 1}), pod("p4", {"p100": 1}), pod("p5", {"p100": 1}))

    async def two() -> bool:
        return sum(bool(one.fields["spec"].get("nodeName")) for one in await here.all("pods")) == 3

    await here.until(two, "both of them, and k")
    held = [given(one) for one in await here.all("pods") if one.fields["spec"].get("nodeName")]
    assert named(ECC) not in {name for record in held for own in record.values() for name in own}


@to_a_cluster()
async def test_groups_are_given_whole(here: Place):
    """14-GROUP-01, 14-GROUP-02, 14-GROUP-03, 14-GROUP-04, 14-GROUP-05, 14-STORY-09

    Two GPUs on one link; a NIC with memory of its own."""
    left, right = {"link": "0"}, {"link": "1"}
    pair = class_("pair", raw="", members=[{"resourceName": RAW, "count": 2}], sameProperty=["link"])
    nic = "sfc.com/nic"
    members = [{"resourceName": nic}, {"resourceName": "memory", "amount": "1Gi"}]
    await put(here, pair, class_("fast", raw="", members=members))
    await put(here, node("n1", cr(left, 3), cr(right, 3), cr({"speed": "40G"}, 4, raw=nic), memory="3Gi"))
    await heard(here)
    await put(here, pod("p", {"pair": 2}))
    assert given(await here.settled("p")) == {"pair": {named(left): 2, named(right): 2}}
    await put(here, pod("q", {"pair": 1}))
    await stays_pending(here, "q", "Insufficient pair")  # one is left on each link
    await stays_pending(here, "q", "pair: 1 wanted; of devices for its groups at most 2 free on a node, of 6")
    await put(here, pod("single", {RAW: 2}))
    assert given(await here.settled("single")) == {RAW: {named(left): 1, named(right): 1}}
    await put(here, pod("net", {"fast": 2}))
    record = (await here.settled("net")).fields["spec"]["containers"][0]["allocatedComputeResources"]["fast"]
    assert record == [
        {"computeResourceName": named({"speed": "40G"}, nic), "count": 2, "member": 0},
        {"member": 1, "resourceName": "memory", "amount": "2Gi"},
    ]
    await put(here, pod("more", {"fast": 2}))
    await stays_pending(here, "more", "Insufficient memory")
    await here.delete_pod("net")
    await here.settled("more")


@to_a_cluster()
async def test_the_devices_of_a_group_share_every_property_that_the_class_names(here: Place):
    """14-GROUP-02: what lacks one of them shares it with nobody, not even with what lacks it too."""
    spec = {"members": [{"resourceName": RAW, "count": 2}], "sameProperty": ["link", "numa"]}
    await put(here, class_("pair", raw="", **spec))
    alike = [{"link": "0", "numa": "0"}, {"link": "0", "numa": "1"}, {"link": "1", "numa": "1"}]
    lacking = [cr({}, 2), cr({"link": "0"}, 2), cr({"numa": "1"}, 2)]
    await put(here, node("n1", *(cr(one, 1) for one in alike), *lacking))
    await heard(here)
    await put(here, pod("p", {"pair": 1}))
    await stays_pending(here, "p", "pair")
    both = {"link": "1", "numa": "0"}
    await put(here, node("n2", cr(both, 2)))
    bound = await here.settled("p")
    assert (bound.fields["spec"]["nodeName"], given(bound)) == ("n2", {"pair": {named(both): 2}})


@to_a_cluster()
async def test_classes_of_the_cluster_are_not_asked_of_nodes(here: Place):
    """14-CLUS-01, 14-CLUS-02, 14-CLUS-03, 14-CLUS-05

    Who provides them holds the pod back with a scheduling gate until that is done."""
    await put(here, class_("fabric", raw="net.example.com/fabric", scope="Cluster"), node("n1"))
    gates = {"schedulingGates": [{"name": "net.example.com/fabric"}]}
    await put(here, pod("p", {"fabric": 1}, **gates), pod("q", {"fabric": 1}))
    assert given(await here.settled("q")) == {}
    held = await here.resource("pods").get("p", NS)
    assert "nodeName" not in held.fields["spec"]
    await here.resource("pods").patch("p", {"spec": {"schedulingGates": []}}, NS)
    await here.settled("p")
    await put(here, class_("fabric", raw="net.example.com/fabric", scope="Node"))
    await heard(here)
    assert (await here.settled("p")).fields["spec"]["nodeName"] == "n1"
    await put(here, pod("r", {"fabric": 1}))
    await stays_pending(here, "r", "without compute resources of class fabric")


@to_a_cluster(scheduled=False)
async def test_two_bindings_never_take_more_than_there_is(here: Place):
    """14-SCHED-12: the second is a conflict, and changes nothing; what ended or is gone lets go (D7)."""
    await put(here, PLAIN, node("n1", cr(P100, 1)))
    for name in ("p", "q"):
        await put(here, pod(name, {"p100": 1}))
    choice = json.dumps({"c": {"p100": [{"computeResourceName": named(P100), "count": 1}]}})

    async def bind(name: str) -> None:
        annotations = {compute.limits.RECORD_ANNOTATION: choice}
        await here.resource("pods").bind(name, NS, "n1", annotations=annotations)

    done = await asyncio.gather(bind("p"), bind("q"), return_exceptions=True)
    assert sorted(type(one) for one in done if one is not None) == [errors.Conflict]
    loser = "p" if isinstance(done[0], errors.Conflict) else "q"
    waiting = (await here.resource("pods").get(loser, NS)).fields
    assert "nodeName" not in waiting["spec"]
    assert compute.limits.RECORD_ANNOTATION not in (waiting["metadata"].get("annotations") or {})
    await here.finish("q" if loser == "p" else "p")
    await bind(loser)
    with pytest.raises(errors.Conflict):
        await bind(loser)


@to_a_cluster(scheduled=False)
async def test_bindings_whose_choice_is_not_what_was_asked_for(here: Place):
    """14-BIND-05, 14-BIND-08: nobody binds a pod to more, to less, or to what its node does not have."""
    await put(here, PLAIN, node("n1", cr(P100, 2)), pod("p", {"p100": 1}))

    async def bind(choice: object) -> None:
        annotations = {compute.limits.RECORD_ANNOTATION: json.dumps(choice)}
        await here.resource("pods").bind("p", NS, "n1", annotations=annotations)

    entry = {"computeResourceName": named(P100), "count": 1}
    for wrong in (
        {"c": {"p100": [{**entry, "count": 2}]}},
        {"x": {"p100": [entry]}},
        {"c": {"gold": [entry]}},
        "no",
    ):
        with pytest.raises(errors.Invalid):
            await bind(wrong)
    with pytest.raises(errors.Conflict, match="no compute resource"):
        await bind({"c": {"p100": [{**entry, "computeResourceName": f"{RAW}-0"}]}})
    await bind({"c": {"p100": [entry]}})


@to_a_cluster()
async def test_a_binding_that_fails_holds_nothing(here: Place):
    """14-SCHED-11"""
    await put(here, PLAIN, node("n1", cr(P100, 1)))
    await heard(here)
    met = here.intervene(lambda request: request.path.endswith("/binding"), 1, errors.Forbidden("not now"))
    await put(here, pod("p", {"p100": 1}))
    bound = await here.settled("p")
    assert (len(met), given(bound)) == (1, {"p100": {named(P100): 1}})


@to_a_cluster()
async def test_a_decision_is_carried_out_though_the_class_has_changed(here: Place):
    """14-CHG-07"""
    await put(here, PLAIN, node("n1", cr(P100, 1)))
    await heard(here)

    async def before(request) -> None:
        if request.path.endswith("/binding"):
            await put(here, class_("p100", ("type", "In", "other")))

    here.wire.before = before
    await put(here, pod("p", {"p100": 1}))
    assert given(await here.settled("p")) == {"p100": {named(P100): 1}}
