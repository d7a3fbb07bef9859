"""Security contexts, of a pod and of a container: whom processes run as, and what they may do."""

from collections.abc import Mapping
from typing import Any

from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ..reading import items

ID_MAX = 2**31 - 1
PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
GROUP_CHANGES = ("Always", "OnRootMismatch")
GROUP_POLICIES = ("Merge", "Strict")
PROC_MOUNTS = ("Default", "Unmasked")
_IDS = ("runAsUser", "runAsGroup", "fsGroup")


def validate_pod_security(context: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _validate_common(context, path)
    for index, group in enumerate(items(context, "supplementalGroups")):
        found += _validate_id(group, (path / "supplementalGroups")[index])
    for name, known in (
        ("fsGroupChangePolicy", GROUP_CHANGES),
        ("supplementalGroupsPolicy", GROUP_POLICIES),
    ):
        if context.get(name) is not None and context[name] not in known:
            found.append(unsupported(path / name, context[name], known))
    seen = set()
    for index, setting in enumerate(items(context, "sysctls")):
        name, at = setting.get("name") or "", (path / "sysctls")[index] / "name"
        if not name:
            found.append(required(at))
        elif name in seen:
            found.append(invalid(at, name, "must be unique"))
        seen.add(name)
    return found


def validate_container_security(context: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _validate_common(context, path)
    mount = context.get("procMount")
    if mount is not None and mount not in PROC_MOUNTS:
        found.append(unsupported(path / "procMount", mount, PROC_MOUNTS))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(invalid(path, dict(context), text))
        if "CAP_SYS_ADMIN" in items(context, "capabilities", "add"):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            found.append(invalid(path, dict(context), text))
    return found


def _validate_common(context: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name in _IDS:
        if context.get(name) is not None:
            found += _validate_id(context[name], path / name)
    for name in ("seccompProfile", "appArmorProfile"):
        if context.get(name) is not None:
            found += _validate_profile(context[name], path / name)
    return found


def _validate_id(value: int, path: Path) -> list[FieldError]:
    if 0 <= value <= ID_MAX:
        return []
    return [invalid(path, value, f"must be between 0 and {ID_MAX}, inclusive")]


def _validate_profile(profile: Mapping[str, Any], path: Path) -> list[FieldError]:
    """A profile on the node has a name; the others have none."""
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if kind not in PROFILES:
        return [unsupported(path / "type", kind, PROFILES) if kind else required(path / "type")]
    at = path / "localhostProfile"
    if kind != "Localhost":
        text = "can only be set when type is Localhost"
        return [forbidden(at, text)] if local is not None else []
    if not local:
        return [required(at, "must be set when type is Localhost")]
    if local.startswith("/") or ".." in local.split("/"):
        return [invalid(at, local, "must be a relative path without '..'")]
    return []
