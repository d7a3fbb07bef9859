"""D4: an allocation satisfies its claim, whatever the claim may ask for.

`satisfied` judges the claims of made-up worlds with an idea of its own of what a selector
means; this judges any claim, in benchmarks and on a live cluster.

Read literally from the API, with no word of the allocator: who got which device, and
whether class, selectors, number, tolerations, capacity, constraints and node are as
the claim asked. Only CEL itself is not written a second time.

It wants to see slices, classes, nodes and taint rules beside claims and pods. An
allocation is judged once, when it appears, by what was published at any time since the
claim was there (and `lag` revisions before that): whoever allocates may be a little behind.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from allot import cel
from allot.api import Quantity

from ..recording import Seen
from .offers import RESOURCES, Json, Offer, Offers, selects

_FORBIDDING = ("NoSchedule", "NoExecute")
_COMBINATIONS_MAX = 4096
_FEATURES = cel.Features(consumable_capacity=True, list_attributes=True)


@dataclass(frozen=True, slots=True)
class _Given:
    """One device of an allocation: what it was given for, and the forms of it that suit."""

    request: str  # "name" or "name/alternative"
    ask: Json
    result: Json
    offers: Sequence[Offer]

    def named_in(self, names: Sequence[str]) -> bool:
        return not names or self.request in names or self.request.partition("/")[0] in names


class AsAsked:
    follows = (*RESOURCES, "resourceclaims", "pods")

    def __init__(self, lag: int = 0) -> None:
        self._lag = lag
        self._offers = Offers()
        self._born: dict[str, int] = {}  # claim uid -> the revision at which it was first seen
        self._allocations: dict[tuple[str, str], Json] = {}
        self._bound: set[str] = set()

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource in RESOURCES:
            self._offers.see(seen)
        elif seen.resource == "resourceclaims":
            yield from self._claim(seen)
        elif seen.resource == "pods":
            yield from self._pod(seen)

    def rest(self) -> Iterator[str]:
        yield from ()

    def _claim(self, seen: Seen) -> Iterator[str]:
        key, uid = (seen.object.namespace, seen.object.name), seen.object.uid
        if seen.type == "DELETED":
            self._born.pop(uid, None)
            self._allocations.pop(key, None)
            return
        since = self._born.setdefault(uid, seen.revision)
        allocation = (seen.fields.get("status") or {}).get("allocation")
        before = self._allocations.pop(key, None)
        if allocation is None:
            return
        self._allocations[key] = allocation
        if before is None:
            for text in _judged(seen.fields, allocation, self._offers, since - self._lag):
                yield f"D4: claim {seen.object.name}: {text}"

    def _pod(self, seen: Seen) -> Iterator[str]:
        """A pod and the devices of its claims are on the same node."""
        node = (seen.fields.get("spec") or {}).get("nodeName")
        if seen.type == "DELETED" or not node or seen.object.uid in self._bound:
            return
        self._bound.add(seen.object.uid)
        for name in _claims_of(seen.fields):
            allocation = self._allocations.get((seen.object.namespace, name))
            selector = (allocation or {}).get("nodeSelector")
            if selector is not None and not selects(selector, _node(self._offers, node)):
                yield f"D4: pod {seen.object.name} is on {node}, its claim {name} is not to be had there"


def _claims_of(pod: Json) -> Iterator[str]:
    status = pod.get("status") or {}
    entries = [*(pod["spec"].get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    entries.append(status.get("extendedResourceClaimStatus") or {})
    for entry in entries:
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]


def _node(offers: Offers, name: str) -> Json:
    return offers.nodes.get(name) or {"metadata": {"name": name}}


# One allocation


def _judged(claim: Json, allocation: Json, offers: Offers, since: int) -> Iterator[str]:
    devices = claim["spec"].get("devices") or {}
    if claim["spec"].get("resourceClassName"):
        return  # what a classic claim gets is between it and its driver
    asks = dict(_asks(devices))
    nodes = _nodes(allocation, offers)
    given: list[_Given] = []
    for result in (allocation.get("devices") or {}).get("results") or ():
        key = (result["driver"], result["pool"], result["device"])
        name, shown = result["request"], "/".join(key)
        if name not in asks:
            yield f"{shown} is given to {name!r}, which it does not ask for"
            continue
        forms = offers.of(key, since)
        reasons = [_unsuitable(form, asks[name], result, nodes, offers) for form in forms]
        suiting = [form for form, reason in zip(forms, reasons, strict=True) if not reason]
        if not suiting:
            yield f"{shown} {reasons[-1] if reasons else 'is not published'}"
        given.append(_Given(name, asks[name], result, suiting))
    for request in devices.get("requests") or ():
        yield from _counted(request["name"], given, nodes, offers)
    for constraint in devices.get("constraints") or ():
        yield from _constrained(constraint, given)


def _asks(devices: Json) -> Iterator[tuple[str, Json]]:
    """Every name that a result may carry, with what is asked under it."""
    for request in devices.get("requests") or ():
        if request.get("exactly") is not None:
            yield request["name"], request["exactly"]
        for alternative in request.get("firstAvailable") or ():
            yield f"{request['name']}/{alternative['name']}", alternative


def _nodes(allocation: Json, offers: Offers) -> list[Json]:
    """The nodes on which the allocation may be used."""
    selector = allocation.get("nodeSelector")
    if selector is None:
        return [*offers.nodes.values()]
    names = [
        name
        for term in selector.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
        for name in field.get("values") or ()
    ]
    if names:
        return [_node(offers, name) for name in names if selects(selector, _node(offers, name))]
    return [node for node in offers.nodes.values() if selects(selector, node)]


def _unsuitable(offer: Offer, ask: Json, result: Json, nodes: Sequence[Json], offers: Offers) -> str:
    """Why the device cannot serve; "" if it can."""
    device_class = offers.classes.get(ask["deviceClassName"])
    if device_class is None:
        return f"is given by the class {ask['deviceClassName']}, which does not exist"
    if not _selected(offer, device_class["spec"].get("selectors") or ()):
        return f"is not of the class {ask['deviceClassName']}"
    if not _selected(offer, ask.get("selectors") or ()):
        return "is not selected by the request"
    for taint in offers.taints(offer):
        tolerated = any(_tolerates(one, taint) for one in ask.get("tolerations") or ())
        if taint.get("effect") in _FORBIDDING and not tolerated:
            return f"has the taint {taint['key']}, which is not tolerated"
    if not nodes:
        return "is to be used on no node at all"
    strange = next((node for node in nodes if not offer.reaches(node)), None)
    if strange is not None:
        return f"cannot be reached from {strange['metadata']['name']}"
    return _too_little(offer, ask, result)


def _selected(offer: Offer, selectors: Sequence[Json]) -> bool:
    try:
        return all(_program(one["cel"]["expression"]).matches(_seen_by_cel(offer)) for one in selectors)
    except cel.EvaluationError:
        return False


@lru_cache(maxsize=4096)
def _program(expression: str) -> cel.Selector:
    return cel.compile_selector(expression, _FEATURES, stored=True)


def _seen_by_cel(offer: Offer) -> cel.CelDevice:
    device = offer.device
    amounts = {name: Quantity.parse(one["value"]) for name, one in (device.get("capacity") or {}).items()}
    shared = bool(device.get("allowMultipleAllocations"))
    return cel.CelDevice.of(offer.spec["driver"], device.get("attributes") or {}, amounts, shared)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def _too_little(offer: Offer, ask: Json, result: Json) -> str:
    shared = bool(offer.device.get("allowMultipleAllocations"))
    if shared != bool(result.get("shareID")):
        return (
            "may be shared and is not given as a share"
            if shared
            else "is given as a share, but is not shared"
        )
    whole = {name: one["value"] for name, one in (offer.device.get("capacity") or {}).items()}
    granted = (result.get("consumedCapacity") or {}) if shared else whole
    for name, wanted in ((ask.get("capacity") or {}).get("requests") or {}).items():
        if name not in granted or Quantity.parse(granted[name]).nano < Quantity.parse(wanted).nano:
            return f"gives {granted.get(name, 'nothing')} of {name}, not {wanted}"
    return ""


# All devices of a claim together


def _counted(request: str, given: Sequence[_Given], nodes: Sequence[Json], offers: Offers) -> Iterator[str]:
    mine = [one for one in given if one.request.partition("/")[0] == request]
    names = {one.request for one in mine}
    if len(names) != 1:
        yield f"request {request} got {f'several alternatives: {sorted(names)}' if names else 'no device'}"
        return
    ask = mine[0].ask
    keys = [(one.result["driver"], one.result["pool"], one.result["device"]) for one in mine]
    if len(set(keys)) != len(keys):
        yield f"request {request} got a device twice"
    if ask.get("allocationMode") == "All":
        missing = _matching(ask, nodes, offers) - set(keys)
        if missing:
            yield f"request {request} asks for all and did not get {sorted(missing)[0]}"
    elif len(mine) != (ask.get("count") or 1):
        yield f"request {request} got {len(mine)} of {ask.get('count') or 1} devices"


def _matching(ask: Json, nodes: Sequence[Json], offers: Offers) -> set[tuple[str, str, str]]:
    selectors = [
        *(offers.classes[ask["deviceClassName"]]["spec"].get("selectors") or ()),
        *(ask.get("selectors") or ()),
    ]
    here = [offer for offer in offers.present() if nodes and all(offer.reaches(node) for node in nodes)]
    return {offer.key for offer in here if _selected(offer, selectors)}


def _constrained(constraint: Json, given: Sequence[_Given]) -> Iterator[str]:
    mine = [one for one in given if one.named_in(constraint.get("requests") or ())]
    same = constraint.get("matchAttribute")
    name = same or constraint["distinctAttribute"]
    forms = [{_values(offer, one.ask, name) for offer in one.offers} for one in mine]
    if any(not values for values in forms):
        return  # unsuitable, and said to be so
    kept = _all_match if same else _all_differ
    tried = itertools.islice(itertools.product(*forms), _COMBINATIONS_MAX)
    if not any(None not in values and kept(values) for values in tried):
        shown = [[sorted(map(str, one[1])) if one else None for one in values] for values in forms]
        yield f"{'matchAttribute' if same else 'distinctAttribute'} {name} does not hold: {shown}"


_Values = tuple[str, frozenset[object]]


def _values(offer: Offer, ask: Json, name: str) -> _Values | None:
    """The type and the values that a constraint sees; a scalar is a list of one."""
    for derived in ask.get("derivedAttributes") or ():
        if derived["name"] == name:
            program = cel.compile_attribute(derived["expression"], _FEATURES, stored=True)
            return _typed(program.value(_seen_by_cel(offer)))
    attributes = offer.device.get("attributes") or {}
    domain, _, identifier = name.partition("/")
    found = attributes.get(name) or (attributes.get(identifier) if domain == offer.spec["driver"] else None)
    return _typed(found) if found else None


def _typed(found: Json) -> _Values | None:
    for kind in ("int", "bool", "string", "version"):
        if found.get(kind) is not None:
            return kind, frozenset((found[kind],))
        if found.get(f"{kind}s"):
            return kind, frozenset(found[f"{kind}s"])
    return None


def _all_match(values: Sequence[_Values | None]) -> bool:
    known = [one for one in values if one is not None]
    return len({kind for kind, _ in known}) <= 1 and (
        not known or bool(frozenset.intersection(*(some for _, some in known)))
    )


def _all_differ(values: Sequence[_Values | None]) -> bool:
    seen: set[tuple[str, object]] = set()
    for kind, some in (one for one in values if one is not None):
        mine = {(kind, value) for value in some}
        if seen & mine:
            return False
        seen |= mine
    return True
