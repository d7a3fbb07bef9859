"""Which pod specs make sense. For pods, and for the templates that make pods."""

from collections.abc import Mapping
from typing import Any

from ... import names
from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ...kind import Fields
from ...resource import pods as claims
from ..amounts import validate_amount, validate_resource_name
from ..labels import validate_labels
from ..reading import items, obj
from .containers import RESTART_POLICIES, validate_all, validate_ids
from .resources import validate_pod_level
from .scheduling import validate_scheduling
from .volumes import validate_volumes

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
SYSTEMS = ("linux", "windows")
NAMESERVERS_MAX = 3
INT32_MAX = 2**31 - 1


def validate_spec(spec: Fields, path: Path, annotations: Mapping[str, str] | None = None) -> list[FieldError]:
    return [
        *validate_volumes(items(spec, "volumes"), path / "volumes"),
        *claims.spec_errors(spec, path, annotations),
        *validate_all(spec, path),
        *_validate_choices(spec, path),
        *_validate_names(spec, path),
        *_validate_times(spec, path),
        *validate_scheduling(spec, path),
        *validate_ids(obj(spec, "securityContext"), path / "securityContext"),
        *_validate_dns(spec, path),
        *_validate_host_aliases(spec, path),
        *validate_pod_level(spec, path / "resources"),
        *_validate_overhead(spec, path / "overhead"),
    ]


def validate_template(template: Fields, path: Path) -> list[FieldError]:
    """A template: labels and annotations of its pods, and their spec."""
    metadata, spec = obj(template, "metadata"), obj(template, "spec")
    found = validate_labels(obj(metadata, "labels"), path / "labels")
    for key in obj(metadata, "annotations"):
        found += [invalid(path / "annotations", key, wrong) for wrong in names.qualified(key.lower())]
    found += validate_spec(spec, path / "spec", obj(metadata, "annotations"))
    if items(spec, "ephemeralContainers"):
        at = path / "spec" / "ephemeralContainers"
        found.append(forbidden(at, "ephemeral containers not allowed in pod template"))
    return found


def _validate_choices(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name, known in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        value = spec.get(name) or ""
        if not value:
            found.append(required(path / name))
        elif value not in known:
            found.append(unsupported(path / name, value, known))
    if spec.get("preemptionPolicy") and spec["preemptionPolicy"] not in PREEMPTION_POLICIES:
        found.append(unsupported(path / "preemptionPolicy", spec["preemptionPolicy"], PREEMPTION_POLICIES))
    system = obj(spec, "os").get("name")
    if spec.get("os") is not None and system not in SYSTEMS:
        at = path / "os" / "name"
        found.append(unsupported(at, system, SYSTEMS) if system else required(at))
    return found


def _validate_names(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name, check in (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.label_name),
        ("subdomain", names.label_name),
        ("priorityClassName", names.subdomain),
        ("runtimeClassName", names.subdomain),
    ):
        value = spec.get(name) or ""
        found += [invalid(path / name, value, wrong) for wrong in (check(value) if value else ())]
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            found.append(required((path / "imagePullSecrets")[index] / "name"))
    if spec.get("nodeName") and items(spec, "schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden(path / "nodeName", text))
    return found


def _validate_times(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        text = f"must be between 1 and {INT32_MAX}, inclusive"
        found.append(invalid(path / "activeDeadlineSeconds", deadline, text))
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        text = "must be greater than or equal to 0"
        found.append(invalid(path / "terminationGracePeriodSeconds", grace, text))
    return found


def _validate_dns(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    config, at = obj(spec, "dnsConfig"), path / "dnsConfig"
    servers = items(config, "nameservers")
    found: list[FieldError] = []
    if spec.get("dnsPolicy") == "None" and not servers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.append(required(at / "nameservers", text))
    if len(servers) > NAMESERVERS_MAX:
        text = f"must not have more than {NAMESERVERS_MAX} nameservers"
        found.append(invalid(at / "nameservers", servers, text))
    for index, server in enumerate(servers):
        found += [invalid((at / "nameservers")[index], server, wrong) for wrong in names.ip_address(server)]
    for index, option in enumerate(items(config, "options")):
        if not option.get("name"):
            found.append(required((at / "options")[index], "must not be empty"))
    return found


def _validate_host_aliases(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, alias in enumerate(items(spec, "hostAliases")):
        at = (path / "hostAliases")[index]
        address = alias.get("ip") or ""
        found += [invalid(at / "ip", address, wrong) for wrong in names.ip_address(address)]
        for host in items(alias, "hostnames"):
            found += [invalid(at / "hostnames", host, wrong) for wrong in names.subdomain(host)]
    return found


def _validate_overhead(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name, written in obj(spec, "overhead").items():
        found += validate_resource_name(name, path[name]) + validate_amount(name, written, path[name])
    return found
