"""Probes and lifecycle hooks: what is run in or against a container."""

from collections.abc import Mapping
from typing import Any

from ... import names
from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ..reading import items

SCHEMES = ("HTTP", "HTTPS")
_PROBE_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_ACTIONS = ("exec", "httpGet", "tcpSocket", "sleep")


def validate_probe(probe: Mapping[str, Any], path: Path, *, liveness: bool = False) -> list[FieldError]:
    found = _validate_action(probe, path, _PROBE_ACTIONS)
    for name in (
        "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold",
    ):  # fmt: skip
        if (probe.get(name) or 0) < 0:
            found.append(invalid(path / name, probe[name], "must be greater than or equal to 0"))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        found.append(invalid(path / "terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if liveness and (probe.get("successThreshold") or 1) != 1:
        found.append(invalid(path / "successThreshold", probe["successThreshold"], "must be 1"))
    return found


def validate_lifecycle(lifecycle: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            found += _validate_action(lifecycle[name], path / name, _HOOK_ACTIONS)
    return found


def _validate_action(handler: Mapping[str, Any], path: Path, kinds: tuple[str, ...]) -> list[FieldError]:
    said = [name for name in kinds if handler.get(name) is not None]
    if not said:
        return [required(path, "must specify a handler type")]
    found = [forbidden(path / name, "may not specify more than 1 handler type") for name in said[1:]]
    name = said[0]
    action, at = handler[name], path / name
    if name == "exec" and not items(action, "command"):
        found.append(required(at / "command"))
    if name == "httpGet":
        found += _validate_http_get(action, at)
    if name in ("httpGet", "tcpSocket", "grpc"):
        found += validate_port(action.get("port"), at / "port")
    return found


def _validate_http_get(action: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [] if action.get("path") else [required(path / "path")]
    if action.get("scheme") not in SCHEMES:
        found.append(unsupported(path / "scheme", action.get("scheme") or "", SCHEMES))
    for header in items(action, "httpHeaders"):
        if not _is_header_name(header.get("name") or ""):
            text = "a valid HTTP header must consist of alphanumeric characters or '-'"
            found.append(invalid(path / "httpHeaders", header.get("name") or "", text))
    return found


def _is_header_name(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").isalnum()


def validate_port(port: Any, path: Path) -> list[FieldError]:
    """A number or the name of a port."""
    if isinstance(port, str):
        return [invalid(path, port, wrong) for wrong in names.port_name(port)]
    return [invalid(path, port or 0, wrong) for wrong in names.port_number(port or 0)]
