"""KEP-4381 as a person sees it: real server, claim controller and scheduler; nodes are objects alone."""

import asyncio

import pytest

from allot.api import numeric
from api.numeric.objects import DRIVER, GROUP
from scheduler.cluster import NS, tell
from scheduler.numeric import TEMPLATE, VENDOR, Numeric, instance


def story(told):
    """A test that tells a story about a furnished cluster, on a server with transactions and without."""

    @pytest.mark.parametrize("transactions", [True, False], ids=["together", "one-by-one"])
    def test(transactions):
        async def whole(here):
            await told(await Numeric(here).furnish())

        tell(whole, transactions=transactions)

    test.__doc__ = told.__doc__
    return test


def once(told):
    """The same, on a server with transactions alone."""

    def test():
        async def whole(here):
            await told(await Numeric(here).furnish())

        tell(whole)

    test.__doc__ = told.__doc__
    return test


@story
async def test_a_claim_is_allocated_with_its_pod_and_given_back_after_it(here):
    """4381-GEN-01, 4381-GEN-02, 4381-GEN-05, 4381-SCH-07, 4381-SCH-09, 4381-SCH-24, 4381-ALC-01, 4381-ALC-02,
    4381-ALC-03, 4381-ALC-04, 4381-ALC-06, 4381-ALC-07, 4381-ALC-12, 4381-ALC-15, 4381-DEA-01, 4381-DEA-02,
    4381-DEA-03, 4381-DEA-05, 4381-CNT-12, 4381-MOD-13, 4381-MOD-14, 4381-TPL-05, 4381-BCT-09."""
    await here.asks("p", 3)
    assert await here.here.bound("p") == ["a"]  # the only node that has three
    claim = await here.here.get("resourceclaims", "p")
    status = claim.fields["status"]
    assert claim.metadata.finalizers == [numeric.limits.FINALIZER]
    assert status["driverName"] == DRIVER
    assert [one["name"] for one in status["reservedFor"]] == ["p"]
    assert "deallocationRequested" not in status
    (term,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    handle = await here.handle("p")
    assert (handle["kind"], handle["apiVersion"]) == ("Allocation", f"{GROUP}/v1beta1")
    assert (handle["instance"], handle["count"], handle["nodeName"]) == ("c0", 3, "a")
    assert not (await here.talks.list(NS)).objects
    await here.finish("p")
    await here.free("p")

    async def unprotected():
        return not (await here.here.get("resourceclaims", "p")).metadata.finalizers

    await here.here.until(unprotected, "the finalizer gone")


@once
async def test_pods_share_an_instance_until_it_is_used_up_and_wait_for_what_is_missing(here):
    """4381-CNT-01, 4381-CNT-04, 4381-ERR-10, 4381-DEA-09, 4381-SCH-08: with numbers in the message."""
    for name, count in (("p1", 2), ("p2", 2), ("p3", 2)):
        await here.asks(name, count)
    await here.here.bound("p1", "p2", "p3")
    await here.asks("late", 3)
    text = await here.waits("late", "needs 3 free of a counter")
    assert "too little free of a counter" in text
    await here.finish("p1")
    await here.finish("p2")
    await here.finish("p3")
    assert await here.here.bound("late") == ["a"]


@once
async def test_what_is_stored_is_whole_and_outlives_class_and_parameters(here):
    """4381-ALC-05, 4381-ALC-08, 4381-ALC-10, 4381-CLS-12, 4381-SCH-04, 4381-SCH-17,
    4381-DEA-08, 4381-GEN-08, 4381-GEN-09, 4381-PAR-15."""
    configs = here.here.client.resource("", "v1", "configmaps")
    await configs.create({"metadata": {"name": "fast"}, "data": {"speed": "9"}}, NS)
    await here.allow_core()
    own = {"kind": "ConfigMap", "name": "fast", "namespace": NS}
    await here.resource_class("shared", shareable=True, parametersRef=own)
    await here.wanting("c", 2, env={"COLOR": "red"})
    await here.claim("c", resource_class="shared", made=False)
    await here.pod("p", "c")
    (node,) = await here.here.bound("p")
    handle = await here.handle("c")
    assert handle["claimParameters"]["spec"] == {"numberOfFrobnicators": 2, "env": {"COLOR": "red"}}
    assert handle["classParameters"]["data"] == {"speed": "9"}
    assert handle["resourceClass"]["metadata"]["name"] == "shared"
    assert handle["resourceClass"]["driverName"] == DRIVER
    for stored in ("claimParameters", "classParameters", "resourceClass"):
        assert "managedFields" not in handle[stored]["metadata"]
        assert handle[stored]["metadata"]["uid"]
    await here.parameters.delete("c", NS)
    await configs.delete("fast", NS)
    await here.classes.delete("shared")
    await here.pod("second", "c")
    assert await here.here.bound("second") == [node]
    users = (await here.status("c"))["reservedFor"]
    assert [one["name"] for one in users] == ["p", "second"]
    await here.finish("p")
    await here.finish("second")
    await here.free("c")


@once
async def test_nobody_is_told_of_other_peoples_claims(here):
    """4381-SEC-12: what others hold shows in numbers alone, in conditions and in events."""
    place = here.here
    await place.client.resource("", "v1", "namespaces", namespaced=False).create(
        {"metadata": {"name": "tenant"}}
    )
    body = {
        "apiVersion": f"{VENDOR}/v1alpha1",
        "kind": "ClaimParameters",
        "spec": {"numberOfFrobnicators": 4},
    }
    await here.parameters.create({**body, "metadata": {"name": "theirs"}}, "tenant")
    reference = {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": "theirs"}
    spec = {"resourceClassName": "frob", "parametersRef": reference}
    await here.claims.create({"metadata": {"name": "theirs"}, "spec": spec}, "tenant")
    entries = [{"name": "theirs", "resourceClaimName": "theirs"}]
    containers = [{"name": "main", "image": "busybox"}]
    pods = place.resource("pods")
    made = {"metadata": {"name": "theirs"}, "spec": {"containers": containers, "resourceClaims": entries}}
    theirs = await pods.create(made, "tenant")

    async def bound():
        return (await pods.get("theirs", "tenant")).fields["spec"].get("nodeName")

    await place.until(bound, "theirs bound")
    await here.asks("mine", 3)
    text = await here.waits("mine", "needs 3 free of a counter", "has 2")
    events = place.client.resource("", "v1", "events")

    async def told():
        return [one for one in (await events.list(NS)).objects if one.fields["reason"] == "FailedScheduling"]

    said = [text, *(one.fields["message"] for one in await place.until(told, "the event"))]
    for word in ("theirs", "tenant", theirs.uid):
        assert not any(word in one for one in said)


@once
async def test_what_is_not_shareable_is_one_pods_at_a_time(here):
    """4381-SCH-05, 4381-ERR-11."""
    await here.claim("c", 1)
    await here.pod("p", "c")
    await here.here.bound("p")
    await here.pod("q", "c")
    await here.waits("q", '"c" is used by p and cannot be shared')


@once
async def test_immediate_claims_wait_for_their_first_pod_and_stay_with_their_node(here):
    """4381-IMM-01, 4381-IMM-02, 4381-IMM-03, 4381-IMM-04, 4381-IMM-05, 4381-IMM-06, 4381-IMM-07, 4381-DEA-06,
    4381-SCH-20."""
    await here.claim("c", 4, allocationMode="Immediate")
    await here.here.quiet()
    assert await here.taken("c") is None
    await here.pod("p", "c")
    assert await here.here.bound("p") == ["a"]
    held = (await here.status("c"))["allocation"]
    await here.finish("p")

    async def unused():
        return "reservedFor" not in await here.status("c")

    await here.here.until(unused, "nobody uses it")
    await here.here.quiet()
    assert (await here.status("c"))["allocation"] == held
    await here.asks("other", 3)
    await here.waits("other")
    await here.pod("again", "c")
    assert await here.here.bound("again") == ["a"]
    assert (await here.status("c"))["allocation"] == held
    await here.finish("again")
    await here.here.until(unused, "nobody uses it again")
    await here.claims.delete("c", NS)
    assert await here.here.bound("other") == ["a"]


@once
async def test_generated_claims_come_and_go_with_their_pod(here):
    """4381-GEN-13, 4381-DEA-13, 4381-IMM-08."""
    await here.wanting("two", 2)
    await here.template("t", "two")
    await here.here.create(
        "pods",
        {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "main", "image": "busybox"}],
                "resourceClaims": [{"name": "f", "resourceClaimTemplateName": "t"}],
            },
        },
    )
    await here.here.bound("p")
    assert (await here.taken("p-f"))[2] == 2
    await here.finish("p")

    async def gone():
        return await here.here.get("resourceclaims", "p-f") is None

    await here.here.until(gone, "the claim gone")


@once
async def test_capacity_that_changes_counts_for_the_next_decision(here):
    """4381-CAP-14, 4381-CNT-08, 4381-CNT-09, 4381-CAP-15, 4381-MOD-09, 4381-BCT-17."""
    await here.asks("p", 3)
    await here.here.bound("p")
    held = (await here.status("p"))["allocation"]
    await here.publish("a", 1)
    await here.asks("q", 3)
    await here.waits("q", "needs 3")
    assert (await here.status("p"))["allocation"] == held
    await here.publish("b", 3)
    assert await here.here.bound("q") == ["b"]
    await here.publish("a", 4, kind="gold")
    await here.asks("r", 1)
    assert await here.here.bound("r") == ["a"]
    assert (await here.status("p"))["allocation"] == held


@once
async def test_an_instance_that_goes_and_returns_is_still_taken(here):
    """4381-BCT-16, 4381-BCT-05."""
    await here.asks("p", 4)
    await here.here.bound("p")
    await here.publish("a")
    await here.publish("b")
    await here.asks("q", 1)
    await here.waits("q")
    await here.publish("a", 5)
    assert await here.here.bound("q") == ["a"]
    assert (await here.taken("q"))[2] == 1
    await here.asks("r", 1)
    await here.waits("r", "needs 1", "has 0")


@once
async def test_several_objects_and_types_and_versions_on_a_node(here):
    """4381-CAP-05, 4381-CAP-07, 4381-MOD-04, 4381-MOD-10, 4381-MOD-11, 4381-CLS-13: what cannot be read, or
    is of another driver or node, is left alone."""
    odd = {"id": "odd", "apiVersion": "nobody.example.com/v1", "kind": "Odd", "data": {}}
    await here.put_capacity("b-2", "b", [instance("c1", 6, "v1alpha1"), odd, instance("bad", -1)])
    await here.publish("b", 100, driver="other.example.com")
    await here.publish("nowhere", 100)
    await here.asks("p", 6)
    assert await here.here.bound("p") == ["b"]
    assert await here.taken("p") == ("b", "c1", 6)
    assert (await here.handle("p"))["apiVersion"] == f"{GROUP}/v1alpha1"
    await here.asks("q", 7)
    await here.waits("q")
    metrics = here.here.metrics.text()
    assert "scheduler_numeric_instances_unreadable 1" in metrics


@once
async def test_a_class_narrows_the_nodes(here):
    """4381-CLS-14."""
    nodes = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    }
    await here.resource_class("narrow", suitableNodes=nodes)
    await here.claim("p", 1, resource_class="narrow")
    await here.pod("p", "p")
    assert await here.here.bound("p") == ["b"]


@once
async def test_pods_are_told_what_is_wrong_with_class_and_parameters(here):
    """4381-ERR-01, 4381-ERR-02, 4381-ERR-03, 4381-ERR-04, 4381-ERR-07, 4381-ERR-08, 4381-ERR-09, 4381-CLS-03,
    4381-CLS-10, 4381-CLS-11, 4381-PAR-04, 4381-SCH-03, 4381-SCH-19, 4381-TPL-13, 4381-TPL-14: and go on
    when it is mended."""
    bad = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters"}
    await here.resource_class(
        "fails", numericParameters=[{**bad, "celTemplate": TEMPLATE.replace("numberOf", "no")}]
    )
    typo = f"kind: Parameters\napiVersion: {GROUP}/v1beta1\nrequierd: 1\n"
    await here.resource_class("typo", numericParameters=[{**bad, "celTemplate": typo}])
    unknown = "kind: Parameters\napiVersion: nobody.example.com/v1\n"
    await here.resource_class("unknown", numericParameters=[{**bad, "celTemplate": unknown}])
    await here.wanting("one", 1)
    for name, told in (
        ("fails", ("fails", "noFrobnicators")),
        ("typo", ("typo", "requierd")),
        ("unknown", ("nobody.example.com/v1", "known are")),
        ("absent", ('resourceclass "absent"', "not found")),
    ):
        await here.claim(name, resource_class=name)
        await here.pod(name, name)
        await here.waits(name, *told)
    await here.claim("none", parametersRef=None, made=False)
    await here.pod("none", "none")
    await here.waits("none", 'resourceclass "frob" needs parametersRef', f"ClaimParameters.{VENDOR}")
    await here.claim("odd", parametersRef={"kind": "ConfigMap", "name": "x"}, made=False)
    await here.pod("odd", "odd")
    await here.waits("odd", "no parameters of kind ConfigMap", f"ClaimParameters.{VENDOR}")
    await here.claim("later", made=False)
    await here.pod("later", "later")
    await here.waits("later", f"ClaimParameters.{VENDOR} {NS}/later not found")
    await here.wanting("later", 1)
    await here.here.bound("later")
    known = await here.classes.get("fails")
    await here.classes.update(known.changed({"numericParameters": [{**bad, "celTemplate": TEMPLATE}]}))
    await here.resource_class("absent")
    await here.here.bound("fails", "absent")


@once
async def test_changed_parameters_count_for_waiting_pods_and_not_for_those_that_have_theirs(here):
    """4381-PAR-19, 4381-TPL-19, 4381-ALC-11."""
    await here.asks("p", 9)
    await here.waits("p", "needs 9")
    known = await here.parameters.get("p", NS)
    await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": 2}}))
    await here.here.bound("p")
    held = (await here.status("p"))["allocation"]
    known = await here.parameters.get("p", NS)
    await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": 1}}))
    await here.here.quiet()
    assert (await here.status("p"))["allocation"] == held


@once
async def test_defaults_of_the_vendors_kind_come_before_the_template(here):
    """4381-VND-01, 4381-VND-03, 4381-VND-04."""
    await here.claim("p", None)
    await here.pod("p", "p")
    await here.here.bound("p")
    assert (await here.taken("p"))[2] == 1


@once
async def test_a_pod_goes_elsewhere_when_its_claim_is_in_the_wrong_place(here):
    """4381-SCH-13, 4381-SCH-12: allocated for a node that takes no pods any more, and reserved for nobody."""
    await here.claim("c", 2)
    await here.pod("p", "c", nodeName="")
    (node,) = await here.here.bound("p")
    await here.here.quiet()
    other = "b" if node == "a" else "a"
    pods = here.here.resource("pods")
    await pods.delete("p", NS, grace_period_s=0)
    await here.free("c")
    nodes = here.here.resource("nodes")
    await nodes.patch(node, {"spec": {"unschedulable": True}})
    await here.pod("q", "c")
    assert await here.here.bound("q") == [other]


@once
async def test_claims_of_one_pod_are_placed_together(here):
    """4381-BCT-18, 4381-SCH-06."""
    for name in ("x", "y", "z"):
        await here.claim(name, 2)
    await here.pod("p", "x", "y")
    assert await here.here.bound("p") == ["a"]
    await here.pod("q", "z")
    assert await here.here.bound("q") == ["b"]


@once
async def test_a_restarted_scheduler_counts_what_claims_hold(here):
    """4381-BCT-13, 4381-BCT-12, 4381-BCT-06, 4381-MON-06."""
    await here.asks("p", 3)
    await here.here.bound("p")
    await here.here.stop()
    await here.here.start_controllers()
    await here.here.start_scheduler()
    await here.asks("q", 3)
    await here.waits("q", "needs 3")
    assert "scheduler_numeric_claims_allocated 1" in here.here.metrics.text()


@once
async def test_metrics_follow_the_objects(here):
    """4381-MON-01, 4381-MON-02, 4381-MON-03, 4381-MON-04, 4381-MON-05, 4381-MON-06, 4381-MON-07."""
    await here.resource_class(
        "other",
        numericParameters=[
            {"apiVersion": "nobody.example.com/v1", "kind": "Nothing", "celTemplate": TEMPLATE}
        ],
    )
    await here.asks("p", 1)
    await here.here.bound("p")

    async def shown(**wanted):
        async def so():
            text = here.here.metrics.text()
            return all(f"scheduler_numeric_{name} {value}\n" in text for name, value in wanted.items())

        await here.here.until(so, str(wanted))

    await shown(classes=2, parameter_types=2, parameter_types_resolved=1, claims_allocated=1)
    await here.classes.delete("other")
    await here.finish("p")
    await shown(classes=1, parameter_types=1, parameter_types_resolved=1, claims_allocated=0)


def test_watches_begin_and_end_with_classes_and_rights_are_missed_by_name():
    """4381-PAR-05, 4381-PAR-06, 4381-PAR-07, 4381-PAR-09, 4381-PAR-12, 4381-ERR-05, 4381-ERR-06."""

    async def told(place):
        here = Numeric(place)
        await place.node("a")
        await here.publish("a", 4)
        await here.resource_class()
        kind = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters"}
        await here.claims.create(
            {
                "metadata": {"name": "p"},
                "spec": {
                    "resourceClassName": "frob",
                    "parametersRef": {"apiGroup": VENDOR, "kind": kind["kind"], "name": "p"},
                },
            },
            NS,
        )
        await here.pod("p", "p")
        await here.waits("p", "ClaimParameters", "is not served", "not installed")
        await here.define()
        await here.wanting("p", 1)
        await here.waits("p", 'User "system:kube-scheduler" cannot list resource "claimparameters"')
        await here.allow()
        await place.bound("p")

    import allot.scheduler.parameter_watches as watches

    before, watches.RETRY_S = watches.RETRY_S, 0.2
    try:
        tell(told)
    finally:
        watches.RETRY_S = before


def test_two_schedulers_never_give_a_unit_twice():
    """4381-SCH-21."""

    async def told(place):
        here = await Numeric(place).furnish({"a": 3, "b": 3})
        await place.start_scheduler()
        names = [f"p{number}" for number in range(9)]
        await asyncio.gather(*(here.asks(name, 1) for name in names))
        found = []

        async def six():
            found[:] = [name for name in names if await place.node_of(name)]
            return len(found) == 6

        await place.until(six, "six of nine bound")
        by_node = [(await here.taken(name))[0] for name in found]
        assert sorted(by_node) == ["a"] * 3 + ["b"] * 3
        await place.quiet()
        assert len([name for name in names if await place.node_of(name)]) == 6

    tell(told)
