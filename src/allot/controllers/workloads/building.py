"""A pod from a template, as its owner."""

from collections.abc import Mapping
from typing import Any

from allot.api import Object

from .adoption import reference

_NAME_MAX, _SUFFIX = 63, 5


def pod_from(template: Mapping[str, Any], owner: Object, suffix: str, **spec: Any) -> dict[str, Any]:
    """Everything in the template is carried over, known here or not. The name is chosen here and
    not by the server: after a create whose outcome is unknown it can be looked up."""
    given = template.get("metadata") or {}
    base = f"{owner.name[: _NAME_MAX - _SUFFIX - 1]}-"
    carried = {name: given[name] for name in ("labels", "annotations", "finalizers") if given.get(name)}
    metadata = {
        **carried,
        "name": base + suffix,
        "generateName": base,
        "namespace": owner.namespace,
        "ownerReferences": [reference(owner)],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return {**body, "spec": {**(template.get("spec") or {}), **spec}}
