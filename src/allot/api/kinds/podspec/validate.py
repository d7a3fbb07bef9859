"""Which pod specs make sense. For pods, and for the templates that make pods."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ... import names
from ...compute import pods as records
from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ...kind import Fields
from ...resource import pods as claims
from ..amounts import validate_amount, validate_resource_name
from ..labels import validate_labels
from ..reading import items, obj
from .containers import RESTART_POLICIES, validate_all
from .resources import validate_pod_level
from .scheduling import (
    validate_affinity,
    validate_gates,
    validate_readiness,
    validate_spreading,
    validate_tolerations,
)  # fmt: skip
from .security import validate_pod_security
from .volumes import validate_volumes

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
SYSTEMS = ("linux", "windows")
NAMESERVERS_MAX = 3
INT32_MAX = 2**31 - 1


FINE_MAX = 4096
_fine: dict[bytes, None] = {}
"""Digests of specs that nothing was wrong with, oldest first."""


def validate_spec(spec: Fields, path: Path, annotations: Mapping[str, str] | None = None) -> list[FieldError]:
    """Everything that is wrong with the spec of a pod.

    The pods of a template come with the same spec again and again, and looking for what is
    wrong is the dearest part of storing one: a spec that was fine is fine.
    """
    said = msgspec.json.encode((spec, annotations if spec.get("resourceClaims") else None))
    digest = hashlib.blake2b(said, digest_size=16).digest()
    if digest in _fine:
        return []
    found = _look_for_errors(spec, path, annotations)
    if not found:
        _fine[digest] = None
        if len(_fine) > FINE_MAX:
            del _fine[next(iter(_fine))]
    return found


def _look_for_errors(spec: Fields, path: Path, annotations: Mapping[str, str] | None) -> list[FieldError]:
    found = [*claims.spec_errors(spec, path, annotations), *validate_all(spec, path)]
    found += records.spec_errors(spec, path)
    for name, known in _CHOICES.items():
        if spec.get(name) not in known:
            found.append(_no_choice(spec.get(name), known, path / name))
    for name, check in _CHECKS.items():
        if spec.get(name) is not None:
            found += check(spec[name], path / name)
    if spec.get("dnsPolicy") == "None" and not items(spec, "dnsConfig", "nameservers"):
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.append(required(path / "dnsConfig" / "nameservers", text))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden(path / "nodeName", text))
    return found


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


def _no_choice(value: str | None, known: Sequence[str], path: Path) -> FieldError:
    return unsupported(path, value, known) if value else required(path)


def _named(check: Callable[[str], list[str]]) -> Callable[[str, Path], list[FieldError]]:
    """A name that may be empty, and has a shape if it is not."""
    return lambda value, path: [invalid(path, value, wrong) for wrong in check(value)] if value else []


def _validate_system(system: Mapping[str, Any], path: Path) -> list[FieldError]:
    name = system.get("name")
    return [] if name in SYSTEMS else [_no_choice(name, SYSTEMS, path / "name")]


def _validate_preemption(policy: str, path: Path) -> list[FieldError]:
    return [] if policy in ("", *PREEMPTION_POLICIES) else [unsupported(path, policy, PREEMPTION_POLICIES)]


def _validate_pull_secrets(secrets: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    return [required(path[at] / "name") for at, secret in enumerate(secrets) if not secret.get("name")]


def _validate_deadline(seconds: int, path: Path) -> list[FieldError]:
    if 1 <= seconds <= INT32_MAX:
        return []
    return [invalid(path, seconds, f"must be between 1 and {INT32_MAX}, inclusive")]


def _validate_grace(seconds: int, path: Path) -> list[FieldError]:
    return [] if seconds >= 0 else [invalid(path, seconds, "must be greater than or equal to 0")]


def _validate_dns(config: Mapping[str, Any], path: Path) -> list[FieldError]:
    servers = items(config, "nameservers")
    found: list[FieldError] = []
    if len(servers) > NAMESERVERS_MAX:
        text = f"must not have more than {NAMESERVERS_MAX} nameservers"
        found.append(invalid(path / "nameservers", servers, text))
    for index, server in enumerate(servers):
        at = (path / "nameservers")[index]
        found += [invalid(at, server, wrong) for wrong in names.ip_address(server)]
    for index, option in enumerate(items(config, "options")):
        if not option.get("name"):
            found.append(required((path / "options")[index], "must not be empty"))
    return found


def _validate_host_aliases(aliases: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, alias in enumerate(aliases):
        at, address = path[index], alias.get("ip") or ""
        found += [invalid(at / "ip", address, wrong) for wrong in names.ip_address(address)]
        for host in items(alias, "hostnames"):
            found += [invalid(at / "hostnames", host, wrong) for wrong in names.subdomain(host)]
    return found


def _validate_overhead(amounts: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name, written in amounts.items():
        found += validate_resource_name(name, path[name]) + validate_amount(name, written, path[name])
    return found


_CHOICES: Mapping[str, tuple[str, ...]] = {"restartPolicy": RESTART_POLICIES, "dnsPolicy": DNS_POLICIES}

_CHECKS: Mapping[str, Callable[[Any, Path], list[FieldError]]] = {
    "volumes": validate_volumes,
    "os": _validate_system,
    "preemptionPolicy": _validate_preemption,
    "serviceAccountName": _named(names.subdomain),
    "nodeName": _named(names.subdomain),
    "hostname": _named(names.label_name),
    "subdomain": _named(names.label_name),
    "priorityClassName": _named(names.subdomain),
    "runtimeClassName": _named(names.subdomain),
    "imagePullSecrets": _validate_pull_secrets,
    "activeDeadlineSeconds": _validate_deadline,
    "terminationGracePeriodSeconds": _validate_grace,
    "nodeSelector": validate_labels,
    "affinity": validate_affinity,
    "tolerations": validate_tolerations,
    "topologySpreadConstraints": validate_spreading,
    "schedulingGates": validate_gates,
    "readinessGates": validate_readiness,
    "securityContext": validate_pod_security,
    "dnsConfig": _validate_dns,
    "hostAliases": _validate_host_aliases,
    "resources": validate_pod_level,
    "overhead": _validate_overhead,
}
"""What is checked where it is said. Most pods say little, and pay for no more."""
