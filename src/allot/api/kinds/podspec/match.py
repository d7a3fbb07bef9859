"""matchLabelKeys: selectors that say "the same value as mine".

When a pod is made, the keys become ordinary requirements of the selector beside
them, so that whoever reads the pod later needs to know nothing of them.
"""

from collections.abc import Mapping
from typing import Any

from ...kind import Fields
from ..reading import items, obj, section

_ASKING = frozenset(("affinity", "topologySpreadConstraints"))


def merge_label_keys(pod: Fields) -> None:
    if _ASKING.isdisjoint(pod["spec"]):
        return
    labels = obj(pod, "metadata", "labels")
    affinity = obj(pod, "spec", "affinity")
    for name in ("podAffinity", "podAntiAffinity"):
        part = obj(affinity, name)
        terms = items(part, "requiredDuringSchedulingIgnoredDuringExecution")
        weighted = items(part, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in [*terms, *(obj(entry, "podAffinityTerm") for entry in weighted)]:
            _merge(term, labels, "matchLabelKeys", "In")
            _merge(term, labels, "mismatchLabelKeys", "NotIn")
    for constraint in items(pod, "spec", "topologySpreadConstraints"):
        _merge(constraint, labels, "matchLabelKeys", "In")


def _merge(term: Fields, labels: Mapping[str, Any], keys: str, operator: str) -> None:
    if term.get("labelSelector") is None:
        return
    for key in items(term, keys):
        if key in labels:
            selector = section(term, "labelSelector")
            need = {"key": key, "operator": operator, "values": [labels[key]]}
            selector["matchExpressions"] = [*items(selector, "matchExpressions"), need]
