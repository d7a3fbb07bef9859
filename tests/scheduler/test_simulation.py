"""WHATIF1 to WHATIF3 of `scheduler.simulation`, against clusters that are made anew from the same objects."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import Features
from allot.api import Object, meta, resource
from allot.base import InvariantBroken, RandomIds
from allot.informers import Key
from allot.scheduler.board import first_rejection
from allot.scheduler.cycle import Cycle
from allot.scheduler.extended import in_memory_uid
from allot.scheduler.framework import CycleState, Plugin, Rejection
from allot.scheduler.plugins.claims import ResourceClaims
from allot.scheduler.plugins.devices import DynamicResources
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.pod import PodInfo
from allot.scheduler.simulation import Simulation
from allot.scheduler.snapshot import Snapshot

from . import objects
from .cluster import DRIVER, slice_of
from .picture import picture

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FABRIC = "fabric"
EXTENDED = "example.com/gpu"

# -- a cluster as plain data ------------------------------------------------------------------------


@dataclass(frozen=True)
class Person:
    """A pod: what it asks for. Where it is, is said elsewhere."""

    cpu: int = 0
    claims: tuple[str, ...] = ()
    gpus: int = 0  # as an extended resource


@dataclass(frozen=True)
class Claim:
    count: int = 1
    devices: tuple[str, ...] = ()  # as "pool/gpu-0"
    users: frozenset[str] = frozenset()
    made_for: str = ""  # stands for the extended resources of a pod


@dataclass(frozen=True)
class World:
    nodes: dict[str, tuple[int, int]]  # cpu and devices, by name
    fabric: int
    pods: dict[str, Person]
    claims: dict[str, Claim] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)  # node by pod

    # The deeds, as they would happen to the objects of a cluster.

    def bound(self, pod: str, node: str, devices: dict[str, tuple[str, ...]]) -> "World":
        """`devices` are those of claims that had none."""
        claims = dict(self.claims)
        for name in self.pods[pod].claims:
            has = claims[name]
            claims[name] = replace(has, devices=devices.get(name, has.devices), users=has.users | {pod})
        if found := devices.get(""):
            claims[f"for-{pod}"] = Claim(len(found), found, frozenset({pod}), made_for=pod)
        return replace(self, claims=claims, places={**self.places, pod: node})

    def evicted(self, pod: str) -> "World":
        claims = {}
        for name, claim in self.claims.items():
            left = claim.users - {pod}
            if claim.made_for == pod:
                continue
            claims[name] = claim if pod not in claim.users else replace(claim, users=left)
            if pod in claim.users and not left:
                claims[name] = replace(claims[name], devices=())
        places = {name: node for name, node in self.places.items() if name != pod}
        return replace(self, claims=claims, places=places)

    def with_node(self, name: str, cpu: int, gpus: int) -> "World":
        return replace(self, nodes={**self.nodes, name: (cpu, gpus)})

    def without_node(self, name: str) -> "World":
        world = self
        for pod in sorted(self.on(name)):
            world = world.evicted(pod)
        return replace(world, nodes={one: has for one, has in self.nodes.items() if one != name})

    def on(self, node: str) -> list[str]:
        return [pod for pod, place in self.places.items() if place == node]

    @property
    def waiting(self) -> list[str]:
        return [name for name in self.pods if name not in self.places]

    # The same as a scheduler has it that has just started.

    def snapshot(self) -> Snapshot:
        made = Snapshot(Features())
        spec = {"extendedResourceName": EXTENDED}
        made.put_class(meta.view(resource.DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec}))
        for name, (cpu, gpus) in self.nodes.items():
            made.put_node(objects.node(name, allocatable={"cpu": str(cpu)}))
            made.inventory.apply(published(name, gpus))
        made.inventory.apply(published(FABRIC, self.fabric))
        for name, claim in self.claims.items():
            made.put_claim(claim_object(name, claim))
        for name, node in self.places.items():
            made.place(self.pod(name), node)
        return made

    def pod(self, name: str) -> PodInfo:
        person = self.pods[name]
        requests = {"cpu": str(person.cpu), **({EXTENDED: str(person.gpus)} if person.gpus else {})}
        used = [{"name": one, "resourceClaimName": one} for one in person.claims]
        return objects.pod(name, requests=requests, resourceClaims=used)


def published(pool: str, gpus: int) -> resource.ResourceSlice:
    return meta.view(resource.ResourceSlice, slice_fields(pool, gpus))


def slice_fields(pool: str, gpus: int) -> dict[str, Any]:
    devices = [{"name": f"gpu-{index}"} for index in range(gpus)]
    fields = slice_of(pool, devices, **({"allNodes": True} if pool == FABRIC else {}))
    fields["metadata"]["name"] = f"{pool}-slice"
    return fields


def node_object(name: str, cpu: int) -> Object:
    return Object(
        msgspec.json.encode(
            {
                "metadata": {"name": name, "uid": f"uid-of-{name}"},
                "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}},
            }
        )
    )


def claim_object(name: str, claim: Claim) -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    if claim.made_for:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": claim.made_for, "uid": f"uid-of-{claim.made_for}"}
        metadata["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    status: dict[str, Any] = {}
    if claim.devices:
        results = []
        for one in claim.devices:
            pool, device = one.split("/")
            results.append({"request": "gpu", "driver": DRIVER, "pool": pool, "device": device})
        status["allocation"] = {"devices": {"results": results}}
        home = next((one.split("/")[0] for one in claim.devices if not one.startswith(FABRIC)), None)
        if home is not None:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [home]}]}
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
        status["reservedFor"] = [
            {"resource": "pods", "name": user, "uid": f"uid-of-{user}"} for user in sorted(claim.users)
        ]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": claim.count}}
    fields = {"metadata": metadata, "spec": {"devices": {"requests": [request]}}, "status": status}
    return Object(msgspec.json.encode(fields))


def plugins() -> list[Plugin]:
    return [NodeResourcesFit(), ResourceClaims(), DynamicResources(RandomIds(random.Random(1)))]


def simulation_of(world: World) -> Simulation:
    return Simulation(world.snapshot(), plugins(), NOW)


# -- the same questions, put to the simulation and to a cluster that is made anew ---------------------


def in_simulation(simulation: Simulation, world: World) -> dict[tuple[str, str], Rejection | None]:
    found: dict[tuple[str, str], Rejection | None] = {}
    for name in world.waiting:
        for node in world.nodes:
            answer = simulation.fits(world.pod(name), [node])
            found[name, node] = None if isinstance(answer, str) else answer[node]
    return found


def in_a_cluster(world: World) -> dict[tuple[str, str], Rejection | None]:
    snapshot = world.snapshot()
    cycle = Cycle(plugins())
    found: dict[tuple[str, str], Rejection | None] = {}
    for name in world.waiting:
        state = CycleState(world.pod(name), NOW)
        signature = cycle.sign(state, snapshot)
        for node in world.nodes:
            known = snapshot.node(node)
            assert known is not None
            rejected = isinstance(signature, Rejection)
            found[name, node] = (
                signature if rejected else first_rejection(cycle.checks(state, snapshot)[0], known)
            )
    return found


def devices_given(simulation: Simulation, before: World, pod: str) -> dict[str, tuple[str, ...]]:
    """What the simulation chose for the claims that had nothing; "" is for extended resources."""
    given = {}
    wanting = {name: f"claim-{name}" for name in before.pods[pod].claims if not before.claims[name].devices}
    if before.pods[pod].gpus:
        wanting[""] = in_memory_uid(f"uid-of-{pod}")
    for name, uid in wanting.items():
        hold = simulation.snapshot.ledger.hold(uid)
        assert hold is not None
        given[name] = tuple(f"{one.device.pool}/{one.device.name}" for one in hold.devices)
    return given


# -- histories ----------------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = {name: (draw(st.integers(1, 4)), draw(st.integers(0, 3))) for name in "ab"}
    claims = {name: Claim(draw(st.integers(1, 2))) for name in ("own", "other", "shared")}
    pods = {
        "plain": Person(cpu=draw(st.integers(1, 3))),
        "owner": Person(cpu=draw(st.integers(0, 2)), claims=("own",)),
        "both": Person(claims=("shared", "other")),
        "sharer": Person(cpu=1, claims=("shared",)),
        "second": Person(claims=("shared",)),
        "extended": Person(cpu=1, gpus=draw(st.integers(1, 2))),
        "more": Person(gpus=1),
    }
    world = World(nodes, draw(st.integers(0, 2)), pods, claims)
    for name in draw(st.lists(st.sampled_from(sorted(pods)), max_size=4, unique=True)):
        world = begun(world, name)
    if draw(st.booleans()):  # allocated, and used by nobody
        idle = draw(st.sampled_from(sorted(claims)))
        world = replace(world, claims={**world.claims, idle: replace(world.claims[idle], users=frozenset())})
        using = [name for name, person in pods.items() if idle in person.claims and name in world.places]
        world = replace(world, places={pod: node for pod, node in world.places.items() if pod not in using})
    return world


def begun(world: World, name: str) -> World:
    """The pod is placed before the story begins, where it fits."""
    simulation = simulation_of(world)
    place = simulation.fits(world.pod(name), world.nodes)
    if not isinstance(place, str):
        return world
    assert simulation.bind(world.pod(name), place) is None
    return world.bound(name, place, devices_given(simulation, world, name))


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("bind"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("bind"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("evict"), st.integers(0, 9)),
        st.tuples(st.just("evict"), st.integers(0, 9)),
        st.tuples(st.just("add"), st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("reset")),
    ),
    max_size=8,
)


def happen(simulation: Simulation, start: World, deeds: list[Any]) -> Iterator[World]:
    """Do them, and say how the world is after each."""
    world = start
    for deed in deeds:
        match deed:
            case "bind", who, where if world.waiting and world.nodes:
                pod = world.waiting[who % len(world.waiting)]
                node = sorted(world.nodes)[where % len(world.nodes)]
                expected = in_a_cluster(world)[pod, node]
                assert simulation.bind(world.pod(pod), node) == expected
                if expected is None:
                    world = world.bound(pod, node, devices_given(simulation, world, pod))
            case "evict", who if world.places:
                pod = sorted(world.places)[who % len(world.places)]
                simulation.evict(world.pod(pod))
                world = world.evicted(pod)
            case "add", name, cpu, gpus if name not in world.nodes:
                fields = msgspec.json.encode(slice_fields(name, gpus))
                simulation.add_node(node_object(name, cpu), [Object(fields)])
                world = world.with_node(name, cpu, gpus)
            case "remove", where if world.nodes:
                node = sorted(world.nodes)[where % len(world.nodes)]
                gone = simulation.remove_node(node)
                assert sorted(pod.key.name for pod in gone) == sorted(world.on(node))
                world = world.without_node(node)
            case ("reset",):
                simulation.reset()
                world = start
            case _:
                continue
        yield world


@settings(max_examples=80, deadline=None)
@given(worlds(), DEEDS)
def test_after_any_deeds_it_answers_as_a_cluster_to_which_they_happened(world, deeds):
    """WHATIF1, and WHATIF3: the snapshot that it began with is as it was."""
    snapshot = world.snapshot()
    before = picture(snapshot)
    simulation = Simulation(snapshot, plugins(), NOW)
    assert in_simulation(simulation, world) == in_a_cluster(world)
    for now in happen(simulation, world, deeds):
        assert in_simulation(simulation, now) == in_a_cluster(now)
        simulation.snapshot.ledger.check()
    assert picture(snapshot) == before


@settings(max_examples=60, deadline=None)
@given(worlds(), DEEDS)
def test_after_a_reset_it_is_as_it_was(world, deeds):
    """WHATIF2."""
    simulation = simulation_of(world)
    before = without_journals(simulation)
    for _ in happen(simulation, world, deeds):
        pass
    simulation.reset()
    assert without_journals(simulation) == before


@settings(max_examples=60, deadline=None)
@given(worlds(), st.lists(st.integers(0, 9), max_size=4), st.randoms(use_true_random=False))
def test_evicted_pods_come_back_in_any_order(world, whom, order):
    simulation = simulation_of(world)
    before = without_journals(simulation)
    out = {sorted(world.places)[at % len(world.places)] for at in whom} if world.places else set()
    for name in sorted(out):
        simulation.evict(world.pod(name))
    back = sorted(out)
    order.shuffle(back)
    now = world
    for name in out:
        now = now.evicted(name)
    for at, name in enumerate(back):
        simulation.restore(world.pod(name))
        now = world
        for gone in back[at + 1 :]:
            now = now.evicted(gone)
        assert in_simulation(simulation, now) == in_a_cluster(now)
    assert without_journals(simulation) == before


def without_journals(simulation: Simulation) -> object:
    """Nothing used of a resource is the same as no word of it."""

    def stripped(it: object) -> object:
        if isinstance(it, dict):
            kept = {key: value for key, value in it.items() if key != "_journal"}
            if "used" in kept:
                kept["used"] = {name: amount for name, amount in kept["used"].items() if amount}
            return {key: stripped(value) for key, value in kept.items()}
        return it

    return stripped(picture(simulation.snapshot))


# -- stories --------------------------------------------------------------------------------------------

SHARING = World(
    {"a": (4, 1), "b": (4, 1)},
    fabric=0,
    pods={"first": Person(claims=("c",)), "second": Person(claims=("c",)), "greedy": Person(gpus=1)},
    claims={"c": Claim()},
)


def test_the_first_user_of_a_claim_gets_devices_and_the_next_follows():
    simulation = simulation_of(SHARING)
    assert simulation.bind(SHARING.pod("first"), "b") is None
    assert simulation.fits(SHARING.pod("second"), ["a", "b"]) == "b"
    assert simulation.bind(SHARING.pod("second"), "b") is None
    claim = simulation.snapshot.claim(Key("default", "c"))
    assert claim is not None and [one.name for one in claim.reserved_for] == ["first", "second"]


def test_after_an_eviction_the_same_pod_can_be_tried_elsewhere():
    for name in ("first", "greedy"):
        simulation = simulation_of(SHARING)
        assert simulation.bind(SHARING.pod(name), "b") is None
        simulation.evict(SHARING.pod(name))
        assert simulation.bind(SHARING.pod(name), "a") is None


def test_a_pod_that_does_not_fit_changes_nothing():
    simulation = simulation_of(SHARING)
    assert simulation.bind(SHARING.pod("greedy"), "a") is None
    before = picture(simulation.snapshot)
    why = simulation.bind(SHARING.pod("first"), "a")
    assert why is not None and why.reason == "cannot allocate all claims"
    why = simulation.bind(SHARING.pod("first"), "nowhere")
    assert why is not None and why.reason == "there is no such node"
    assert picture(simulation.snapshot) == before


def test_a_pod_is_not_bound_twice():
    simulation = simulation_of(SHARING)
    simulation.bind(SHARING.pod("greedy"), "a")
    with pytest.raises(InvariantBroken, match="default/greedy goes to node b and is on node a"):
        simulation.bind(SHARING.pod("greedy"), "b")


def test_what_is_there_already_is_not_added():
    simulation = simulation_of(SHARING)
    with pytest.raises(ValueError, match="node a is there already"):
        simulation.add_node(node_object("a", 1))
    with pytest.raises(ValueError, match="slice a-slice is there already"):
        simulation.add_node(node_object("c", 1), [Object(msgspec.json.encode(slice_fields("a", 1)))])
    assert simulation.snapshot.node("c") is None
    assert simulation.remove_node("nowhere") == ()


def test_a_node_goes_with_what_is_published_for_it_and_may_come_back_with_something_else():
    simulation = simulation_of(SHARING)
    simulation.remove_node("a")
    assert "a-slice" not in simulation.snapshot.inventory
    assert "fabric-slice" in simulation.snapshot.inventory
    simulation.add_node(node_object("a", 4))
    assert simulation.fits(SHARING.pod("greedy"), ["a", "b"]) == "b"
    simulation.reset()
    assert simulation.fits(SHARING.pod("greedy"), ["a", "b"]) == "a"


def test_claims_that_are_kept_have_their_devices_whoever_leaves():
    snapshot = SHARING.bound("first", "a", {"c": ("a/gpu-0",)}).snapshot()
    for keeps, expected in (((), 2), (("claim-c",), 1)):
        simulation = Simulation(snapshot, plugins(), NOW, keeps=keeps)
        simulation.evict(SHARING.pod("first"))
        fitting = [name for name in "ab" if simulation.fits(SHARING.pod("greedy"), [name]) == name]
        assert len(fitting) == expected


def test_what_is_given_back_stays_so_through_resets():
    snapshot = SHARING.bound("first", "a", {"c": ("a/gpu-0",)}).snapshot()
    simulation = Simulation(snapshot, plugins(), NOW)
    assert simulation.fits(SHARING.pod("greedy"), ["a"]) != "a"
    simulation.evict(SHARING.pod("first"))
    simulation.give_back("claim-c")
    for _ in range(2):
        simulation.reset()
        assert simulation.fits(SHARING.pod("greedy"), ["a"]) == "a"
        simulation.remove_node("b")
