"""What a claim looks like that is made for a pod from a template: one answer for everybody who makes one.

The claim controller makes them, and a server that is asked to makes them with the pod.
"""

from collections.abc import Mapping
from typing import Any

from . import classic, resource

CONTROLLER = "resourceclaim-controller"
"""Who makes them, and owns their fields."""
FIELD_MANAGER = "ResourceClaimController"
"""Who owns what a pod's status says of them."""
SUFFIX = 5
_BASE_MAX = 57
"""Leaves room in a label of 63 letters for a dash and the random ones."""

_ANNOTATION = resource.limits.POD_CLAIM_NAME_ANNOTATION


def new_claim(
    pod: str, uid: str, namespace: str, entry: str, template: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """The claim to create. Everything in the template is carried over, known here or not.

    The name is chosen by who makes it and not by the server: after a create whose outcome is unknown it
    can be tried again.
    """
    wanted = wanted_by(template)
    is_classic = resource.shape.class_name_of(wanted) != ""
    return {
        "apiVersion": classic.limits.API_VERSION if is_classic else f"{resource.limits.GROUP}/v1",
        "kind": "ResourceClaim",
        "metadata": metadata(pod, uid, namespace, entry, template, name),
        "spec": classic.in_v1alpha1(wanted) if is_classic else wanted,
    }


def metadata(
    pod: str, uid: str, namespace: str, entry: str, template: Mapping[str, Any], name: str
) -> dict[str, Any]:
    given: Mapping[str, Any] = (template.get("spec") or {}).get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
    return {
        **given,
        "name": name,
        **({} if class_of(template) else {"generateName": base_name(pod, entry)}),
        "namespace": namespace,
        "annotations": {**(given.get("annotations") or {}), _ANNOTATION: entry},
        "ownerReferences": [owner],
    }


def wanted_by(template: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of the claims that are made from a template."""
    wanted: dict[str, Any] = (template.get("spec") or {}).get("spec") or {}
    return wanted


def class_of(template: Mapping[str, Any]) -> str:
    """The resource class of the claims that are made from a template; "" where they are structured."""
    return resource.shape.class_name_of(wanted_by(template))


def base_name(pod: str, entry: str) -> str:
    """What the random letters are put behind. Both names give up letters in proportion."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _BASE_MAX:
        return whole
    kept = (text[: len(text) * _BASE_MAX // len(whole)] for text in (pod, entry))
    return "-".join(kept)


def asks_for_admin_access(spec: dict[str, Any]) -> bool:
    requests = resource.shape.requests_in(spec)
    return any((request.get("exactly") or {}).get("adminAccess") for request in requests)
