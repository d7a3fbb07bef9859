"""A CDI spec as values, and its JSON: every field that versions 0.3.0 to 1.0.0 have."""

from typing import Final

import msgspec
from msgspec import Struct, field

VERSIONS: Final = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0")
"""What container runtimes of today read. Later ones are refused by them, and so by us."""


class _Value(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Unknown fields are refused: container runtimes refuse them too, and say less."""


class DeviceNode(_Value, frozen=True):
    path: str  # in the container
    host_path: str = ""  # on the machine; empty: the same. Since 0.5.0
    type: str = ""  # b, c, u or p; empty: what is there on the machine
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""  # of r, w and m; empty: all
    uid: int | None = None
    gid: int | None = None


class Mount(_Value, frozen=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""  # since 0.4.0


class Hook(_Value, frozen=True):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class IntelRdt(_Value, frozen=True):
    """Since 0.7.0."""

    clos_id: str = field(default="", name="closID")
    l3_cache_schema: str = field(default="", name="l3CacheSchema")
    mem_bw_schema: str = ""
    enable_cmt: bool = field(default=False, name="enableCMT")
    enable_mbm: bool = field(default=False, name="enableMBM")


class ContainerEdits(_Value, frozen=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[int, ...] = ()  # since 0.7.0


class Device(_Value, frozen=True):
    name: str
    container_edits: ContainerEdits
    annotations: dict[str, str] = field(default_factory=dict)  # since 0.6.0


class Spec(_Value, frozen=True):
    cdi_version: str
    kind: str  # vendor.com/class
    devices: tuple[Device, ...]
    container_edits: ContainerEdits = ContainerEdits()  # for every container with a device of this spec
    annotations: dict[str, str] = field(default_factory=dict)  # since 0.6.0


def encode(spec: Spec) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def decode(data: bytes | str, *, yaml: bool = False) -> Spec:
    """Raises msgspec.MsgspecError, which names the place."""
    if yaml:
        return msgspec.yaml.decode(data, type=Spec)
    return msgspec.json.decode(data, type=Spec)
