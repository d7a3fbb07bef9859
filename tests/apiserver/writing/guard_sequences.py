"""Random sequences of status writes by several writers, on two servers, while slices change under them.

The machine acts through the API alone: every version, every way to write, alone and in crowds. Of a
crowd the revisions tell the order. What was accepted must be allowed by the model (`guard_model`) at
its place in that order; what was refused must not be allowed at one moment at least of the crowd's
life, which for somebody who writes alone means: is not allowed. At the end the claims, the hold
records and the model agree, and when all is given back nothing is left.
"""

import asyncio
import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from allot.api import Gates, Request
from allot.apiserver import ApiServer, Options, identities
from allot.store import Store, Unavailable

from .guard_model import Device, Pool, Result, Slice

DRIVER = "gpu.example.com"
VERSIONS = ("v1", "v1beta1", "v1beta2")
WAYS = ("update", "merge", "json", "apply")
CLAIMS = ("c0", "c1", "c2", "c3", "c4")
SLICES = ("s0", "s1", "s2")
NODE = "n"
ADMIN_LABEL = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
MERGE, PATCH, APPLY = (
    f"application/{one}" for one in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)

REASONS = (
    "is held by another claim",
    "no slice allows several allocations",
    "does not share it",
    "has no capacity",
    "does not say how much",
    "the shares of device",
    "the held devices need",
    "which no slice of its pool has",
    "is not known",
    "no compatibility group in common",
    "greater than or equal to zero",
    "Duplicate value",
)
"""Pieces of what the guard says, so that a run shows what it met."""

UNKNOWN = (503, 504)
"""The store did not answer in time: whether it was written is not known, and the sequence ends."""

Fields = dict[str, Any]


# -- what writers do ------------------------------------------------------------------------------


@dataclass(frozen=True)
class How:
    server: int
    version: str
    way: str


@dataclass(frozen=True)
class Publish:
    pool: int
    name: str
    slice: Slice
    count: int  # of slices, as the slice says; often wrong
    how: How


@dataclass(frozen=True)
class Withdraw:
    pool: int
    name: str
    how: How


@dataclass(frozen=True)
class Give:
    claim: str
    results: tuple[Result, ...]  # their pool is "0" or "1"
    sensible: bool  # consume what the device has, by its names
    how: How


@dataclass(frozen=True)
class TakeBack:
    claim: str
    delete: bool
    how: How


@dataclass(frozen=True)
class Vary:
    """Publish anew what a slice has, with one thing changed, in its place or beside it."""

    name: str
    to: str
    change: str
    newer: int
    how: How


Act = Publish | Withdraw | Give | TakeBack

DEVICES = "abcde"

names = st.sampled_from(DEVICES)
hows = st.builds(How, st.integers(0, 1), st.sampled_from(VERSIONS), st.sampled_from(WAYS))
counter_sets = st.sampled_from("ssssssst")
counter_names = st.sampled_from("xxxxxxxy")


def counters(least: int, most: int) -> st.SearchStrategy[dict[str, dict[str, int]]]:
    amounts = st.dictionaries(counter_names, st.integers(least, most), min_size=1, max_size=2)
    return st.dictionaries(counter_sets, amounts, min_size=1, max_size=2)


groups = st.sampled_from([(), (), (), (), ("g",), ("g",), ("h",), ("g", "h")]).map(frozenset)
capacity_names = st.sampled_from(["memory", "memory", f"{DRIVER}/memory", "tiles"])
capacities = st.dictionaries(capacity_names, st.integers(0, 5), max_size=2)


@st.composite
def devices(draw: st.DrawFn, name: str) -> Device:
    draws = draw(st.one_of(st.just({}), counters(0, 2), counters(1, 2)))
    said = {one: draw(groups) for one in draws}
    meant = {one: group for one, group in said.items() if group}
    return Device(name, draw(st.booleans()), draw(capacities), draws, meant)


@st.composite
def device_slices(draw: st.DrawFn, listed: Sequence[str], generations: st.SearchStrategy[int]) -> Slice:
    return Slice(draw(generations), tuple(draw(devices(name)) for name in listed))


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    generations = st.integers(1, 3)
    if draw(st.integers(0, 2)) == 0:
        return Slice(draw(generations), sets=draw(counters(0, 4)))
    return draw(device_slices(draw(st.lists(names, min_size=1, max_size=4, unique=True)), generations))


amounts = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 9])
said_names = st.sampled_from(["memory", f"{DRIVER}/memory", "tiles", "x.com/memory"])
consumptions = st.one_of(
    st.dictionaries(said_names, amounts, max_size=2),
    st.dictionaries(said_names, amounts, max_size=2),
    st.dictionaries(said_names, st.integers(-3, 5), max_size=2),
)
results = st.builds(
    Result,
    pool=st.sampled_from("00001"),
    device=names,
    share=st.sampled_from([None, 0, 1, 2, 3, 4, 5]),
    consumes=consumptions,
    admin=st.sampled_from([False] * 9 + [True]),
)
result_lists = st.one_of(
    st.lists(results, min_size=1, max_size=3, unique_by=lambda one: (one.pool, one.device)),
    st.lists(results, min_size=1, max_size=2, unique_by=lambda one: (one.pool, one.device)),
    st.lists(results, min_size=1, max_size=3),
)
pools = st.sampled_from([0, 0, 0, 1])
slice_names = st.sampled_from(SLICES)
publications = st.builds(Publish, pools, slice_names, slices(), st.integers(1, 3), hows)
withdrawals = st.builds(Withdraw, pools, slice_names, hows)
allocations = st.builds(
    Give,
    st.sampled_from(CLAIMS),
    result_lists.map(tuple),
    st.sampled_from([True, True, True, False]),
    hows,
)
variations = st.builds(
    Vary,
    slice_names,
    slice_names,
    st.sampled_from(["less", "more", "plain", "alone", "fewer"]),
    st.integers(0, 1),
    hows,
)
returns = st.builds(TakeBack, st.sampled_from(CLAIMS), st.booleans(), hows)
crowds = st.lists(
    st.one_of(allocations, allocations, allocations, publications, withdrawals, returns),
    min_size=2,
    max_size=4,
)


# -- the servers ------------------------------------------------------------------------------------


class Servers:
    """Two servers on one store, in process, kept for many sequences."""

    def __init__(self, stores: Sequence[Store]) -> None:
        """One store twice where it lives in this process, else two that reach the same."""
        self.stores = stores
        self.runner = asyncio.Runner()
        self.numbers = itertools.count()
        options = Options(gates=Gates({"DRADeviceCompatibilityGroups": True}), watch_loop=False)
        self.servers = [ApiServer(store, options) for store in stores]
        self.runner.run(self._start())

    async def _start(self) -> None:
        for server in self.servers:
            await server.start()
        for number in range(len(self.servers)):
            await self._until_roles_are_known(number)

    async def _until_roles_are_known(self, server: int) -> None:
        """On etcd the roles that a server plants reach its authorizer a moment later."""
        for _ in range(300):
            status, _ = await self.ask(server, "PATCH", "/api/v1/namespaces/default", ADMIN_LABEL, MERGE)
            if status == 200:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"server {server} does not let its administrator in: {status}")

    async def ask(
        self, server: int, method: str, path: str, body: Any = None, media: str = "application/json"
    ) -> tuple[int, Fields]:
        raw = b"" if body is None else json.dumps(body).encode()
        query = {"fieldManager": "writer", "force": "true"} if media == APPLY else {}
        request = Request(method, path, query, {"content-type": media}, raw)
        response = await self.servers[server].handle(request, identities.ADMIN)
        return response.status, json.loads(response.body)

    async def surely(self, server: int, method: str, path: str, body: Any = None) -> tuple[int, Fields]:
        """For what may be asked again until there is an answer."""
        while True:
            status, answer = await self.ask(server, method, path, body)
            if status not in UNKNOWN:
                return status, answer
            await asyncio.sleep(0.1)

    async def stored(self, key: str) -> Any:
        while True:
            try:
                entry = await self.stores[0].get(key)
            except Unavailable:
                await asyncio.sleep(0.1)
            else:
                return None if entry is None else json.loads(entry.value)

    def close(self) -> None:
        async def end() -> None:
            for server in self.servers:
                await server.close()
            for store in {id(store): store for store in self.stores}.values():
                await store.close()

        self.runner.run(end())
        self.runner.close()


# -- the machine ------------------------------------------------------------------------------------


class GuardSequence(RuleBasedStateMachine):
    """One sequence in two pools of its own. Set `servers` and `tally` on a subclass."""

    servers: ClassVar[Servers]
    tally: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.number = next(self.servers.numbers)
        self.pools = [f"p{self.number}-{which}" for which in (0, 1)]
        self.model = [Pool(DRIVER), Pool(DRIVER)]
        self.claims = {name: f"{name}-{self.number}" for name in CLAIMS}
        self.uids: dict[str, str] = {}
        self.allocated: dict[str, tuple[Result, ...]] = {}
        self.given_up = False
        self.tally["sequences"] += 1
        self.run(self._make(CLAIMS))

    @initialize(
        listed=device_slices(DEVICES, st.just(1)),
        sets=st.builds(Slice, st.just(1), sets=counters(1, 3)),
        how=hows,
    )
    def begin(self, listed: Slice, sets: Slice, how: How) -> None:
        """With a pool that makes sense."""
        self._act([Publish(0, "s0", listed, 2, how), Publish(0, "s1", replace(sets, devices=()), 2, how)])

    @rule(act=publications)
    def publish(self, act: Publish) -> None:
        self._act([act])

    @rule(act=withdrawals)
    def withdraw(self, act: Withdraw) -> None:
        self._act([act])

    @rule(act=allocations)
    def give(self, act: Give) -> None:
        self._act([act])

    @rule(acts=st.lists(allocations, min_size=2, max_size=3))
    def give_several(self, acts: list[Give]) -> None:
        for act in acts:
            self._act([act])

    @rule(act=variations)
    def publish_changed(self, act: Vary) -> None:
        self.vary(act)

    def vary(self, act: Vary) -> None:
        there = self.model[0].slices.get(act.name)
        if there is not None:
            changed = _varied(there, act.change, there.generation + act.newer)
            is_empty = not changed.devices and not changed.sets
            self._act(
                [Withdraw(0, act.name, act.how) if is_empty else Publish(0, act.to, changed, 2, act.how)]
            )

    @rule(
        device=names,
        other=names,
        same=st.booleans(),
        amounts=st.tuples(amounts, amounts),
        changes=st.lists(st.one_of(variations, variations, withdrawals), max_size=2),
        how=hows,
    )
    def in_between(
        self,
        device: str,
        other: str,
        same: bool,
        amounts: tuple[int, int],
        changes: list[Vary | Withdraw],
        how: How,
    ) -> None:
        """Slices change between two allocations that meet each other, and nobody else."""
        for claim in list(self.allocated):
            self._act([TakeBack(claim, False, how)])
        wanted = ((device, 0, amounts[0]), (device if same else other, 1, amounts[1]))
        first, second = (
            Give(CLAIMS[0], (Result("0", name, share, {"memory": amount, "tiles": amount}),), True, how)
            for name, share, amount in wanted
        )
        self._act([first])
        for change in changes:
            if isinstance(change, Vary):
                self.vary(change)
            else:
                self._act([change])
        self._act([second])

    @rule(act=returns)
    def take_back(self, act: TakeBack) -> None:
        self._act([act])

    @rule(acts=crowds)
    def crowd(self, acts: list[Act]) -> None:
        self._act(acts)

    def teardown(self) -> None:
        try:
            if not self.given_up:
                self.run(self._compare())
        finally:
            self.run(self._clean())

    def run(self, story: Any) -> Any:
        return self.servers.runner.run(story)

    # Acting

    def _act(self, acts: Iterable[Act]) -> None:
        if self.given_up:
            return
        done = self.run(self._all([self._to_do(act) for act in self._possible(acts)]))
        if any(one.status in UNKNOWN for one in done):
            self.given_up = True
            self.tally["given up"] += 1
            return
        accepted = sorted((one for one in done if one.status in (200, 201)), key=lambda one: one.revision)
        refused = [one for one in done if one.status not in (200, 201)]
        moments = [copy.deepcopy(self.model)] if refused else []
        for one in accepted:
            assert self._apply(one.act), f"accepted, and must not be: {one}"
            if refused:
                moments.append(copy.deepcopy(self.model))
        for one in refused:
            self.tally[f"refused {one.status}"] += 1
            self.tally.update(f"because {text}" for text in REASONS if text in one.message)
            assert isinstance(one.act, Give), one
            assert one.status == (422 if _is_invalid(one.act) else 409), one
            if one.status == 409:
                assert any(not _allowed(moment, one.act) for moment in moments), f"refused in vain: {one}"
        self.tally["accepted"] += len(accepted)
        self.tally["crowds"] += len(done) > 1
        gone = [one.act.claim for one in accepted if isinstance(one.act, TakeBack) and one.act.delete]
        self.run(self._make(gone))

    def _possible(self, acts: Iterable[Act]) -> list[Act]:
        """Each object once, and nothing that the API refuses whatever the guard says."""
        chosen: dict[object, Act] = {}
        for act in acts:
            match act:
                case Publish(pool, name) | Withdraw(pool, name):
                    there = name in self.model[pool].slices
                    if there or isinstance(act, Publish):
                        chosen.setdefault((pool, name), act)
                case Give(claim, _, _, how):
                    taken = {*self.allocated, *chosen}
                    free = [one for one in CLAIMS if one not in taken]
                    if free:
                        chosen[free[0]] = self._settled(replace(act, claim=free[0]))
                    elif claim in self.allocated:
                        chosen.setdefault(claim, TakeBack(claim, False, how))
                case TakeBack(claim) if claim in self.allocated:
                    chosen.setdefault(claim, act)
        return list(chosen.values())

    def _settled(self, act: Give) -> Give:
        """With amounts of capacities that the device has, if it is meant to be sensible."""
        if not act.sensible:
            return act
        made = []
        for result in act.results:
            pool = self.model[int(result.pool)]
            device = pool.offered(result.device) or pool.seen.get(result.device)
            given = iter([*(abs(amount) for amount in result.consumes.values()), 1, 0])
            shared = device is not None and device.shared
            consumes = {name: next(given, 0) for name in device.capacity} if device and shared else {}
            share = (result.share or 0) if shared or result.share == 0 else None
            made.append(replace(result, consumes=consumes, share=share))
        return replace(act, results=tuple(made))

    def _apply(self, act: Act) -> bool:
        match act:
            case Publish(pool, name, slice):
                self.model[pool].slices[name] = slice
            case Withdraw(pool, name):
                del self.model[pool].slices[name]
            case TakeBack(claim):
                for one in self.model:
                    one.free(claim)
                del self.allocated[claim]
            case Give(claim, given):
                if _is_invalid(act) or not _taken(self.model, act):
                    return False
                self.allocated[claim] = given
                self.tally["allocations"] += 1
        return True

    # Talking

    def _to_do(self, act: Act) -> "Call":
        version = act.how.version
        match act:
            case Publish(pool, name, slice):
                path = f"/apis/resource.k8s.io/{version}/resourceslices"
                body = _slice_body(self._slice_name(pool, name), self.pools[pool], slice, act.count, version)
                if name in self.model[pool].slices:
                    return Call(act, "PUT", f"{path}/{self._slice_name(pool, name)}", body)
                return Call(act, "POST", path, body)
            case Withdraw(pool, name):
                name = self._slice_name(pool, name)
                return Call(act, "DELETE", f"/apis/resource.k8s.io/{version}/resourceslices/{name}")
            case TakeBack(claim, delete):
                path = self._claim_path(claim, version)
                if delete:
                    return Call(act, "DELETE", path)
                return Call(act, *_clearing(path, self.claims[claim], act.how))
            case Give(claim, given):
                status = {"allocation": {"devices": {"results": [self._result_body(one) for one in given]}}}
                path = f"{self._claim_path(claim, version)}/status"
                return Call(act, *_writing(path, self.claims[claim], status, act.how))

    async def _all(self, calls: "Sequence[Call]") -> "list[Done]":
        return list(await asyncio.gather(*(self._call(call) for call in calls)))

    async def _call(self, call: "Call") -> "Done":
        status, body = await self.servers.ask(
            call.act.how.server, call.method, call.path, call.body, call.media
        )
        assert status in (200, 201, 409, 422, *UNKNOWN), (call, status, body)
        revision = int((body.get("metadata") or {}).get("resourceVersion") or 0)
        return Done(call.act, status, revision, str(body.get("message") or ""))

    async def _make(self, claims: Iterable[str]) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        for claim in claims:
            body = {"metadata": {"name": self.claims[claim]}, "spec": spec}
            status, made = await self.servers.surely(0, "POST", path, body)
            if status == 409:  # it was made by an attempt that had no answer
                status, made = await self.servers.surely(0, "GET", f"{path}/{self.claims[claim]}")
            assert status in (200, 201), made
            self.uids[claim] = made["metadata"]["uid"]

    def _claim_path(self, claim: str, version: str = "v1") -> str:
        return f"/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims/{self.claims[claim]}"

    def _slice_name(self, pool: int, name: str) -> str:
        return f"{self.pools[pool]}-{name}"

    def _result_body(self, result: Result, amount: Callable[[int], str] | None = None) -> Fields:
        body: Fields = {
            "request": "r",
            "driver": DRIVER,
            "pool": self.pools[int(result.pool)],
            "device": result.device,
        }
        if result.share is not None:
            body["shareID"] = _share(result.share)
        if result.consumes:
            shown = amount or _amount
            body["consumedCapacity"] = {name: shown(number) for name, number in result.consumes.items()}
        if result.admin:
            body["adminAccess"] = True
        return body

    # At the end

    async def _compare(self) -> None:
        for claim in CLAIMS:
            status, body = await self.servers.surely(1, "GET", self._claim_path(claim))
            allocation = body.get("status", {}).get("allocation", {})
            found = allocation.get("devices", {}).get("results", [])
            wanted = [self._result_body(one, _canonical) for one in self.allocated.get(claim, ())]
            assert status == 200 and found == wanted, (claim, found, wanted)
        for name, pool in zip(self.pools, self.model, strict=True):
            record = await self.servers.stored(f"/holds/{DRIVER}/{name}") or {"devices": {}}
            found = sorted(
                (device, holder["claim"], holder.get("shareID", ""))
                for device, held in record["devices"].items()
                for holder in held["holders"]
            )
            wanted = sorted(
                (
                    one.result.device,
                    self.uids[one.claim],
                    "" if one.result.share is None else _share(one.result.share),
                )
                for one in pool.held
            )
            assert found == wanted, (found, wanted)

    async def _clean(self) -> None:
        paths = [self._claim_path(claim) for claim in CLAIMS]
        paths += [
            f"/apis/resource.k8s.io/v1/resourceslices/{self._slice_name(which, name)}"
            for which in (0, 1)
            for name in SLICES
        ]
        await asyncio.gather(*(self.servers.surely(0, "DELETE", path) for path in paths))
        for name in self.pools:
            assert await self.servers.stored(f"/holds/{DRIVER}/{name}") is None, "all is given back"


@dataclass(frozen=True)
class Call:
    act: Act
    method: str
    path: str
    body: Any = None
    media: str = "application/json"


@dataclass(frozen=True)
class Done:
    act: Act
    status: int
    revision: int
    message: str


def _allowed(model: Sequence[Pool], act: Give) -> bool:
    return _taken(copy.deepcopy(model), act)


def _taken(model: Sequence[Pool], act: Give) -> bool:
    by_pool: dict[str, list[Result]] = {}
    for result in act.results:
        if not result.admin:
            by_pool.setdefault(result.pool, []).append(result)
    return all(model[int(pool)].take(act.claim, wanted) for pool, wanted in by_pool.items())


def _is_invalid(act: Give) -> bool:
    """Whatever there is: amounts below zero, a device twice."""
    if any(amount < 0 for result in act.results for amount in result.consumes.values()):
        return True
    held = [(result.pool, result.device, result.share) for result in act.results if not result.admin]
    whole = [one[:2] for one in held if one[2] is None]
    return len(set(held)) < len(held) or any(sum(one[:2] == two for one in held) > 1 for two in whole)


def _varied(slice: Slice, change: str, generation: int) -> Slice:
    """Less or more of everything; devices that draw nothing, that nobody shares; or not all of them."""
    devices = slice.devices
    if change == "fewer":
        return Slice(generation, devices[2:], dict(list(slice.sets.items())[1:]))
    if change == "plain":
        return Slice(
            generation, tuple(Device(one.name, one.shared, one.capacity) for one in devices), slice.sets
        )
    if change == "alone":
        return Slice(generation, tuple(replace(one, shared=False) for one in devices), slice.sets)
    by = 1 if change == "more" else -1
    return Slice(
        generation,
        tuple(
            replace(one, capacity=_changed(one.capacity, by), draws=_all_changed(one.draws, by))
            for one in devices
        ),
        _all_changed(slice.sets, by),
    )


def _all_changed(sets: Mapping[str, Mapping[str, int]], by: int) -> dict[str, dict[str, int]]:
    return {name: _changed(counters, by) for name, counters in sets.items()}


def _changed(amounts: Mapping[str, int], by: int) -> dict[str, int]:
    return {name: max(0, amount + by) for name, amount in amounts.items()}


# -- bodies -------------------------------------------------------------------------------------------


def _share(number: int) -> str:
    return f"{number:08d}-0000-0000-0000-000000000000"


def _amount(number: int) -> str:
    return f"{number}Gi" if number % 2 else f"{number * 1024}Mi"


def _canonical(number: int) -> str:
    """As the server gives it back."""
    return f"{number}Gi" if number else "0"


def _values(amounts: Mapping[str, int]) -> Fields:
    return {name: {"value": _amount(amount)} for name, amount in amounts.items()}


def _slice_body(name: str, pool: str, slice: Slice, count: int, version: str) -> Fields:
    spec: Fields = {
        "driver": DRIVER,
        "nodeName": NODE,
        "pool": {"name": pool, "generation": slice.generation, "resourceSliceCount": count},
    }
    if slice.sets:
        spec["sharedCounters"] = [
            {"name": one, "counters": _values(counters)} for one, counters in slice.sets.items()
        ]
    else:
        spec["devices"] = [_device_body(device, version) for device in slice.devices]
    return {"metadata": {"name": name}, "spec": spec}


def _device_body(device: Device, version: str) -> Fields:
    rest: Fields = {"allowMultipleAllocations": True} if device.shared else {}
    if device.capacity:
        rest["capacity"] = _values(device.capacity)
    if device.draws:
        rest["consumesCounters"] = [
            {
                "counterSet": one,
                "counters": _values(counters),
                **({"compatibilityGroups": sorted(device.groups[one])} if one in device.groups else {}),
            }
            for one, counters in device.draws.items()
        ]
    return {"name": device.name, **({"basic": rest} if version == "v1beta1" else rest)}


def _writing(path: str, name: str, status: Fields, how: How) -> tuple[str, str, Any, str]:
    whole = {
        "apiVersion": f"resource.k8s.io/{how.version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "status": status,
    }
    match how.way:
        case "update":
            return "PUT", path, whole, "application/json"
        case "merge":
            return "PATCH", path, {"status": status}, MERGE
        case "json":
            return "PATCH", path, [{"op": "add", "path": "/status", "value": status}], PATCH
    return "PATCH", path, whole, APPLY


def _clearing(path: str, name: str, how: How) -> tuple[str, str, Any, str]:
    """What was applied by one writer is not taken away by another who applies less."""
    if how.way == "merge":
        return "PATCH", f"{path}/status", {"status": {"allocation": None}}, MERGE
    return _writing(f"{path}/status", name, {}, replace(how, way="json" if how.way == "json" else "update"))
