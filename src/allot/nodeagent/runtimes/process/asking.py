"""What the shepherd is asked for, out of a container's spec. Pure, but for a look at which files are there.

N4: what a container is to have it gets, or it does not start; nothing is silently left out. Where the machine
cannot keep a container from something that it was not given, that is said (`Abilities.lacks`), and it runs.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from allot.wire import cdi

from ..contract import CannotStart, ContainerSpec

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CAPABILITIES = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
"""What a container has that asks for no others."""
EVERY = "ALL"
DEFAULT = "RuntimeDefault"
"""Of profiles: what this runtime does by itself, which is nothing."""
_PROPAGATIONS = {"None": (), "HostToContainer": ("rslave",), "": ()}


class Abilities(msgspec.Struct, frozen=True):
    """What the shepherd found out about its machine."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    isolates: frozenset[str]
    lacks: dict[str, str]
    words: dict[str, str]

    @property
    def is_bare(self) -> bool:
        """Containers see the machine as it is."""
        return "mount" not in self.isolates

    @property
    def is_one_user(self) -> bool:
        return "user" in self.isolates or self.uid != 0

    @property
    def missing(self) -> str:
        """What containers cannot have, in words; empty: nothing."""
        whys: dict[str, list[str]] = {}
        for name, why in self.lacks.items():
            whys.setdefault(why, []).append(self.words[name])
        return "; ".join(f"no {', no '.join(words)} ({why})" for why, words in whys.items())


def wanted(spec: ContainerSpec, can: Abilities) -> dict[str, Any]:
    """Raises CannotStart."""
    wrong = [*_impossible(spec, can)]
    if wrong:
        reason = "CreateContainerError" if (*spec.command, *spec.args) else "CreateContainerConfigError"
        why = "; ".join(wrong)
        raise CannotStart(f"container {spec.name} asks for what this node cannot give: {why}", reason)
    user, group = _first(spec.user, spec.pod.user), _first(spec.group, spec.pod.group)
    nodes = (*spec.edits.device_nodes, *spec.devices)
    sets_user = not can.is_one_user
    is_other = sets_user and bool(user)
    return {
        "container": f"{spec.pod_uid}/{spec.name}/{spec.number}",
        "command": (*spec.command, *spec.args),
        "env": environment(spec),
        "directory": spec.directory or ("/" if is_other or spec.read_only_root else ""),
        "crashes": spec.crashes,
        "annotations": dict(spec.pod.annotations),
        "hostname": spec.pod.hostname,
        "host_network": spec.pod.host_network,
        "host_pid": spec.pod.host_pid,
        "host_ipc": spec.pod.host_ipc,
        "user": user,
        "group": _first(group, user if is_other else None),
        "groups": sorted({*spec.pod.groups, *spec.groups, *spec.edits.additional_gids}),
        "sets_user": sets_user,
        "capabilities": None if can.is_bare else _capabilities(spec, can),
        "may_gain_rights": spec.may_gain_rights,
        "privileged": spec.privileged,
        "read_only_root": spec.read_only_root,
        "devices": [] if can.is_bare else [_node(one) for one in nodes],
        "mounts": [] if can.is_bare else _mounts(spec),
        "hooks": _hooks(spec.edits.hooks),
        "limits": spec.limits._asdict(),
        "affinity": sorted(cpus(spec.limits.cpus)) if "cpuset" in can.lacks else [],
        "tty": spec.tty,
        "stdin": spec.stdin,
        "stdin_once": spec.stdin_once,
    }


def environment(spec: ContainerSpec) -> dict[str, str]:
    """What the container asks for, and then what its devices add."""
    added = dict(one.partition("=")[::2] for one in spec.edits.env)
    term = {"TERM": "xterm"} if spec.tty else {}
    return {"PATH": PATH, **term, **spec.env, **added}


def unlimited(spec: ContainerSpec, can: Abilities) -> list[str]:
    """What was asked for and nothing keeps here, though it does no harm to go without."""
    asked = {
        "cpu": spec.limits.cpu_quota_us is not None,
        "memory": spec.limits.memory_bytes is not None,
    }
    found = [can.words[name] for name, is_asked in asked.items() if is_asked and name in can.lacks]
    profiles = {"filter of system calls": spec.seccomp, "AppArmor profile": spec.apparmor}
    return found + [name for name, one in profiles.items() if one is not None and one.type == DEFAULT]


def cpus(text: str) -> set[int]:
    """Of a list as cpusets have it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def _impossible(spec: ContainerSpec, can: Abilities) -> Iterable[str]:
    edits, user = spec.edits, _first(spec.user, spec.pod.user)
    groups = {*spec.pod.groups, *spec.groups, *edits.additional_gids}
    if not (*spec.command, *spec.args):
        yield "no command: there are no images that could say one"
    for name, profile in (("seccomp", spec.seccomp), ("AppArmor", spec.apparmor)):
        if profile is not None and profile.type == "Localhost":
            yield f"the {name} profile {profile.name}: processes are not confined by profiles here"
    if spec.pod.sysctls:
        yield f"sysctls {', '.join(spec.pod.sysctls)}: they are left as the machine has them"
    if spec.must_not_be_root and user is None and can.uid == 0:
        yield "runAsNonRoot without runAsUser: this node runs as root"
    if edits.intel_rdt is not None:
        yield "Intel RDT: it sets no classes of service"
    if can.is_one_user:
        yield from (
            f"group {one}: user {can.uid} is not in it" for one in sorted(groups - {*can.groups, can.gid})
        )
        if spec.privileged:
            yield f"privileged: this node runs as user {can.uid}"
    for mount in spec.mounts:
        if mount.propagation not in _PROPAGATIONS:
            yield f"mount at {mount.container_path}: propagation {mount.propagation}"
    targets = [one.container_path for one in edits.mounts] + [one.container_path for one in spec.mounts]
    yield from (f"mount at {one}: the root is the machine's" for one in targets if _is_root(one))
    for node in (*edits.device_nodes, *spec.devices):
        if {*node.permissions} - {*"rwm"}:
            yield f"device node {node.path}: permissions {node.permissions!r}"
    if can.is_bare:
        yield from _impossible_when_bare(spec, can)
        return
    for node in (*edits.device_nodes, *spec.devices):
        source = node.host_path or node.path
        is_made = bool(node.type) and not can.is_one_user
        if not is_made and not os.path.exists(source):
            yield f"device node {node.path}: this machine has no {source}"
        elif not is_made and not _is_device(source):
            yield f"device node {node.path}: {source} is no device"
    for needed, name in (("net", "a network of its own"),):
        if not spec.pod.host_network and needed in can.lacks:
            yield f"{name}: {can.lacks[needed]}"


def _impossible_when_bare(spec: ContainerSpec, can: Abilities) -> Iterable[str]:
    """Paths stay as they are, and what is there already is given."""
    why, edits = can.lacks["mount"], spec.edits
    for node in (*edits.device_nodes, *spec.devices):
        if node.host_path not in ("", node.path) or not os.path.exists(node.path):
            yield f"device node {node.path}: no /dev of its own ({why})"
    binds = [(one.host_path, one.container_path) for one in edits.mounts]
    binds += [(one.host_path, one.container_path) for one in spec.mounts if not one.is_optional]
    for source, target in binds:
        if source != target or not os.path.exists(source):
            yield f"mount at {target}: no mounts of its own ({why})"
    for hook in edits.hooks:
        if hook.hook_name in ("createContainer", "startContainer"):
            yield f"hook {hook.hook_name} {hook.path}: no namespaces of its own ({why})"
    if spec.read_only_root:
        yield f"a read-only root: no mounts of its own ({why})"
    if not spec.pod.host_network:
        yield f"a network of its own: {why}"
    user = _first(spec.user, spec.pod.user)
    if can.uid and user not in (None, can.uid):
        yield f"user {user}: this node runs as user {can.uid}"


def _is_root(path: str) -> bool:
    return bool(path) and os.path.normpath(path) in ("/", "//")


def _is_device(path: str) -> bool:
    mode = os.stat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _capabilities(spec: ContainerSpec, can: Abilities) -> list[str]:
    if spec.privileged:
        return [EVERY]
    dropped, added = {*map(_plain, spec.capabilities_dropped)}, {*map(_plain, spec.capabilities_added)}
    kept = set() if EVERY in dropped else {*CAPABILITIES} - dropped
    if "devices" in can.lacks:
        kept -= {"MKNOD"}  # nothing else would keep it from a device that it makes the node of
    return sorted(kept | added)


def _plain(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _node(node: cdi.DeviceNode) -> dict[str, Any]:
    return msgspec.structs.asdict(node)


def _mounts(spec: ContainerSpec) -> list[dict[str, Any]]:
    """Those that lie less deep come first."""
    found = [
        {"source": one.host_path, "target": one.container_path, "kind": one.type, "options": one.options}
        for one in spec.edits.mounts
    ]
    for mount in spec.mounts:
        options = [*(["ro"] if mount.read_only else []), *_PROPAGATIONS[mount.propagation]]
        found.append(
            {"source": mount.host_path, "target": mount.container_path, "kind": "", "options": options}
        )
    return sorted(found, key=lambda one: len(os.path.normpath(str(one["target"])).split("/")))


def _hooks(hooks: Iterable[cdi.Hook]) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in hooks:
        found.setdefault(one.hook_name, []).append(msgspec.structs.asdict(one))
    return found


def _first(*found: int | None) -> int | None:
    return next((one for one in found if one is not None), None)
