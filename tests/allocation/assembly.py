"""The parts of an AllocationResult that follow from the choice of devices.

Used by the oracle to write its answer and by the checker to judge one. Picks come
in the order of the search: request by request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Quantity

from .facts import EXPERIMENTAL, Ask, Candidate, Fatal, Json, devices_of, nano, shareable

MASKED_SHARE = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, eq=False)
class Pick:
    claim: int
    ask: Ask
    candidate: Candidate
    taken: Mapping[str, int]


def assembled(
    claim: Json, picks: Sequence[Pick], classes: Mapping[str, Json], node: str, features: frozenset[str]
) -> Json:
    """One v1 AllocationResult."""
    devices: dict[str, Any] = {}
    if picks:
        devices["results"] = [device_result(pick, features) for pick in picks]
    config = configuration(claim, picks, classes)
    if config:
        devices["config"] = config
    result: dict[str, Any] = {"devices": devices}
    selector = node_selector(picks, node)
    if selector is not None:
        result["nodeSelector"] = selector
    return result


def device_result(pick: Pick, features: frozenset[str]) -> Json:
    device = pick.candidate.device
    driver, pool = pick.candidate.pool
    result = {"request": pick.ask.name, "driver": driver, "pool": pool, "device": device["name"]}
    if pick.ask.admin:
        result["adminAccess"] = True
    if pick.ask.spec.get("tolerations"):
        result["tolerations"] = pick.ask.spec["tolerations"]
    if "DeviceBindingAndStatus" in features:
        for conditions in ("bindingConditions", "bindingFailureConditions"):
            if device.get(conditions):
                result[conditions] = device[conditions]
    if shareable(pick.candidate, features):
        result["shareID"] = MASKED_SHARE
        if pick.taken:
            result["consumedCapacity"] = {name: str(Quantity(n)) for name, n in pick.taken.items()}
    if features & EXPERIMENTAL and pick.candidate.slice["spec"].get("skipNodeOperations"):
        result["skipNodeOperations"] = pick.candidate.slice["spec"]["skipNodeOperations"]
    return result


def configuration(claim: Json, picks: Sequence[Pick], classes: Mapping[str, Json]) -> list[Json]:
    """Class configuration first, each class once, then what the claim says of a request that was chosen."""
    requests = [r["name"] for r in devices_of(claim).get("requests") or ()]
    chosen = {pick.ask.request: pick.ask for pick in picks}
    users: dict[str, list[str]] = {}
    for name in requests:
        if name in chosen:
            users.setdefault(chosen[name].spec["deviceClassName"], []).append(chosen[name].name)
    config = []
    for class_name, names in users.items():
        for entry in classes[class_name]["spec"].get("config") or ():
            config.append(_entry("FromClass", entry, names if len(names) < len(requests) else []))
    for entry in devices_of(claim).get("config") or ():
        named = entry.get("requests") or []
        covered = [name for name in requests if name in chosen and chosen[name].named_in(named)]
        if not named or covered:
            config.append(_entry("FromClaim", entry, named if len(covered) < len(requests) else []))
    return config


def _entry(source: str, entry: Json, requests: Sequence[str]) -> Json:
    result = {"source": source, **{k: v for k, v in entry.items() if k != "requests"}}
    return {**result, "requests": list(requests)} if requests else result


def node_selector(picks: Sequence[Pick], node: str) -> Json:
    """Where the claim can be used: this node, or wherever all its devices can be reached."""
    fields: list[Json] = []
    expressions: list[Json] = []
    for pick in picks:
        spec = pick.candidate.slice["spec"]
        where = pick.candidate.device if spec.get("perDeviceNodeSelection") else spec
        if where.get("nodeName") or pick.candidate.device.get("bindsToNode"):
            named = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [named]}]}
        terms = (where.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        if len(terms) > 1:
            raise Fatal(f"a node selector with {len(terms)} terms")
        for term in terms:
            fields += [f for f in term.get("matchFields") or () if f not in fields]
            expressions += [e for e in term.get("matchExpressions") or () if e not in expressions]
    term = {"matchFields": fields, "matchExpressions": expressions}
    term = {key: value for key, value in term.items() if value}
    return {"nodeSelectorTerms": [term]} if term else None


def comparable(result: Json) -> Json:
    """A result without what may differ: order, share ids, and how amounts are written."""
    devices = [
        {
            **device,
            **({"shareID": MASKED_SHARE} if device.get("shareID") else {}),
            **(
                {"consumedCapacity": {k: nano(v) for k, v in device["consumedCapacity"].items()}}
                if device.get("consumedCapacity")
                else {}
            ),
        }
        for device in result["devices"].get("results") or ()
    ]
    terms = (result.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return {
        "results": sorted((_without_empty(d) for d in devices), key=repr),
        "config": [_without_empty(c) for c in result["devices"].get("config") or ()],
        "terms": [
            {key: sorted(map(repr, map(_sorted, requirements))) for key, requirements in sorted(term.items())}
            for term in terms
        ],
    }


def _without_empty(value: Json) -> Json:
    return {key: _sorted(inner) for key, inner in sorted(value.items()) if inner not in (None, [], {}, "")}


def _sorted(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list | tuple) else value
