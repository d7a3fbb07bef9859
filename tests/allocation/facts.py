"""What an allocation problem says, read literally from its JSON.

The checker and the oracle both read a problem through this file; nothing under
src/allot/allocation does, and this file imports nothing from there. Every rule is
written down as KEP-4381 and its successors state it, one function each, with no thought of speed.

Amounts are whole numbers of nano units. A `Fatal` is an error of the problem:
upstream gives up on the pod when it meets one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from allot import cel
from allot.api import Quantity

Json = Any
Problem = Mapping[str, Json]

NANO = 10**9
MILLI = 10**6
INT64_MAX = 2**63 - 1
RESULTS_MAX = 32
EXPERIMENTAL = {"ListTypeAttributes", "OptionalNodeOperations", "DerivedAttributes", "CompatibilityGroups"}
NODE_OPERATIONS_FEATURE = "DRAOptionalNodeOperations"


class Fatal(Exception):
    """The problem is refused as a whole."""


def nano(text: Json) -> int:
    return Quantity.parse(text).nano


# Devices and pools


@dataclass(frozen=True, eq=False)
class Candidate:
    """One device as one slice publishes it."""

    slice: Json
    device: Json

    @property
    def driver(self) -> str:
        return str(self.slice["spec"]["driver"])

    @property
    def pool(self) -> tuple[str, str]:
        return self.driver, self.slice["spec"]["pool"]["name"]

    @property
    def id(self) -> str:
        return "/".join((*self.pool, self.device["name"]))


@dataclass
class Pool:
    id: tuple[str, str]
    incomplete: bool = False
    invalid: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    elsewhere: list[Candidate] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid


def features_of(problem: Problem) -> frozenset[str]:
    return frozenset(problem.get("features") or ())


def candidates_of(slices: Sequence[Json]) -> list[Candidate]:
    return [Candidate(s, d) for s in slices for d in s["spec"].get("devices") or ()]


def pools_of(problem: Problem) -> list[Pool]:
    """The pools that concern the node, in the order in which they are searched."""
    features = features_of(problem)
    node = problem["node"]
    slices = [s for s in problem.get("slices") or () if "CompatibilityGroups" in features or not grouped(s)]
    own = [s for s in slices if s["spec"].get("nodeName") == node["metadata"]["name"]]
    rest = [s for s in slices if s["spec"].get("nodeName") != node["metadata"]["name"]]
    shared = [s for s in rest if not s["spec"].get("nodeName")]

    kept: dict[tuple[str, str], list[Json]] = {}
    for s in own + shared:
        if not relevant(s, node, features):
            continue
        pool = (s["spec"]["driver"], s["spec"]["pool"]["name"])
        generation = s["spec"]["pool"].get("generation", 0)
        newest = kept[pool][0]["spec"]["pool"].get("generation", 0) if pool in kept else -1
        if generation > newest:
            kept[pool] = [s]
        elif generation == newest:
            kept[pool].append(s)

    built = [p for id, mine in kept.items() if (p := build(id, mine, slices, features)) is not None]
    built.sort(key=lambda p: p.id)
    return [p for p in built if not binds(p)] + [p for p in built if binds(p)]


def grouped(s: Json) -> bool:
    return any(
        consumption.get("compatibilityGroups")
        for device in s["spec"].get("devices") or ()
        for consumption in device.get("consumesCounters") or ()
    )


def relevant(s: Json, node: Json, features: frozenset[str]) -> bool:
    spec = s["spec"]
    if "PartitionableDevices" not in features and (
        spec.get("perDeviceNodeSelection") is not None or spec.get("sharedCounters")
    ):
        return False
    if spec.get("sharedCounters"):
        return True
    if spec.get("nodeName") or spec.get("allNodes") or spec.get("nodeSelector") is not None:
        return node_matches(spec, node)
    if spec.get("perDeviceNodeSelection"):
        return any(node_matches(device, node) for device in spec.get("devices") or ())
    return False


def build(id: tuple[str, str], mine: list[Json], slices: list[Json], features: frozenset[str]) -> Pool | None:
    """The pool made of the slices kept for the node; None when a newer generation exists elsewhere."""
    wanted = mine[0]["spec"]["pool"].get("resourceSliceCount", 0)
    generation = mine[0]["spec"]["pool"].get("generation", 0)
    others: list[Json] = []
    if len(mine) != wanted:
        whole = [s for s in slices if (s["spec"]["driver"], s["spec"]["pool"]["name"]) == id]
        if any(s["spec"]["pool"].get("generation", 0) > generation for s in whole):
            return None
        current = [s for s in whole if s["spec"]["pool"].get("generation", 0) == generation]
        if len(current) != wanted:
            return Pool(id, incomplete=True)
        others = [s for s in current if all(s is not m for m in mine)]
    mine = sorted(mine, key=lambda s: s["metadata"]["name"])
    pool = Pool(id, candidates=candidates_of(mine), elsewhere=candidates_of(others))
    pool.invalid = defect(pool, mine + others, features)
    return pool


def defect(pool: Pool, slices: list[Json], features: frozenset[str]) -> str:
    names = [c.device["name"] for c in pool.candidates]
    if len(names) != len(set(names)):
        return "duplicate device name"
    if "PartitionableDevices" not in features:
        return ""
    for s in slices:
        for counter_set in s["spec"].get("sharedCounters") or ():
            if counter_set["name"] in pool.counters:
                return "duplicate counter set"
            amounts = {name: nano(c["value"]) for name, c in (counter_set.get("counters") or {}).items()}
            pool.counters[counter_set["name"]] = amounts
    for candidate in pool.candidates + pool.elsewhere:
        for consumption in candidate.device.get("consumesCounters") or ():
            known = pool.counters.get(consumption["counterSet"])
            if known is None or not set(consumption.get("counters") or ()) <= set(known):
                return "unknown counter"
    return ""


def binds(pool: Pool) -> bool:
    return pool.usable and any(c.device.get("bindingConditions") is not None for c in pool.candidates)


# Nodes


def node_matches(selection: Json, node: Json) -> bool:
    """`selection` is a slice's spec or a device: whoever carries the node fields."""
    if selection.get("nodeName"):
        return bool(selection["nodeName"] == node["metadata"]["name"])
    if selection.get("allNodes"):
        return True
    selector = selection.get("nodeSelector")
    return selector is not None and any(
        term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ()
    )


def term_matches(term: Json, node: Json) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    labels = node["metadata"].get("labels") or {}
    name = {"metadata.name": node["metadata"]["name"]}
    if not expressions and not fields:
        return False
    return all(requirement_holds(e, labels) for e in expressions) and all(
        requirement_holds(f, name) for f in fields
    )


def requirement_holds(requirement: Json, values: Mapping[str, str]) -> bool:
    found = values.get(requirement["key"])
    wanted = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return found in wanted
        case "NotIn":
            return found not in wanted
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt":
            return found is not None and int(found) > int(wanted[0])
        case "Lt":
            return found is not None and int(found) < int(wanted[0])
    raise Fatal(f"unknown node selector operator {requirement['operator']}")


# Selectors and attributes


@lru_cache(maxsize=4096)
def compiled(expression: str, features: frozenset[str], derived: bool) -> Any:
    gates = cel.Features(
        consumable_capacity="ConsumableCapacity" in features, list_attributes="ListTypeAttributes" in features
    )
    try:
        compile = cel.compile_attribute if derived else cel.compile_selector
        return compile(expression, gates, stored=True)
    except cel.CompileError as error:
        return Fatal(str(error))


def selected(candidate: Candidate, expression: str, features: frozenset[str]) -> bool:
    program = compiled(expression, features, False)
    if isinstance(program, Fatal):
        raise program
    try:
        return bool(program.matches(cel_device(candidate)))
    except cel.EvaluationError as error:
        raise Fatal(str(error)) from error


def cel_device(candidate: Candidate) -> cel.CelDevice:
    device = candidate.device
    capacity = {
        name: Quantity.parse(c.get("value", "0")) for name, c in (device.get("capacity") or {}).items()
    }
    return cel.CelDevice.of(
        candidate.driver,
        device.get("attributes") or {},
        capacity,
        bool(device.get("allowMultipleAllocations")),
    )


def selectors_hold(candidate: Candidate, selectors: Sequence[Json], features: frozenset[str]) -> bool:
    return all(selected(candidate, s["cel"]["expression"], features) for s in selectors or ())


def selectable(candidate: Candidate, request: Json, classes: Mapping[str, Json], problem: Problem) -> bool:
    """Class, then request, then the device's own nodes: in this order, because selectors may be fatal."""
    features = features_of(problem)
    if "DeviceBindingAndStatus" not in features and candidate.device.get("bindingConditions"):
        return False
    chosen_class = classes[request["deviceClassName"]]
    if not selectors_hold(candidate, chosen_class["spec"].get("selectors") or (), features):
        return False
    if not selectors_hold(candidate, request.get("selectors") or (), features):
        return False
    if candidate.slice["spec"].get("perDeviceNodeSelection"):
        return node_matches(candidate.device, problem["node"])
    return True


Values = tuple[str, frozenset[Any]]
"""The type of an attribute and the set of its values; a scalar is a set of one."""


def attribute(candidate: Candidate, request: Json, name: str, features: frozenset[str]) -> Values | None:
    """What a constraint sees under a fully qualified name; a derived attribute hides a published one."""
    for derived in request.get("derivedAttributes") or ():
        if derived["name"] == name:
            return derived_value(candidate, derived["expression"], features)
    attributes = candidate.device.get("attributes") or {}
    domain, _, identifier = name.partition("/")
    found = attributes.get(name)
    if found is None and domain == candidate.driver:
        found = attributes.get(identifier)
    return None if found is None else values_of(found, "ListTypeAttributes" in features)


def derived_value(candidate: Candidate, expression: str, features: frozenset[str]) -> Values:
    program = compiled(expression, features, True)
    if isinstance(program, Fatal):
        raise program
    try:
        return values_of(program.value(cel_device(candidate)), "ListTypeAttributes" in features)
    except cel.EvaluationError as error:
        raise Fatal(str(error)) from error


UNKNOWN: Values = ("", frozenset())
"""A value of a type that the rules do not know: a list without its gate, or nothing at all."""


def values_of(published: Json, lists: bool) -> Values:
    for scalar in ("int", "bool", "string", "version"):
        if published.get(scalar) is not None:
            return scalar, frozenset((published[scalar],))
        if lists and published.get(f"{scalar}s"):
            return scalar, frozenset(published[f"{scalar}s"])
    return UNKNOWN


def all_match(values: Sequence[Values], lists: bool) -> bool:
    """One type and a value in common; a single device may have anything, unless sets are compared."""
    if len(values) == 1 and not lists:
        return True
    return len({kind for kind, _ in values}) == 1 and bool(frozenset.intersection(*(v for _, v in values)))


def may_join_distinct(newcomer: Values, values: Sequence[Values], lists: bool) -> bool:
    """No value twice. What is of an unknown type is different only from nothing."""
    if newcomer == UNKNOWN:
        return not lists and not values
    return all(kind != newcomer[0] or not v & newcomer[1] for kind, v in values)


# Capacity


def consumption(candidate: Candidate, request: Json, features: frozenset[str]) -> Mapping[str, int] | None:
    """What a share of the device would take of each capacity; None if the device cannot give it at all.

    What cannot be reckoned with is fatal, and found before any capacity is judged.
    """
    capacity = candidate.device.get("capacity") or {}
    wanted = (request.get("capacity") or {}).get("requests") or {}
    if not set(wanted) <= set(capacity):
        return None
    fractional = "FractionalCapacityRange" in features
    taken = {
        name: amount_of(offer, nano(wanted[name]) if name in wanted else None, fractional)
        for name, offer in capacity.items()
    }
    if any(amount < 0 for amount in taken.values()):
        raise Fatal("negative capacity")
    if any(violates(capacity[name].get("requestPolicy") or {}, taken[name], fractional) for name in taken):
        return None
    return taken


def amount_of(offer: Json, asked: int | None, fractional: bool) -> int:
    policy = offer.get("requestPolicy") or {}
    default = nano(policy["default"]) if policy.get("default") is not None else None
    bounds = policy.get("validRange") or {}
    if asked is None:
        return nano(offer.get("value", "0")) if default is None else default
    if bounds:
        lowest = nano(bounds["min"])
        if asked < lowest:
            return lowest
        return asked if bounds.get("step") is None else rounded_up(asked, bounds, fractional)
    choices = [nano(v) for v in policy.get("validValues") or ()]
    return min((c for c in choices if c >= asked), default=asked)


def violates(policy: Json, amount: int, fractional: bool) -> bool:
    if policy.get("default") is not None and amount == nano(policy["default"]):
        return False
    bounds = policy.get("validRange")
    if bounds:
        if bounds.get("max") is not None and amount > nano(bounds["max"]):
            return True
        if bounds.get("step") is None:
            return False
        _, counted, low, step = in_units(amount, bounds, fractional)
        return (counted - low) % step != 0
    choices = [nano(v) for v in policy.get("validValues") or ()]
    return bool(choices) and amount not in choices


def rounded_up(asked: int, bounds: Json, fractional: bool) -> int:
    """The next step at or above `asked`."""
    unit, counted, low, step = in_units(asked, bounds, fractional)
    result = low + -(-(counted - low) // step) * step
    if counted > INT64_MAX or result > INT64_MAX:
        raise Fatal("larger than the largest number")
    return result * unit


def in_units(amount: int, bounds: Json, fractional: bool) -> tuple[int, int, int, int]:
    """The amount, the lowest and the step, counted in milli units if the gate is on, in whole ones if not."""
    unit = MILLI if fractional else NANO
    if fractional and amount % MILLI:
        raise Fatal("not representable in milli units")
    counted, low, step = (-(-n // unit) for n in (amount, nano(bounds["min"]), nano(bounds["step"])))
    return unit, counted, low, step


def room(candidate: Candidate, taken: Mapping[str, int], *already: Mapping[str, int]) -> bool:
    """Whether `taken` fits beside what is already consumed."""
    capacity = candidate.device.get("capacity") or {}
    return all(
        amount + sum(other.get(name, 0) for other in already) <= nano(capacity[name].get("value", "0"))
        for name, amount in taken.items()
    )


# What is in use


@dataclass(frozen=True)
class InUse:
    dedicated: frozenset[str]
    shared: frozenset[str]
    capacity: Mapping[str, Mapping[str, int]]

    def holds(self, device: str) -> bool:
        return device in self.dedicated or self.holds_shares(device)

    def holds_shares(self, device: str) -> bool:
        return device in self.shared or device in self.capacity


def in_use(problem: Problem) -> InUse:
    return InUse(
        frozenset(problem.get("allocatedDevices") or ()),
        frozenset(s.rsplit("/", 1)[0] for s in problem.get("allocatedSharedDevices") or ()),
        {
            device: {name: nano(amount) for name, amount in (amounts or {}).items()}
            for device, amounts in (problem.get("allocatedCapacity") or {}).items()
        },
    )


def shareable(candidate: Candidate, features: frozenset[str]) -> bool:
    return "ConsumableCapacity" in features and bool(candidate.device.get("allowMultipleAllocations"))


def skips_are_possible(candidate: Candidate, problem: Problem) -> bool:
    """Whether the node copes with a device whose node operations are skipped."""
    features = features_of(problem)
    if not candidate.slice["spec"].get("skipNodeOperations") or not features & EXPERIMENTAL:
        return True
    declared = (problem["node"].get("status") or {}).get("declaredFeatures") or ()
    return "OptionalNodeOperations" in features and NODE_OPERATIONS_FEATURE in declared


def taints_block(candidate: Candidate, request: Json) -> bool:
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute")
        and not any(tolerates(toleration, taint) for toleration in request.get("tolerations") or ())
        for taint in candidate.device.get("taints") or ()
    )


def tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.get("value", "") == taint.get("value", ""))
    return False


def counters_of(candidate: Candidate) -> Iterator[tuple[str, str, int]]:
    for consumed in candidate.device.get("consumesCounters") or ():
        for name, counter in (consumed.get("counters") or {}).items():
            yield consumed["counterSet"], name, nano(counter["value"])


def groups_of(candidate: Candidate) -> dict[str, frozenset[str]]:
    """Counter set -> the groups the device declares there."""
    return {
        consumed["counterSet"]: frozenset(consumed.get("compatibilityGroups") or ())
        for consumed in candidate.device.get("consumesCounters") or ()
    }


# Requests


@dataclass(frozen=True, eq=False)
class Ask:
    """A request, or one alternative of a firstAvailable request."""

    request: str
    sub: str
    spec: Json

    @property
    def name(self) -> str:
        return f"{self.request}/{self.sub}" if self.sub else self.request

    @property
    def admin(self) -> bool:
        return bool(self.spec.get("adminAccess"))

    @property
    def takes_all(self) -> bool:
        return bool(self.spec.get("allocationMode") == "All")

    def named_in(self, names: Sequence[str]) -> bool:
        return not names or self.request in names or self.name in names


def alternatives(request: Json) -> list[Ask]:
    """The ways to satisfy a request; one, unless it is a prioritized list."""
    if request.get("firstAvailable"):
        return [Ask(request["name"], sub["name"], sub) for sub in request["firstAvailable"]]
    return [Ask(request["name"], "", request.get("exactly") or {})]


def classes_of(problem: Problem) -> dict[str, Json]:
    return {c["metadata"]["name"]: c for c in problem.get("classes") or ()}


def devices_of(claim: Json) -> Json:
    return (claim.get("spec") or {}).get("devices") or {}
