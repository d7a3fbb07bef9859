"""KEP-4381: what nodes publish, as the scheduler counts it; models of ours and of others in use."""

import asyncio
import json
import logging

import pytest

from allot.api import Gates
from allot.cel import Template
from allot.store import MemoryStore
from api.numeric.objects import DRIVER, GROUP
from numeric.test_registry import installed
from scheduler.cluster import NS, tell
from scheduler.numeric import PARAMETERS, TEMPLATE, VENDOR, Numeric, instance

from .test_4381_gate import running

__all__ = ["installed"]
OTHER = "other.example.com"


def story(told):
    def test():
        async def whole(place):
            await told(await Numeric(place).furnish())

        tell(whole)

    test.__doc__ = told.__doc__
    return test


def entry(template, kind="ClaimParameters", **more):
    return {"apiVersion": f"{VENDOR}/v1alpha1", "kind": kind, "celTemplate": template, **more}


@story
async def test_an_id_is_one_nodes_and_one_drivers(here):
    """4381-CAP-06: c0 of another driver, and of another node, are other things."""
    await here.publish("a", 4, driver=OTHER)
    await here.resource_class("other", driver=OTHER)
    await here.asks("p", 4)
    await here.claim("q", 4, resource_class="other")
    await here.pod("q", "q")
    assert await here.here.bound("p", "q") == ["a", "a"]
    await here.asks("r", 2)
    assert await here.here.bound("r") == ["b"]
    for name in ("p", "q", "r"):
        assert (await here.taken(name))[1] == "c0"
    await here.claim("s", 1, resource_class="other")
    await here.pod("s", "s")
    await here.waits("s", "needs 1")


def test_an_instance_that_two_objects_have_counts_once(caplog):
    """4381-CAP-11: as the object has it whose name sorts first, and with a warning. 4381-PUB-10: so while
    objects are rewritten nothing is given out twice. 4381-MOD-11: one that cannot be read is named, with
    node, driver and field, and its neighbours are used."""
    caplog.set_level(logging.WARNING, "allot.scheduler.mirror")

    async def told(place):
        here = await Numeric(place).furnish({"a": 2})
        await here.put_capacity("a-z", "a", [instance("c0", 9), instance("c1", 3)])
        await here.asks("p", 4)
        await here.waits("p", "needs 4", "c1 has 3")
        await here.put_capacity("a-a", "a", [instance("c0", 5), instance("bad", -7)])
        await place.bound("p")
        assert await here.taken("p") == ("a", "c0", 4)
        await here.asks("q", 2)
        await place.bound("q")
        assert await here.taken("q") == ("a", "c1", 2)
        await here.asks("r", 2)
        await here.waits("r", "needs 2")

    tell(told)
    assert (
        f"instance c0 of driver {DRIVER} on node a is published twice: as a-frob.example.com" in caplog.text
    )
    assert "as a-a has it, it counts" in caplog.text
    (wrong,) = {one.getMessage() for one in caplog.records if "is not used" in one.getMessage()}
    assert f"instance bad of driver {DRIVER} on node a is not used" in wrong
    assert "count" in wrong


@story
async def test_what_is_published_for_a_node_that_is_not_there_waits_for_it(here):
    """4381-CAP-10: nobody deletes it, nobody is sent there; when the node comes it has it."""
    await here.publish("later", 9)
    await here.asks("p", 9)
    await here.waits("p", "needs 9")
    await here.here.quiet()
    assert (await here.capacities.get(f"later-{DRIVER}")).fields["nodeName"] == "later"
    await here.here.node("later")
    assert await here.here.bound("p") == ["later"]


@story
async def test_changed_labels_concern_what_is_allocated_later(here):
    """4381-CNT-10, 4381-MOD-05: what was taken stays taken, wherever the label has gone."""
    gold = f"kind: Parameters\napiVersion: {GROUP}/v1beta1\n"
    gold += "required: {{object.spec.numberOfFrobnicators}}\nselector: {matchLabels: {kind: gold}}\n"
    await here.resource_class("gold", numericParameters=[entry(gold)])
    await here.publish("a", 4, kind="gold")
    await here.claim("p", 3, resource_class="gold")
    await here.pod("p", "p")
    assert await here.here.bound("p") == ["a"]
    held = (await here.status("p"))["allocation"]
    await here.publish("a", 4, kind="silver")
    await here.claim("q", 1, resource_class="gold")
    await here.pod("q", "q")
    await here.waits("q", "kind=gold")
    assert (await here.status("p"))["allocation"] == held
    await here.publish("b", 2, kind="gold")
    assert await here.here.bound("q") == ["b"]
    await here.asks("plain", 2)
    await here.waits("plain", "needs 2")


@story
async def test_the_largest_number_is_exact_from_the_template_to_the_guard(here):
    """4381-CNT-11: and one more is too much, for the scheduler as for the server."""
    most = 2**63 - 1
    head = f"kind: Parameters\napiVersion: {GROUP}/v1beta1\n"
    for name, number in (("all", str(most)), ("one", "1")):
        await here.resource_class(name, numericParameters=[entry(f"{head}required: {{{{{number}}}}}\n")])
    await here.publish("a", most)
    await here.publish("b", most - 1)
    await here.claim("p", 1, resource_class="all")
    await here.pod("p", "p")
    assert await here.here.bound("p") == ["a"]
    assert (await here.taken("p"))[2] == most
    assert (await here.handle("p"))["count"] == most
    assert json.loads((await here.status("p"))["allocation"]["resourceHandle"])["count"] == most
    await here.publish("b")
    await here.claim("q", 1, resource_class="one")
    await here.pod("q", "q")
    await here.waits("q", "needs 1", "has 0")


@story
async def test_entries_of_a_class_differ_and_a_change_is_for_later_claims(here):
    """4381-CLS-07, 4381-CLS-08, 4381-ALC-04: shareable and template are those of the entry, at the time."""
    place = here.here
    await here.define("Others")
    others = place.client.resource(VENDOR, "v1alpha1", "others")
    listed = [entry(TEMPLATE, shareable=True), entry(TEMPLATE, "Others", shareable=False)]
    await here.resource_class("both", numericParameters=listed)
    body = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "Others", "metadata": {"name": "o"}, "spec": {}}
    await others.create(body, NS)
    await here.claim("shared", 1, resource_class="both")
    reference = {**PARAMETERS, "kind": "Others", "name": "o"}
    await here.claim("own", resource_class="both", made=False, parametersRef=reference)
    for name in ("shared", "own"):
        await here.pod(name, name)
    await place.bound("shared", "own")
    before = {name: (await here.status(name))["allocation"] for name in ("shared", "own")}
    assert before["shared"]["shareable"] is True
    assert not before["own"].get("shareable")
    known = await here.classes.get("both")
    twice = TEMPLATE.replace("numberOfFrobnicators}}", "numberOfFrobnicators * 2}}")
    changed = [entry(twice, shareable=False), entry(twice, "Others", shareable=True)]
    await here.classes.update(known.changed({"numericParameters": changed}))
    await here.pod("guest", "shared")
    await place.bound("guest")
    await here.pod("intruder", "own")
    await here.waits("intruder", "cannot be shared")
    for name, allocation in before.items():
        assert (await here.status(name))["allocation"] == allocation
    await here.claim("later", 1, resource_class="both")
    await here.pod("later", "later")
    await place.bound("later")
    assert (await here.taken("later"))[2] == 2
    assert not (await here.status("later"))["allocation"].get("shareable")


def test_parameters_are_resolved_for_pending_claims_of_pods_that_are_scheduled(monkeypatch):
    """4381-PAR-02: not for claims that no pod names, nor for those that are allocated."""
    expanded = []
    expand = Template.expand
    monkeypatch.setattr(
        Template, "expand", lambda self, *given: expanded.append(given[0]) or expand(self, *given)
    )

    async def told(place):
        here = await Numeric(place).furnish()
        await here.resource_class("shared", shareable=True)
        await here.claim("nobodys", 1)
        await here.claim("c", 1, resource_class="shared")
        await place.quiet()
        assert expanded == []
        await here.pod("first", "c")
        await place.bound("first")
        assert len(expanded) == 1
        known = await here.parameters.get("c", NS)
        await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": 9}}))
        await here.pod("second", "c")
        await place.bound("second")
        assert len(expanded) == 1

    tell(told)


HEAD = "kind: Parameters\napiVersion: {}\n"
KINDS = {
    "counter": (
        f"{GROUP}/v1alpha1",
        {"count": 2},
        "required: 1\n",
        {"count": 1},
    ),
    "partition": (
        "partition.dra.config.k8s.io/v1",
        {"slots": 4, "profiles": {"half": {"slots": 2, "starts": [0, 2]}}},
        "profile: half\n",
        {"slots": 4, "profiles": {"half": {"slots": 2, "starts": [0]}}},
    ),
    "topology": (
        "topology.dra.config.k8s.io/v1",
        {"zones": {"x": 1, "y": 1}},
        "required: 1\nalignment: SingleZone\n",
        {"zones": {"x": 1}},
    ),
    "dice": ("dice.example.com/v1", {"sides": 6}, "sides: {{6}}\n", None),
}


def _instance(version, data, id="i0"):
    return {
        "id": id,
        "apiVersion": version,
        "kind": "Capacity",
        "data": {"kind": "Capacity", "apiVersion": version, **data},
    }


@pytest.mark.parametrize("model", KINDS)
def test_every_model_takes_gives_back_and_counts_after_a_restart(model, installed):
    """4381-MOD-15, 4381-EXT-02, 4381-EXT-03, 4381-GEN-06: ours, and one of an installed package, which no
    file of ours knows. Two fit on the instance (one of the dice), the next waits: also after a restart, and
    while there is less than is taken."""
    version, data, asked, less = KINDS[model]
    fits = ["p", "q"] if less is not None else ["p"]

    async def told(place):
        await place.start_controllers()
        await place.start_scheduler()
        here = Numeric(place)
        await place.node("a")
        await here.define()
        await here.allow()
        await here.put_capacity("a", "a", [_instance(version, data)])
        await here.resource_class("frob", numericParameters=[entry(HEAD.format(version) + asked)])
        for name in fits:
            await here.asks(name, 1)
            await place.bound(name)
        handle = await here.handle("p")
        assert (handle["apiVersion"], handle["kind"], handle["instance"]) == (version, "Allocation", "i0")
        assert handle["claimParameters"]["metadata"]["name"] == "p"
        await here.asks("late", 1)
        await here.waits("late", "0/1 nodes")
        await place.stop()
        await place.start_controllers()
        await place.start_scheduler()
        await place.quiet()
        assert not await place.node_of("late")
        if less is not None:
            await here.put_capacity("a", "a", [_instance(version, less)])
            await here.finish("q")
            await here.free("q")
            await place.quiet()
            assert not await place.node_of("late"), "one is still in use, and there is one"
        await here.finish("p")
        assert await place.bound("late") == ["a"]

    tell(told, started=False)


def test_a_model_that_fails_on_what_it_reads_harms_nobody_else(installed, caplog):
    """4381-MOD-11: it was written by somebody else, and anything may come of it; who asks for it is told."""

    async def told(place):
        here = await Numeric(place).furnish({"a": 1})
        version, _, asked, _ = KINDS["dice"]
        await here.put_capacity("a-2", "a", [_instance(version, {"edges": 12}, "die"), instance("c1", 3)])
        await here.asks("p", 3)
        assert await place.bound("p") == ["a"]
        head = HEAD.format(version)
        await here.resource_class("none", numericParameters=[entry(head)])
        await here.resource_class("dice", numericParameters=[entry(head + asked)])
        for name, words in (("none", "model dice fails"), ("dice", "has published nothing here")):
            await here.claim(name, 1, resource_class=name)
            await here.pod(name, name)
            await here.waits(name, words)
        await here.asks("q", 1)
        assert await place.bound("q") == ["a"]

    tell(told)
    assert "instance die of driver" in caplog.text and "model dice fails" in caplog.text


def test_what_a_scheduler_does_not_know_counts_after_its_upgrade():
    """4381-SKEW-06, 4381-MOD-10: capacity of a model that comes later, without being published again."""

    async def off(here):
        await here.furnish()
        await here.asks("p", 1)
        await here.waits("p", "DRANumericModelCounter is off")

    async def on(here):
        before = [one.resource_version for one in (await here.capacities.list()).objects]
        await here.here.bound("p")
        assert [one.resource_version for one in (await here.capacities.list()).objects] == before

    async def whole():
        store = MemoryStore()
        await running(store, Gates({"DRANumericModelCounter": False}), off)
        await running(store, Gates(), on)
        await store.close()

    asyncio.run(whole())
