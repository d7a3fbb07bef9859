"""Where a pod wants to run: selectors, affinity, tolerations, spreading, gates."""

from collections.abc import Mapping, Sequence
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, forbidden, invalid, required, unsupported
from ..labels import validate_selector
from ..reading import items, obj

TOLERATION_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
NODE_INCLUSION = ("Honor", "Ignore")


# -- affinity -----------------------------------------------------------------------------------


def validate_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _validate_node_affinity(obj(affinity, "nodeAffinity"), path / "nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        found += _validate_pod_affinity(obj(affinity, name), path / name)
    return found


def _validate_node_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        at = path / "requiredDuringSchedulingIgnoredDuringExecution"
        found += validate_node_selector(needed, at)
    wished = path / "preferredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")):
        found += _validate_weight(term, wished[index])
        found += _validate_node_term(obj(term, "preference"), wished[index] / "preference")
    return found


def validate_node_selector(selector: Mapping[str, Any], path: Path) -> list[FieldError]:
    terms = items(selector, "nodeSelectorTerms")
    if not terms:
        return [required(path / "nodeSelectorTerms", "must have at least one node selector term")]
    found: list[FieldError] = []
    for index, term in enumerate(terms):
        found += _validate_node_term(term, (path / "nodeSelectorTerms")[index])
    return found


def _validate_node_term(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, need in enumerate(items(term, "matchExpressions")):
        at = (path / "matchExpressions")[index]
        found += _validate_node_requirement(need, at)
        key = need.get("key") or ""
        found += [invalid(at / "key", key, wrong) for wrong in names.qualified(key)]
    for index, need in enumerate(items(term, "matchFields")):
        found += _validate_field_requirement(need, (path / "matchFields")[index])
    return found


def _validate_node_requirement(need: Mapping[str, Any], path: Path) -> list[FieldError]:
    operator, values = need.get("operator") or "", items(need, "values")
    if operator not in NODE_OPERATORS:
        return [invalid(path / "operator", operator, "not a valid selector operator")]
    if operator in ("In", "NotIn") and not values:
        return [required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(path / "values", text)]
    if operator in ("Gt", "Lt") and len(values) != 1:
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [required(path / "values", text)]
    return []


def _validate_field_requirement(need: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if need.get("operator") not in ("In", "NotIn"):
        found.append(invalid(path / "operator", need.get("operator"), "not a valid selector operator"))
    elif len(items(need, "values")) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(path / "values", text))
    if need.get("key") != "metadata.name":
        found.append(invalid(path / "key", need.get("key"), "not a valid field selector key"))
    return found


def _validate_weight(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(path / "weight", weight, "must be in the range 1-100")]


def _validate_pod_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    needed = path / "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")):
        found += _validate_pod_term(term, needed[index])
    wished = path / "preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")):
        found += _validate_weight(weighted, wished[index])
        found += _validate_pod_term(obj(weighted, "podAffinityTerm"), wished[index] / "podAffinityTerm")
    return found


def _validate_pod_term(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("labelSelector", "namespaceSelector"):
        if term.get(name) is not None:
            found += validate_selector(term[name], path / name)
    for index, namespace in enumerate(items(term, "namespaces")):
        at = (path / "namespaces")[index]
        found += [invalid(at, namespace, wrong) for wrong in names.label_name(namespace)]
    key = term.get("topologyKey") or ""
    if not key:
        found.append(required(path / "topologyKey", "can not be empty"))
    return found + [invalid(path / "topologyKey", key, wrong) for wrong in names.qualified(key)]


# -- tolerations --------------------------------------------------------------------------------


def validate_tolerations(tolerations: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        found += _validate_toleration(toleration, path[index])
    return found


def _validate_toleration(toleration: Mapping[str, Any], path: Path) -> list[FieldError]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    found = [invalid(path / "key", key, wrong) for wrong in (names.qualified(key) if key else ())]
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid(path / "operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(path / "effect", effect, text))
    if operator in ("", "Equal"):
        found += [invalid(path / "operator", value, wrong) for wrong in names.label_value(value)]
    elif operator == "Exists":
        if value:
            text = "value must be empty when `operator` is 'Exists'"
            found.append(invalid(path / "operator", value, text))
    else:
        found.append(unsupported(path / "operator", operator, ("Equal", "Exists")))
    if effect and effect not in TOLERATION_EFFECTS:
        found.append(unsupported(path / "effect", effect, TOLERATION_EFFECTS))
    return found


# -- spreading and gates ------------------------------------------------------------------------


def validate_spreading(constraints: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    seen = set()
    for index, constraint in enumerate(constraints):
        at = path[index]
        skew, key = constraint.get("maxSkew") or 0, constraint.get("topologyKey") or ""
        action = constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            found.append(invalid(at / "maxSkew", skew, "must be greater than zero"))
        if not key:
            found.append(required(at / "topologyKey", "can not be empty"))
        else:
            found += [invalid(at / "topologyKey", key, wrong) for wrong in names.qualified(key)]
        if action not in UNSATISFIABLE:
            found.append(unsupported(at / "whenUnsatisfiable", action, UNSATISFIABLE))
        if (key, action) in seen:
            found.append(duplicate(at / "{topologyKey, whenUnsatisfiable}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        found += _validate_spread_details(constraint, at)
    return found


def _validate_spread_details(constraint: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    domains = constraint.get("minDomains")
    if domains is not None and domains <= 0:
        found.append(invalid(path / "minDomains", domains, "must be greater than zero"))
    elif domains is not None and constraint.get("whenUnsatisfiable") != "DoNotSchedule":
        text = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
        found.append(invalid(path / "minDomains", domains, text))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) is not None and constraint[name] not in NODE_INCLUSION:
            found.append(unsupported(path / name, constraint[name], NODE_INCLUSION))
    if constraint.get("labelSelector") is not None:
        found += validate_selector(constraint["labelSelector"], path / "labelSelector")
    return found


def validate_gates(gates: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        found += [invalid(path[index] / "name", name, wrong) for wrong in names.qualified(name)]
        if name in seen:
            found.append(duplicate(path[index], name))
        seen.add(name)
    return found


def validate_readiness(gates: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    return [
        invalid(path[index] / "conditionType", gate.get("conditionType") or "", wrong)
        for index, gate in enumerate(gates)
        for wrong in names.qualified(gate.get("conditionType") or "")
    ]
