"""What several checkers read of objects, in one place. No word of the code under test."""

from collections.abc import Iterator, Mapping
from typing import Any

Fields = Mapping[str, Any]
FINISHED = ("Succeeded", "Failed")
FINALIZER = "resource.kubernetes.io/delete-protection"
NUMERIC_FINALIZER = "numeric.dra.k8s.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def name_of(fields: Fields) -> str:
    return str(fields["metadata"]["name"])


def place_of(fields: Fields) -> tuple[str, str]:
    return fields["metadata"].get("namespace", ""), name_of(fields)


def is_leaving(fields: Fields) -> bool:
    return "deletionTimestamp" in fields["metadata"]


def is_finished(pod: Fields) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def is_active(pod: Fields) -> bool:
    return not is_finished(pod) and not is_leaving(pod)


def needs_claims(pod: Fields) -> bool:
    """Whether it runs, or may yet."""
    return not is_finished(pod) and bool(node_of(pod) or not is_leaving(pod))


def node_of(pod: Fields) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


def asks_for_extended(pod: Fields) -> bool:
    return any("/" in name and "card" not in name for name in _requested(pod))


def asks_for_cards(pod: Fields) -> bool:
    """For compute resources, which have a checker of their own."""
    return any("card" in name for name in _requested(pod))


def _requested(pod: Fields) -> set[str]:
    amounts = ((one.get("resources") or {}).get("requests") or {} for one in pod["spec"]["containers"])
    return {name for amount in amounts for name in amount}


def has_condition(fields: Fields, type: str) -> bool:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    return any(one["type"] == type and one["status"] == "True" for one in conditions)


def is_ready(pod_or_node: Fields) -> bool:
    return has_condition(pod_or_node, "Ready")


def owners(fields: Fields) -> list[Any]:
    return list(fields["metadata"].get("ownerReferences") or ())


def controller(fields: Fields) -> str:
    """The uid of the one that made it, "" if nobody did."""
    return next((one["uid"] for one in owners(fields) if one.get("controller")), "")


def is_special(claim: Fields) -> bool:
    """Whether it serves the extended resources of a pod."""
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(EXTENDED_CLAIM) == "true" and bool(controller(claim))


def others_listed(claim: Fields) -> list[Any]:
    """Who is listed as a user of a claim besides the pod that it was made for."""
    return [one for one in reserved(claim) if one["uid"] != controller(claim)]


def is_classic(claim: Fields) -> bool:
    return bool((claim.get("spec") or {}).get("resourceClassName"))


def is_numeric(claim: Fields) -> bool:
    """Whether the scheduler allocates it with numeric parameters: of the classes of made-up worlds, these."""
    return str((claim.get("spec") or {}).get("resourceClassName") or "").startswith("frob")


def reserved(claim: Fields) -> list[Any]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def allocation(claim: Fields) -> Any:
    return (claim.get("status") or {}).get("allocation")


def results(claim: Fields) -> list[Any]:
    return list(((allocation(claim) or {}).get("devices") or {}).get("results") or ())


def recorded_claims(pod: Fields) -> dict[str, str | None]:
    """By entry of the pod, the claim that was made for it; None where none is wanted."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {one["name"]: one.get("resourceClaimName") for one in statuses}


def claim_names(pod: Fields) -> Iterator[tuple[str, str]]:
    """Entry and name of every claim of a pod, "" where the name is not known yet."""
    made = recorded_claims(pod)
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or made.get(entry["name"])
        if name is not None or entry["name"] not in made:
            yield entry["name"], name or ""
