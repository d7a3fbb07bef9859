"""admissionregistration.k8s.io/v1: policies that judge writes, and bindings that put them in force.

Their expressions are read by the server (`apiserver.admission.policies`), which refuses those that cannot be.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..field import FieldError, Path, invalid, required, unsupported
from ..kind import Fields, Kind, Rules, Version
from .labels import validate_selector
from .reading import default, items, obj, section

GROUP = "admissionregistration.k8s.io"
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
ACTIONS = ("Audit", "Deny", "Warn")
FAILURES = ("Fail", "Ignore")
MATCHES = ("Equivalent", "Exact")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_SPEC = Path("spec")


def _default_match(match: Fields) -> None:
    default(match, "matchPolicy", "Equivalent")
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            match[name] = {}
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in items(match, rules):
            default(rule, "scope", "*")


def _default_policy(policy: Fields, now: datetime) -> None:
    spec = section(policy, "spec")
    default(spec, "failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _default_match(section(spec, "matchConstraints"))


def _default_binding(binding: Fields, now: datetime) -> None:
    spec = section(binding, "spec")
    if spec.get("matchResources") is not None:
        _default_match(section(spec, "matchResources"))


def _validate_policy(policy: Fields) -> list[FieldError]:
    spec = obj(policy, "spec")
    found: list[FieldError] = []
    if not items(spec, "validations") and not items(spec, "auditAnnotations"):
        text = "validations or auditAnnotations must be non-empty"
        found.append(required(_SPEC / "validations", text))
    if spec.get("failurePolicy") not in FAILURES:
        found.append(unsupported(_SPEC / "failurePolicy", spec.get("failurePolicy") or "", FAILURES))
    constraints = obj(spec, "matchConstraints")
    if not items(constraints, "resourceRules"):
        found.append(required(_SPEC / "matchConstraints" / "resourceRules"))
    found += _validate_match(constraints, _SPEC / "matchConstraints")
    kind = spec.get("paramKind")
    if kind is not None and not (kind.get("apiVersion") and kind.get("kind")):
        found.append(required(_SPEC / "paramKind", "apiVersion and kind are required"))
    for at, one in enumerate(items(spec, "validations")):
        if one.get("reason") and one["reason"] not in REASONS:
            found.append(unsupported((_SPEC / "validations")[at] / "reason", one["reason"], REASONS))
    return found


def _validate_binding(binding: Fields) -> list[FieldError]:
    spec = obj(binding, "spec")
    found: list[FieldError] = []
    if not spec.get("policyName"):
        found.append(required(_SPEC / "policyName"))
    actions, path = spec.get("validationActions") or [], _SPEC / "validationActions"
    if not actions:
        found.append(required(path))
    found += [unsupported(path[at], one, ACTIONS) for at, one in enumerate(actions) if one not in ACTIONS]
    if "Deny" in actions and "Warn" in actions:
        found.append(invalid(path, actions, "must not contain both Deny and Warn"))
    parameters = spec.get("paramRef")
    if parameters is not None:
        found += _validate_parameters(parameters, _SPEC / "paramRef")
    return found + _validate_match(obj(spec, "matchResources"), _SPEC / "matchResources")


def _warn_of_audit(new: Fields, old: Fields | None) -> list[str]:
    if "Audit" not in (obj(new, "spec").get("validationActions") or ()):
        return []
    return ["spec.validationActions: Audit: the audit log does not record failed validations"]


def _validate_parameters(said: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = []
    if bool(said.get("name")) == (said.get("selector") is not None):
        found.append(required(path / "name", "one of name or selector must be specified"))
    if said.get("parameterNotFoundAction") not in ("Allow", "Deny"):
        value = said.get("parameterNotFoundAction") or ""
        found.append(unsupported(path / "parameterNotFoundAction", value, ("Allow", "Deny")))
    if said.get("selector") is not None:
        found += validate_selector(said["selector"], path / "selector")
    return found


def _validate_match(match: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if match and match.get("matchPolicy") not in MATCHES:
        found.append(unsupported(path / "matchPolicy", match.get("matchPolicy") or "", MATCHES))
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name):
            found += validate_selector(match[name], path / name)
    for rules in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(items(match, rules)):
            found += _validate_rule(rule, (path / rules)[at])
    return found


def _validate_rule(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [
        required(path / name)
        for name in ("apiGroups", "apiVersions", "operations", "resources")
        if not rule.get(name)
    ]
    for at, one in enumerate(rule.get("operations") or ()):
        if one not in OPERATIONS:
            found.append(unsupported((path / "operations")[at], one, OPERATIONS))
    if rule.get("scope") not in SCOPES:
        found.append(unsupported(path / "scope", rule.get("scope") or "", SCOPES))
    return found


POLICY = Kind(
    group=GROUP,
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    singular="validatingadmissionpolicy",
    categories=("api-extensions",),
    versions=(
        Version(
            "v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy", default=_default_policy
        ),
    ),
    hub="v1",
    namespaced=False,
    has_status=True,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate_policy(new),
        validate_update=lambda new, old, context: _validate_policy(new),
    ),
)

BINDING = Kind(
    group=GROUP,
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    singular="validatingadmissionpolicybinding",
    categories=("api-extensions",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
            default=_default_binding,
        ),
    ),
    hub="v1",
    namespaced=False,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate_binding(new),
        validate_update=lambda new, old, context: _validate_binding(new),
        warnings=_warn_of_audit,
    ),
)

KINDS = (POLICY, BINDING)
