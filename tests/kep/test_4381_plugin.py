"""KEP-4381: the scheduler's plugin, what wakes pods that it turned away, and what it costs everybody else."""

import ast
import json
from pathlib import Path

import pytest

import allot.numeric
from allot.api import Gates, Request
from allot.apiserver import identities
from allot.base import RandomIds
from allot.numeric import TypeId
from allot.numeric.models import COUNTER
from allot.scheduler import plugins
from allot.scheduler.capacity_of_nodes import CapacityOfNodes
from allot.scheduler.framework import CycleState
from allot.scheduler.plugins.claims.resolving import CLAIMS, NO_CLAIMS
from allot.scheduler.plugins.numeric import NumericResources
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import snapshot_for
from scheduler.cluster import NS, tell
from scheduler.numeric import TEMPLATE, VENDOR, Numeric, instance

from .test_4381_scheduling import once

ENTRY = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters", "celTemplate": TEMPLATE}


def test_a_pod_without_numeric_claims_is_not_looked_at():
    """4381-SCH-22: neither the snapshot nor a node is touched for it."""
    nothing = object()
    plugin = NumericResources(RandomIds())
    state = CycleState(None, None)  # type: ignore[arg-type]
    state.read[CLAIMS] = NO_CLAIMS
    assert plugin.sign(state, nothing) == ()  # type: ignore[arg-type]
    assert plugin.pre_filter(state, nothing) is None  # type: ignore[arg-type]
    assert plugin.reserve(state, nothing, nothing) == ()  # type: ignore[arg-type]
    plugin.unreserve(state, nothing)  # type: ignore[arg-type]
    assert plugin.tell(state, ()) is None


def test_models_have_no_client_and_write_nothing():
    """4381-BCT-10: nothing of theirs is asynchronous, or imports what reaches a server."""
    folder = Path(allot.numeric.__file__).parent
    files = list(folder.rglob("*.py"))
    assert len(files) > 8
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), path
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith(("allot.client", "allot.informers", "allot.apiserver")), path


def test_events_are_asked_for_once_and_pods_when_they_come():
    """4381-SCH-25: cycles do not overlap."""
    asked: list[str] = []
    running = 0

    class Counting(NumericResources):
        @property
        def events(self):  # type: ignore[override]
            asked.append("events")
            return NumericResources.events

    async def story(place):
        nonlocal running
        here = await Numeric(place).furnish({"a": 4})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plugins, "NumericResources", Counting)
            await place.start_controllers()
            await place.start_scheduler()
            scheduler = await place.until(lambda: _there(place), "a scheduler")
            gate, decide = scheduler.cycle.gate, scheduler.cycle.schedule_one

            def gated(pod, snapshot):
                asked.append(f"gate {pod.key.name}")
                return gate(pod, snapshot)

            def one(state, snapshot):
                nonlocal running
                running += 1
                assert running == 1
                outcome = yield from decide(state, snapshot)
                running -= 1
                asked.append(f"cycle {state.pod.key.name}")
                return outcome

            patch.setattr(scheduler.cycle, "gate", gated)
            patch.setattr(scheduler.cycle, "schedule_one", one)
            await here.asks("p", 1)
            await here.asks("q", 1)
            await place.bound("p", "q")
        assert asked[0] == "events"
        first = asked.index("gate p")
        assert "events" not in asked[first:]  # at the start, and never again
        for name in ("p", "q"):
            assert asked.index(f"gate {name}") < asked.index(f"cycle {name}")

    tell(story, started=False)


async def _there(place):
    return place.scheduler


@once
async def test_a_pod_is_held_back_until_its_claims_exist_and_are_its_own(here):
    """4381-SCH-02: it is not tried before."""
    await here.pod("p", "c")
    await here.waits("p", '"c" not found')
    await here.wanting("mine", 1)
    await here.template("t", "mine")
    taken = {
        "metadata": {"name": "q-f"},
        "spec": {"resourceClassName": "frob", "parametersRef": {"kind": "X", "name": "x", "apiGroup": "x"}},
    }
    await here.claims.create(taken, NS)
    entries = [{"name": "f", "resourceClaimTemplateName": "t"}]
    spec = {"containers": [{"name": "main", "image": "busybox"}], "resourceClaims": entries}
    await here.here.create("pods", {"metadata": {"name": "q"}, "spec": spec})
    await here.waits("q", "has not been created from its template")
    await here.here.quiet()
    attempts = "scheduler_schedule_attempts_total{"
    assert attempts not in here.here.metrics.text()
    await here.claim("c", 1)
    await here.claims.delete("q-f", NS)
    await here.here.bound("p", "q")


async def _capacity(here):
    await here.publish("b", 5)


async def _claim_freed(here):
    await here.finish("user")


async def _pod_gone(here):
    await here.here.resource("pods").delete("user", NS, grace_period_s=0)


async def _class(here):
    known = await here.classes.get("frob")
    less = TEMPLATE.replace("object.spec.numberOfFrobnicators", "1")
    await here.classes.update(known.changed({"numericParameters": [{**ENTRY, "celTemplate": less}]}))


async def _parameters(here):
    known = await here.parameters.get("p", NS)
    await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": 1}}))


async def _node(here):
    await here.publish("new", 9)
    await here.here.quiet()
    await here.here.node("new")


@pytest.mark.parametrize(
    "change", [_capacity, _claim_freed, _pod_gone, _class, _parameters, _node], ids=lambda one: one.__name__
)
def test_whatever_may_help_wakes_a_pod_that_waits_for_capacity(change):
    """4381-SCH-01: capacity, claims, classes, parameters, nodes, and pods that go."""

    async def story(place):
        here = await Numeric(place).furnish({"a": 4, "b": 2})
        await here.asks("user", 4)
        await place.bound("user")
        await here.asks("p", 4)
        await here.waits("p", "needs 4")
        await place.quiet()
        await change(here)
        await place.bound("p")

    tell(story)


@once
async def test_parameters_of_the_class_decide_nothing(here):
    """4381-GEN-07: they are handed to the driver, and a change of them changes no node's answer."""
    await here.wanting("of-class", 16)
    own = {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": "of-class", "namespace": NS}
    await here.resource_class("own", parametersRef=own)
    for name, of_class in (("p", 16), ("q", 1)):
        known = await here.parameters.get("of-class", NS)
        await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": of_class}}))
        await here.here.quiet()
        await here.claim(name, 2, resource_class="own")
        await here.pod(name, name)
        await here.here.bound(name)
        assert (await here.taken(name))[2] == 2
        assert (await here.handle(name))["classParameters"]["spec"]["numberOfFrobnicators"] == of_class


@once
async def test_a_model_that_raises_fails_the_pod_and_nobody_else(here):
    """4381-BCT-21."""
    choices = type(COUNTER).choices

    def unlucky(self, want, offers):
        if want.required == 7:
            raise RuntimeError("seven")
        return choices(self, want, offers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(COUNTER), "choices", unlucky)
        await here.asks("bad", 7)
        await here.waits("bad", "internal error", "seven")
        await here.asks("good", 1)
        await here.here.bound("good")
    await here.publish("a", 8)
    assert await here.here.bound("bad") == ["a"]


@once
async def test_a_change_on_one_node_is_work_for_that_node_alone(here):
    """4381-SCL-05: of many nodes that a waiting pod was turned away from."""
    for number in range(20):
        await here.here.node(f"n{number}")
        await here.publish(f"n{number}", 1)
    await here.asks("p", 9)
    await here.waits("p", "needs 9")
    await here.here.quiet()
    looked: list[str] = []
    offers = CapacityOfNodes.offers

    def counted(self, node, ledger):
        looked.append(node)
        return offers(self, node, ledger)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CapacityOfNodes, "offers", counted)
        await here.publish("n7", 3)
        await here.here.quiet()
        assert set(looked) == {"n7"}
        await here.publish("n7", 9)
        assert await here.here.bound("p") == ["n7"]
    assert set(looked) == {"n7"}


@once
async def test_an_allocation_that_would_be_too_large_is_refused_with_its_size(here):
    """4381-ERR-12: with what there may be."""
    await here.wanting("p", 1, env={f"k{number}": "x" * 60_000 for number in range(5)})
    await here.claim("p", made=False)
    await here.pod("p", "p")
    text = await here.waits("p", "bytes", "262144 are the most there may be")
    assert int(text.split(" bytes")[0].split()[-1]) > 300_000
    assert await here.taken("p") is None


MODELS = {
    "counter": ("v1beta1", {"count": 2}, "required: {{object.spec.numberOfFrobnicators}}"),
    "partition": (
        "v1",
        {"slots": 2, "profiles": {"one": {"slots": 1}, "two": {"slots": 2}}},
        "profile: {{object.spec.numberOfFrobnicators == 2 ? 'two' : 'one'}}",
    ),
    "topology": ("v1", {"zones": {"z": 2}}, "required: {{object.spec.numberOfFrobnicators}}"),
}


@pytest.mark.parametrize("model", MODELS)
def test_one_controller_a_model_counts_use_says_what_fits_allocates_and_takes_back(model):
    """4381-BCT-01: two of something, of which one claim takes one and the next cannot have two."""
    version, capacity, asks = MODELS[model]
    api_version = f"{model}.dra.config.k8s.io/{version}"

    async def story(place):
        here = await Numeric(place).furnish({"a": 0})
        await here.put_capacity(
            "a-more", "a", [{"id": "x", "apiVersion": api_version, "kind": "Capacity", "data": capacity}]
        )
        template = f"kind: Parameters\napiVersion: {api_version}\n{asks}\n"
        await here.resource_class("of-model", numericParameters=[{**ENTRY, "celTemplate": template}])
        for name, count in (("first", 1), ("second", 2)):
            await here.claim(name, count, resource_class="of-model")
        await here.pod("first", "first")
        await place.bound("first")
        handle = await here.handle("first")
        assert (handle["apiVersion"], handle["kind"], handle["instance"]) == (api_version, "Allocation", "x")
        await here.pod("second", "second")
        said = await here.waits("second", "0/1 nodes are available")
        assert "what numeric claims ask for" not in said  # the model's own words
        await place.quiet()
        assert "allocation" not in await here.status("second")
        await here.finish("first")
        assert await place.bound("second") == ["a"]

    tell(story)


@once
async def test_what_cannot_be_read_is_counted(here):
    """4381-MON-08: instances, kinds without rights, and templates that fail."""

    async def shown(**wanted):
        async def so():
            text = here.here.metrics.text()
            return all(f"scheduler_numeric_{name} {value}\n" in text for name, value in wanted.items())

        await here.here.until(so, str(wanted))

    await shown(instances_unreadable=0, parameter_types_forbidden=0, template_failures=0)
    await here.put_capacity("b-2", "b", [instance("bad", -1), instance("good", 1)])
    failing = TEMPLATE.replace("numberOf", "no")
    await here.resource_class("fails", numericParameters=[{**ENTRY, "celTemplate": failing}])
    await here.claim("p", 1, resource_class="fails")
    await here.pod("p", "p")
    await here.waits("p", "noFrobnicators")
    await shown(instances_unreadable=1, parameter_types_forbidden=0, template_failures=1)
    configs = {"apiVersion": "v1", "kind": "ConfigMap", "celTemplate": TEMPLATE}
    await here.resource_class("forbidden", numericParameters=[configs])
    await shown(parameter_types_forbidden=1)


def test_every_plugin_is_there_from_the_start_with_every_model():
    """4381-BCT-03: models are loaded when the scheduler's picture is made, and asked for by nobody."""
    known = snapshot_for(Gates()).capacity.models
    groups = {one.api_version.rpartition("/")[0] for one in known.parameter_types}
    assert {f"{name}.dra.config.k8s.io" for name in ("counter", "partition", "topology")} <= groups
    for one in known.parameter_types:
        assert known.for_capacity(TypeId(one.api_version, "Capacity")) is known.for_parameters(one)
    assert any(isinstance(one, NumericResources) for one in plugins.default(RandomIds(), Settings()))


def test_parameter_objects_are_never_of_a_kind_that_the_server_brings(allot_server):
    """4381-ALT-01: no group of a model is served; vendors bring their kinds."""
    asked = Request("GET", "/apis", {}, {"accept": "application/json"}, b"")
    answer = allot_server.run(allot_server.api.handle(asked, identities.ADMIN))
    groups = {one["name"] for one in json.loads(answer.body)["groups"]}
    assert "resource.k8s.io" in groups
    assert not {one for one in groups if "dra.config.k8s.io" in one}
