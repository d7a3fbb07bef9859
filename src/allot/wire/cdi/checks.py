"""What is wrong with a spec, each fault with its place; and the oldest version that has what it uses.

A runtime skips a spec that it finds fault with, and later says only that a device is unresolvable.
So whoever writes a spec wants to know before.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from .names import device_problem, kind_parts
from .spec import VERSIONS, ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, Spec

HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NODE_TYPES: Final = ("", "b", "c", "u", "p")
NO_PERMISSIONS: Final = "none"
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024
ID_MAX: Final = 2**32 - 1

_ANNOTATION = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)


class InvalidSpec(ValueError):
    """Every fault, one a line."""

    def __init__(self, where: str, faults: tuple[str, ...]) -> None:
        super().__init__(f"{where}: " + "; ".join(faults))
        self.faults = faults


def check(spec: Spec, where: str = "CDI spec") -> None:
    """Raises InvalidSpec unless container runtimes would take it."""
    faults = tuple(_faults(spec))
    if faults:
        raise InvalidSpec(where, faults)


def with_minimum_version(spec: Spec) -> Spec:
    """So that the oldest runtimes that can do it, do."""
    return replace(spec, cdi_version=minimum_version(spec))


def minimum_version(spec: Spec) -> str:
    return max((version for version, uses in _SINCE if uses(spec)), default=VERSIONS[0])


_SINCE: Final[tuple[tuple[str, Callable[[Spec], bool]], ...]] = (
    ("0.4.0", lambda spec: any(mount.type for edits in _edits(spec) for mount in edits.mounts)),
    ("0.5.0", lambda spec: any(node.host_path for edits in _edits(spec) for node in edits.device_nodes)),
    ("0.5.0", lambda spec: any(device.name[:1].isdigit() for device in spec.devices)),
    ("0.6.0", lambda spec: bool(spec.annotations) or any(device.annotations for device in spec.devices)),
    ("0.6.0", lambda spec: "." in spec.kind.partition("/")[2]),
    ("0.7.0", lambda spec: any(edits.intel_rdt or edits.additional_gids for edits in _edits(spec))),
)


def _edits(spec: Spec) -> Iterator[ContainerEdits]:
    yield spec.container_edits
    yield from (device.container_edits for device in spec.devices)


def _faults(spec: Spec) -> Iterator[str]:
    if spec.cdi_version.removeprefix("v") not in VERSIONS:
        yield f"cdiVersion: {spec.cdi_version!r} is not one of {', '.join(VERSIONS)}"
    elif spec.cdi_version.removeprefix("v") < minimum_version(spec):
        yield f"cdiVersion: {spec.cdi_version} does not have what the spec uses, {minimum_version(spec)} does"
    try:
        kind_parts(spec.kind)
    except ValueError as fault:
        yield f"kind: {fault}"
    yield from _annotations("annotations", spec.annotations)
    yield from _edits_faults("containerEdits", spec.container_edits)
    seen: set[str] = set()
    for at, device in enumerate(spec.devices):
        where = f"devices[{at}]"
        problem = device_problem(device.name)
        if problem:
            yield f"{where}.name: {problem}"
        if device.name in seen:
            yield f"{where}.name: there are two devices with the name {device.name!r}"
        seen.add(device.name)
        yield from _annotations(f"{where}.annotations", device.annotations)
        if device.container_edits == ContainerEdits():
            yield f"{where}.containerEdits: a device without edits gives a container nothing"
        yield from _edits_faults(f"{where}.containerEdits", device.container_edits)


def _edits_faults(where: str, edits: ContainerEdits) -> Iterator[str]:
    yield from _env(f"{where}.env", edits.env)
    for at, node in enumerate(edits.device_nodes):
        yield from (f"{where}.deviceNodes[{at}].{fault}" for fault in _node(node))
    for at, hook in enumerate(edits.hooks):
        yield from (f"{where}.hooks[{at}].{fault}" for fault in _hook(hook))
    for at, mount in enumerate(edits.mounts):
        yield from (f"{where}.mounts[{at}].{fault}" for fault in _mount(mount))
    if edits.intel_rdt is not None:
        yield from (f"{where}.intelRdt.{fault}" for fault in _rdt(edits.intel_rdt))
    for at, gid in enumerate(edits.additional_gids):
        yield from _id(f"{where}.additionalGids[{at}]", gid)


def _env(where: str, variables: tuple[str, ...]) -> Iterator[str]:
    for at, variable in enumerate(variables):
        if variable.find("=") <= 0:
            yield f"{where}[{at}]: {variable!r} is not of the form NAME=VALUE"
        elif "\0" in variable:
            yield f"{where}[{at}]: a variable may not contain a zero byte"


def _node(node: DeviceNode) -> Iterator[str]:
    if not node.path:
        yield "path: must not be empty"
    if node.type not in NODE_TYPES:
        yield f"type: {node.type!r} is not one of b, c, u, p"
    if node.major < 0 or node.minor < 0:
        yield f"major, minor: {node.major}:{node.minor} must not be negative"
    if node.permissions != NO_PERMISSIONS and node.permissions.strip("rwm"):
        yield f"permissions: {node.permissions!r} has more than the letters r, w and m"
    if node.file_mode is not None and not 0 <= node.file_mode <= ID_MAX:
        yield f"fileMode: {node.file_mode} is not a file's mode"
    yield from _id("uid", node.uid)
    yield from _id("gid", node.gid)


def _id(where: str, value: int | None) -> Iterator[str]:
    if value is not None and not 0 <= value <= ID_MAX:
        yield f"{where}: {value} is not between 0 and {ID_MAX}"


def _hook(hook: Hook) -> Iterator[str]:
    if hook.hook_name not in HOOKS:
        yield f"hookName: {hook.hook_name!r} is not one of {', '.join(HOOKS)}"
    if not hook.path:
        yield "path: must not be empty"
    if hook.timeout is not None and hook.timeout <= 0:
        yield f"timeout: {hook.timeout} is not above zero"
    yield from _env("env", hook.env)


def _mount(mount: Mount) -> Iterator[str]:
    if not mount.host_path:
        yield "hostPath: must not be empty"
    if not mount.container_path:
        yield "containerPath: must not be empty"


def _rdt(rdt: IntelRdt) -> Iterator[str]:
    name = rdt.clos_id
    if name != "/" and (len(name) >= 4096 or name in (".", "..") or "/" in name or "\n" in name):
        yield f"closID: {name!r} cannot be the name of a directory"


def _annotations(where: str, annotations: dict[str, str]) -> Iterator[str]:
    for name in annotations:
        if not _ANNOTATION.fullmatch(name):
            yield f"{where}: {name!r} is not a name for an annotation"
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > ANNOTATIONS_BYTES_MAX:
        yield f"{where}: {size} bytes are over the limit of {ANNOTATIONS_BYTES_MAX}"
