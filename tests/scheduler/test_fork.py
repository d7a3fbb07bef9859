"""SNAP3: whatever is done to a fork of a snapshot, or to a fork of the fork, its parent never notices.

Two questions are put to every history. Is the parent afterwards what it was before? And does the fork show
what was done: is it what a snapshot is to which all of it happened, without a fork? Snapshots are compared by
everything that can be reached from them, so that a part that is added later is compared without a word here.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from allot.allocation import DeviceId, Features, Taken
from allot.api import Object, compute, core, meta, numeric, resource
from allot.informers import Key, ResourceId
from allot.numeric import Registry
from allot.numeric.models import COUNTER
from allot.scheduler.parameters import NOT_READ_YET, ParameterKind, Standing
from allot.scheduler.pod import PodInfo
from allot.scheduler.prospects import LeftOff, Prospects
from allot.scheduler.snapshot import Snapshot
from allot.scheduler.talk import Talk

from .classic import resource_class, scheduling
from .cluster import DRIVER, claim_spec, slice_of
from .objects import node, pod
from .picture import picture

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PARAMETERS = ResourceId("example.com", "v1", "parameters")
KIND = ParameterKind("example.com", "v1", "Parameters")


def instance(count: int) -> dict[str, Any]:
    types = {"api_version": "counter.dra.config.k8s.io/v1beta1", "kind": "Capacity"}
    return {"id": "c0", **types, "data": {"count": count}}


# -- deeds: one word for each way to change a snapshot ------------------------------------------------

NODES = st.sampled_from("ab")
PODS = st.sampled_from("pqr")
CLAIMS = st.sampled_from("cd")
POOLS = st.sampled_from(["a", "b", "fabric"])
GPUS = st.sampled_from(["gpu-0", "gpu-1"])
CLASSES = st.sampled_from(["gpu", "nic"])
VERSIONS = st.integers(1, 9)
MINUTES = st.integers(0, 3)

DEEDS: Mapping[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "put_node": st.tuples(NODES, st.booleans()),
    "drop_node": st.tuples(NODES),
    "list_compute": st.tuples(NODES, st.integers(0, 2)),
    "place": st.tuples(PODS, NODES),
    "remove": st.tuples(PODS),
    "nominate": st.tuples(PODS, NODES),
    "unnominate": st.tuples(PODS),
    "put_claim": st.tuples(CLAIMS, VERSIONS, st.booleans(), POOLS, st.one_of(st.just(""), GPUS), PODS),
    "put_unreadable": st.tuples(CLAIMS, VERSIONS, POOLS, GPUS),
    "drop_claim": st.tuples(CLAIMS, st.booleans()),
    "put_class": st.tuples(CLASSES, st.sampled_from(["", "example.com/x"]), st.integers(0, 1)),
    "drop_class": st.tuples(CLASSES),
    "put_resource_class": st.tuples(CLASSES, st.sampled_from(["one.example.com", "two.example.com"])),
    "drop_resource_class": st.tuples(CLASSES),
    "put_compute_class": st.tuples(CLASSES, st.sampled_from(["one.example.com/gpu", "two.example.com/gpu"])),
    "drop_compute_class": st.tuples(CLASSES),
    "put_capacity": st.tuples(NODES, st.integers(0, 2)),
    "drop_capacity": st.tuples(NODES),
    "put_parameters": st.tuples(CLAIMS, VERSIONS),
    "drop_parameters": st.tuples(CLAIMS),
    "stand": st.tuples(st.booleans()),
    "forget": st.tuples(),
    "put_talk": st.tuples(PODS, NODES, st.booleans()),
    "drop_talk": st.tuples(PODS),
    "apply": st.tuples(POOLS, st.integers(1, 2), st.booleans()),
    "withdraw": st.tuples(POOLS),
    "taint": st.tuples(POOLS),
    "untaint": st.tuples(POOLS),
    "fly": st.tuples(CLAIMS, POOLS, GPUS),
    "cancel": st.tuples(CLAIMS),
    "rename_flight": st.tuples(CLAIMS, CLAIMS),
    "leave": st.tuples(PODS, CLAIMS),
    "returned": st.tuples(CLAIMS),
    "evict": st.tuples(PODS, MINUTES),
    "spare": st.tuples(PODS),
    "leave_off": st.tuples(PODS, NODES, MINUTES),
    "resume": st.tuples(PODS, MINUTES),
    "put_budget": st.tuples(CLAIMS, st.integers(0, 1)),
    "drop_budget": st.tuples(CLAIMS),
}
Deed = tuple[str, tuple[Any, ...]]


def deeds() -> st.SearchStrategy[list[Deed]]:
    return st.lists(
        st.one_of([st.tuples(st.just(verb), with_) for verb, with_ in DEEDS.items()]), max_size=15
    )


def do(snapshot: Snapshot, deed: Deed) -> None:
    inventory, ledger, prospects = snapshot.inventory, snapshot.ledger, snapshot.prospects
    match deed:
        case "put_node", (name, cordoned):
            exported = [{"name": "r", "resourceName": f"example.com/{name}"}] if cordoned else []
            snapshot.put_node(node(name, unschedulable=cordoned, compute=exported))
        case "list_compute", (name, count):
            entry = core.ComputeResource("r", "example.com/listed", {}, (), tuple("ab"[:count]))
            snapshot.list_compute(name, (entry,) if count else ())
        case "drop_node", (name,):
            snapshot.drop_node(name)
        case "place", (who, name):
            snapshot.place(known(who), name)
        case "remove", (who,):
            snapshot.remove(f"uid-of-{who}")
        case "nominate", (who, name):
            snapshot.nominate(known(who), name)
        case "unnominate", (who,):
            snapshot.unnominate(f"uid-of-{who}")
        case "put_claim", (name, version, is_extended, pool, gpu, who):
            snapshot.put_claim(claim(name, version, pool, gpu, made_for=who if is_extended else ""))
        case "put_unreadable", (name, version, pool, gpu):
            snapshot.put_unreadable(claim(name, version, pool, gpu))
        case "drop_claim", (name, is_other):
            snapshot.drop_claim(key(name), "another" if is_other else uid(name))
        case "put_class", (name, serves, variant):
            snapshot.put_class(device_class(name, serves, variant))
        case "drop_class", (name,):
            snapshot.drop_class(name)
        case "put_resource_class", (name, driver):
            snapshot.put_resource_class(resource_class(name, driver))
        case "drop_resource_class", (name,):
            snapshot.drop_resource_class(name)
        case "put_capacity", (name, count):
            listed = [numeric.NodeResourceInstance(**one) for one in [instance(count)]]
            snapshot.capacity.put(
                numeric.NodeResourceCapacity(
                    metadata=meta.ObjectMeta(name=f"of-{name}"),
                    node_name=name,
                    driver_name=DRIVER,
                    instances=tuple(listed),
                )
            )
        case "drop_capacity", (name,):
            snapshot.capacity.drop(f"of-{name}")
        case "put_parameters", (name, version):
            snapshot.parameters.put(PARAMETERS, claim(name, version, "a", ""))
        case "drop_parameters", (name,):
            snapshot.parameters.drop(PARAMETERS, key(name))
        case "stand", (is_read,):
            snapshot.parameters.stand(KIND, Standing(PARAMETERS) if is_read else NOT_READ_YET)
        case "forget", ():
            snapshot.parameters.forget(KIND)
        case "put_compute_class", (name, raw):
            said = {"metadata": {"name": name}, "spec": {"resourceName": raw}}
            snapshot.put_compute_class(meta.view(compute.ResourceClass, said))
        case "drop_compute_class", (name,):
            snapshot.drop_compute_class(name)
        case "put_talk", (who, name, is_chosen):
            snapshot.put_talk(Talk.of(scheduling(who, [name], name if is_chosen else "")))
        case "drop_talk", (who,):
            snapshot.drop_talk(key(who), f"uid-talk-{who}")
        case "apply", (pool, generation, has_both):
            inventory.apply(published(pool, generation, has_both))
        case "withdraw", (pool,):
            inventory.remove(f"{pool}-slice")
        case "taint", (pool,):
            inventory.apply_taint_rule(rule(pool))
        case "untaint", (pool,):
            inventory.remove_taint_rule(pool)
        case "fly", (name, pool, gpu):
            ledger.fly(uid(name), [Taken(DeviceId(DRIVER, pool, gpu))])
        case "cancel", (name,):
            ledger.cancel(uid(name))
        case "rename_flight", (old, new):
            snapshot.rename_flight(uid(old), uid(new))
        case "leave", (who, name):
            prospects.leave(f"uid-of-{who}", [key(name)])
        case "returned", (name,):
            prospects.returned(key(name))
        case "evict", (who, minute):
            prospects.evict([known(who)], NOW + timedelta(minutes=minute))
        case "spare", (who,):
            prospects.spare([f"uid-of-{who}"])
        case "leave_off", (who, name, minute):
            prospects.leave_off(f"uid-of-{who}", LeftOff(name, 1, NOW + timedelta(minutes=minute)))
        case "resume", (who, minute):
            prospects.resumed(f"uid-of-{who}", NOW + timedelta(minutes=minute))
        case "put_budget", (name, allowed):
            prospects.budgets.set(key(name), budget(name, allowed))
        case "drop_budget", (name,):
            prospects.budgets.drop(key(name))
        case _:
            raise AssertionError(deed)


PEOPLE = {
    who: pod(who, priority=number, requests={"cpu": str(number + 1)}) for number, who in enumerate("pqr")
}


def known(who: str) -> PodInfo:
    return PEOPLE[who]


def key(name: str) -> Key:
    return Key("default", name)


def uid(name: str) -> str:
    return f"claim-{name}"


def claim(name: str, version: int, pool: str, gpu: str, made_for: str = "") -> Object:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": uid(name),
        "resourceVersion": str(version),
    }
    if made_for:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": made_for, "uid": f"uid-of-{made_for}"}
        metadata["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    status: dict[str, Any] = {}
    if gpu:
        result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": gpu}
        status = {"allocation": {"devices": {"results": [result]}}}
    return Object(
        msgspec.json.encode({"metadata": metadata, "spec": claim_spec(), "status": status}), version
    )


def device_class(name: str, serves: str, variant: int) -> resource.DeviceClass:
    selectors = [{"cel": {"expression": "true"}}] * variant
    spec = {"extendedResourceName": serves, "selectors": selectors}
    return meta.view(resource.DeviceClass, {"metadata": {"name": name}, "spec": spec})


def published(pool: str, generation: int, has_both: bool) -> resource.ResourceSlice:
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}][: 2 if has_both else 1]
    fields = slice_of(pool, devices, **({"allNodes": True} if pool == "fabric" else {}))
    fields["metadata"]["name"] = f"{pool}-slice"
    fields["spec"]["pool"]["generation"] = generation
    return meta.view(resource.ResourceSlice, fields)


def rule(pool: str) -> resource.DeviceTaintRule:
    selector = {"driver": DRIVER, "pool": pool}
    spec = {"deviceSelector": selector, "taint": {"key": "bad", "effect": "NoSchedule"}}
    return meta.view(resource.DeviceTaintRule, {"metadata": {"name": pool}, "spec": spec})


def budget(name: str, allowed: int) -> core.PodDisruptionBudget:
    fields = {"metadata": {"name": name}, "status": {"disruptionsAllowed": allowed}}
    return meta.view(core.PodDisruptionBudget, fields)


# -- what is compared ----------------------------------------------------------------------------------


def views(snapshot: Snapshot) -> object:
    """What nodes see of devices: asked through the caches, which pictures leave out."""
    seen = {one.name: snapshot.inventory.view(one.place) for one in snapshot.nodes()}
    return {
        name: [(one.id, [taint.key for taint in one.taints]) for one in view.devices]
        for name, view in seen.items()
    }


def replayed(*histories: list[Deed]) -> Snapshot:
    made = Snapshot(Features(), models=Registry([COUNTER]))
    for history in histories:
        for deed in history:
            do(made, deed)
    return made


# -- the property -------------------------------------------------------------------------------------


def leaves_its_parent_alone(before: list[Deed], there: list[Deed], deeper: list[Deed]) -> None:
    parent = replayed(before)
    earlier, seen = picture(parent), views(parent)

    fork = parent.fork()
    for deed in there:
        do(fork, deed)
    forked, seen_there = picture(fork), views(fork)
    deepest = fork.fork()
    for deed in deeper:
        do(deepest, deed)

    assert (picture(fork), views(fork)) == (forked, seen_there)
    assert (picture(parent), views(parent)) == (earlier, seen)


HISTORIES = (deeds(), deeds(), deeds())
test_whatever_is_done_to_a_fork_its_parent_is_as_it_was = settings(max_examples=250, deadline=None)(
    given(*HISTORIES)(leaves_its_parent_alone)
)


@settings(max_examples=250, deadline=None)
@given(*HISTORIES)
def test_a_fork_is_what_a_snapshot_is_to_which_the_same_happened(before, there, deeper):
    parent = replayed(before)
    fork = parent.fork()
    mark = fork.mark()
    plain = replayed(before)
    for deed in there:
        do(fork, deed)
        do(plain, deed)
    assert picture(fork, journals=False) == picture(plain, journals=False)
    assert views(fork) == views(plain)
    assert fork.moved_since(mark) == plain.moved_since(mark)

    deepest = fork.fork()
    for deed in deeper:
        do(deepest, deed)
        do(plain, deed)
    assert picture(deepest, journals=False) == picture(plain, journals=False)
    assert views(deepest) == views(plain)
    assert deepest.mark() == plain.mark()


# -- and that it can fail -----------------------------------------------------------------------------

Share = Callable[[Snapshot, Snapshot], None]


def _shares(name: str) -> Share:
    def share(parent: Snapshot, child: Snapshot) -> None:
        setattr(child, name, getattr(parent, name))

    return share


def _shares_of(part: str, name: str) -> Share:
    def share(parent: Snapshot, child: Snapshot) -> None:
        setattr(getattr(child, part), name, getattr(getattr(parent, part), name))

    return share


SNAPSHOT = sorted(
    name for name, value in vars(Snapshot(Features())).items() if not isinstance(value, bool | int | Features)
)
PROSPECTS = sorted(name for name, value in vars(Prospects()).items() if not isinstance(value, int))


@pytest.mark.parametrize(
    "share",
    [pytest.param(_shares(name), id=name) for name in SNAPSHOT]
    + [pytest.param(_shares_of("prospects", name), id=f"prospects.{name}") for name in PROSPECTS],
)
def test_a_part_that_parent_and_fork_share_is_found(share: Share, monkeypatch: pytest.MonkeyPatch):
    """For each part in turn: were it shared, the property would not hold."""
    fork = Snapshot.fork

    def sharing(self: Snapshot) -> Snapshot:
        child = fork(self)
        share(self, child)
        return child

    monkeypatch.setattr(Snapshot, "fork", sharing)
    with pytest.raises(AssertionError):
        until_it_fails(leaves_its_parent_alone)()


def until_it_fails(property: Callable[..., None]) -> Callable[[], None]:
    """The first failure will do: it is not made smaller, and not remembered."""
    quick = settings(
        max_examples=1000,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        derandomize=True,
    )
    return quick(given(*HISTORIES)(property))
