"""What may be written and is not acted on, so that the answer says so.

A field that this system ought to heed, and does not, is a row here: the client that writes it is warned by
its path, in whichever kind and template it stands. What nodes, drivers and networks read is stored for them,
without a word. A test holds every field of every kind against this table.

    FIELDS   by type and field
    KINDS    whole kinds (`kinds.stored` has those that nothing here reads at all)
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from . import schema
from .kind import Fields, Kind

_NOT_PLACED = "not heeded: pods that require it are not placed by this scheduler"
_NO_WISH = "not heeded when pods are placed"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "io.k8s.api.core.v1.PodAffinity": {_REQUIRED: _NOT_PLACED, _PREFERRED: _NO_WISH},
    "io.k8s.api.core.v1.PodAntiAffinity": {_REQUIRED: _NOT_PLACED, _PREFERRED: _NO_WISH},
    "io.k8s.api.core.v1.PodSpec": {
        "topologySpreadConstraints": "not heeded: pods with DoNotSchedule are not placed by this scheduler",
        "runtimeClassName": "not heeded: the overhead and the nodes of the class do not apply",
        "schedulingGroup": "not heeded: pods are placed one by one",
        "evictionResponders": "nobody is asked before a pod is evicted",
    },
    "io.k8s.api.apps.v1.StatefulSetSpec": {
        "volumeClaimTemplates": "no volume is provisioned and no claim for one is made",
    },
    "io.k8s.api.batch.v1.JobSpec": {
        "podFailurePolicy": "not heeded: every failure counts against backoffLimit",
        "successPolicy": "not heeded: the job succeeds when all completions have",
        "backoffLimitPerIndex": "not heeded: failures count for the job as a whole",
        "maxFailedIndexes": "not heeded: failures count for the job as a whole",
        "scheduling": "not heeded: pods are placed one by one",
    },
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec": {
        "auditAnnotations": "not recorded in the audit log",
    },
    "io.k8s.api.coordination.v1.LeaseSpec": {
        "strategy": "not heeded: nobody elects a leader by it",
        "preferredHolder": "not heeded: nobody elects a leader by it",
    },
}

KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("", "services"): "no address is given to it and no traffic is routed",
    ("", "persistentvolumeclaims"): "no volume is provisioned or bound",
    ("", "replicationcontrollers"): "no pods are made",
    ("storage.k8s.io", "storageclasses"): "no volume is provisioned",
    ("node.k8s.io", "runtimeclasses"): "it does not apply to pods",
}


def warnings(kind: Kind, new: Fields, old: Fields | None) -> list[str]:
    """What the client that writes `new` over `old` should know. Only what this write brings."""
    tree = _tree(kind)
    found: list[str] = []
    if tree and _may_be_written(new, tree):
        found = [
            f"{path}: {text}"
            for path, text, value in _written(new, tree, "")
            if old is None or value != _at(old, path)
        ]
    nobody = KINDS.get((kind.group, kind.plural))
    if nobody is not None and (old is None or new.get("spec") != old.get("spec")):
        found.append(f"{kind.plural} are stored and not acted on: {nobody}")
    return found


Tree = dict[str, "Tree | str"]
"""Field -> what is below it, or the warning."""

_trees: dict[tuple[str, str], Tree] = {}


def _tree(kind: Kind) -> Tree:
    """The ways from a kind to its rows of the table, worked out once."""
    found = _trees.get(kind.storage)
    if found is None:
        hub = next(version for version in kind.versions if version.name == kind.hub)
        found = {} if hub.custom is not None else _ways(hub.schema)
        _trees[kind.storage] = found
    return found


@cache
def _ways(schema_name: str) -> Tree:
    return _below(schema.get(schema_name), ())


def _below(shape: schema.Schema, above: tuple[str, ...]) -> Tree:
    """Objects alone are followed: no row of the table lies in a list."""
    if shape.type is not schema.Type.OBJECT or shape.name in above:
        return {}
    rows: Mapping[str, str] = FIELDS.get(shape.name, {})
    tree: Tree = {}
    for name, field in shape.fields.items():
        if below := rows.get(name) or _below(field, (*above, shape.name)):
            tree[name] = below
    return tree


def _may_be_written(fields: Mapping[str, Any], tree: Tree) -> bool:
    """Whether the object has the first two steps to a row: nearly none has."""
    for name, below in tree.items():
        value = fields.get(name)
        if value and (isinstance(below, str) or not below.keys().isdisjoint(value)):
            return True
    return False


def _written(fields: Mapping[str, Any], tree: Tree, path: str) -> Iterator[tuple[str, str, Any]]:
    """Path, warning and value of each row that the object has."""
    for name, below in tree.items():
        value = fields.get(name)
        if not value:
            continue
        where = f"{path}.{name}" if path else name
        if isinstance(below, str):
            yield where, below, value
        elif isinstance(value, Mapping):
            yield from _written(value, below, where)


def _at(fields: Mapping[str, Any], path: str) -> Any:
    value: Any = fields
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
