"""NVIDIA's management library, as far as this driver needs it: which GPUs there are, and what befalls
them.

The library is the driver's own (`libnvidia-ml.so.1`), called through ctypes: a Python package for it
would wrap the same thirty functions, and would have to be there before the machine is looked at.
Structures are written as NVIDIA documents them. Beside the library stands what it does not say: device
nodes (`/dev`, `/proc`) and how GPUs are attached (`/sys`); `driverfiles` finds the driver's own files.
"""

import ctypes
import logging
import os
import stat
from collections.abc import Callable, Iterator
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong, c_void_p
from pathlib import Path
from typing import Any, Final

from .. import pcie
from . import driverfiles
from .backend import Lost, NotThere, Opened, Xid
from .inventory import Gpu, Inventory, Node, Placement, Profile
from .published import Partition

log = logging.getLogger(__name__)

LIBRARY: Final = "libnvidia-ml.so.1"
DEVICES, PROC, PCI = Path("/dev"), Path("/proc"), Path("/sys/bus/pci/devices")
CONTROL_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_TEXT: Final = 96
_PROFILES_MAX: Final = 32  # NVML has seventeen today, and says of the others that there are none
_SUCCESS, _NOT_SUPPORTED, _TIMEOUT, _GPU_IS_LOST = 0, 3, 10, 15
_INVALID_ARGUMENT, _NOT_FOUND = 2, 6
_XID_EVENTS: Final = 0x8
_EVENTS_MAX: Final = 100  # in one look
_BRANDS: Final = (
    *("Unknown", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan", "NvidiaVApps", "NvidiaVPC"),
    *("NvidiaVCS", "NvidiaVWS", "NvidiaCloudGaming", "QuadroRTX", "NvidiaRTX", "Nvidia", "GeForceRTX"),
    "TitanRTX",
)
_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Pci(ctypes.Structure):
    _fields_ = (
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device_id", c_uint),
        ("pci_subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("device", c_void_p),
        ("type", c_ulonglong),
        ("data", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    )


class _Placement(ctypes.Structure):
    _fields_ = (("start", c_uint), ("size", c_uint))


class _Profile(ctypes.Structure):
    """The second version, which has the name."""

    _fields_ = (
        ("version", c_uint),
        ("id", c_uint),
        ("is_p2p_supported", c_uint),
        ("slices", c_uint),
        ("instances", c_uint),
        ("multiprocessors", c_uint),
        ("copy_engines", c_uint),
        ("decoders", c_uint),
        ("encoders", c_uint),
        ("jpeg_engines", c_uint),
        ("ofa_engines", c_uint),
        ("memory_mib", c_ulonglong),
        ("name", c_char * _TEXT),
    )


class _InstanceInfo(ctypes.Structure):
    _fields_ = (("device", c_void_p), ("id", c_uint), ("profile", c_uint), ("placement", _Placement))


class _ComputeProfile(ctypes.Structure):
    _fields_ = (
        *((name, c_uint) for name in ("id", "slices", "instances", "multiprocessors")),
        *((name, c_uint) for name in ("copy_engines", "decoders", "encoders", "jpeg_engines", "ofa_engines")),
    )


class _ComputeInfo(ctypes.Structure):
    _fields_ = (
        ("device", c_void_p),
        ("gpu_instance", c_void_p),
        ("id", c_uint),
        ("profile", c_uint),
        ("placement", _Placement),
    )


class NvmlError(OSError):
    """A call that failed. `code` is NVML's own."""

    def __init__(self, call: str, code: int, why: str) -> None:
        super().__init__(f"{call}: {why} (NVML's error {code})")
        self.code = code


def loaded() -> Any:
    """Raises NotThere."""
    tried = [LIBRARY, *(str(folder / LIBRARY) for folder in driverfiles.FOLDERS)]
    for name in tried:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NotThere(f"{LIBRARY} was not found: this machine has no NVIDIA driver")


class Nvml:
    """A machine with GPUs. Raises NotThere when it has none."""

    def __init__(self, library: Any = None) -> None:
        self._library = loaded() if library is None else library
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        try:
            self._call("nvmlInit_v2")
        except NvmlError as failed:
            raise NotThere(f"NVIDIA's driver does not answer: {failed}") from None
        self._handles = {self._uuid(handle): handle for handle in self._devices()}
        if not self._handles:
            raise NotThere("NVIDIA's driver is there, and no GPU")
        self._events = self._listening()

    # -- what there is --------------------------------------------------------------------------

    def inventory(self) -> Inventory:
        cuda = c_int()
        self._call("nvmlSystemGetCudaDriverVersion_v2", byref(cuda))
        gpus = (self._gpu(at, uuid, handle) for at, (uuid, handle) in enumerate(self._handles.items()))
        return Inventory(
            self._text("nvmlSystemGetDriverVersion"),
            f"{cuda.value // 1000}.{cuda.value % 1000 // 10}",
            tuple(gpus),
            tuple(node for name in CONTROL_NODES if (node := _node(DEVICES / name)) is not None),
            driverfiles.libraries(),
            driverfiles.programs(),
            _capabilities_major(),
        )

    def _devices(self) -> Iterator[c_void_p]:
        for at in range(self._number("nvmlDeviceGetCount_v2")):
            handle = c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", c_uint(at), byref(handle))
            yield handle

    def _gpu(self, index: int, uuid: str, handle: c_void_p) -> Gpu:
        major, minor, memory, pci = c_int(), c_int(), _Memory(), _Pci()
        self._call("nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor))
        self._call("nvmlDeviceGetMemoryInfo", handle, byref(memory))
        self._call("nvmlDeviceGetPciInfo_v3", handle, byref(pci))
        bus_id = _bus_id(pci)
        number = self._known("nvmlDeviceGetMinorNumber", handle, index)
        brand = self._known("nvmlDeviceGetBrand", handle, 0)
        is_mig = self._is_mig(handle)
        return Gpu(
            index,
            number,
            uuid,
            self._text("nvmlDeviceGetName", handle),
            _BRANDS[brand] if brand < len(_BRANDS) else _BRANDS[0],
            _ARCHITECTURES.get(self._known("nvmlDeviceGetArchitecture", handle, 0), "Unknown"),
            f"{major.value}.{minor.value}",
            memory.total,
            bus_id,
            pcie.root(PCI / bus_id),
            _numa_node(bus_id),
            _node(DEVICES / f"nvidia{number}"),
            is_mig,
            tuple(self._profiles(handle)) if is_mig else (),
        )

    def _is_mig(self, handle: c_void_p) -> bool:
        now, pending = c_uint(), c_uint()
        try:
            self._call("nvmlDeviceGetMigMode", handle, byref(now), byref(pending))
        except NvmlError:  # it does not know the mode
            return False
        return bool(now.value)

    def _profiles(self, handle: c_void_p) -> Iterator[Profile]:
        for number in range(_PROFILES_MAX):
            found = _Profile(version=ctypes.sizeof(_Profile) | 2 << 24)
            try:
                self._call("nvmlDeviceGetGpuInstanceProfileInfoV", handle, c_uint(number), byref(found))
            except NvmlError as failed:
                if failed.code in (_NOT_SUPPORTED, _INVALID_ARGUMENT, _NOT_FOUND):
                    continue
                raise
            yield Profile(
                found.id,
                found.name.decode().removeprefix("MIG "),
                found.slices,
                found.instances,
                found.memory_mib,
                found.multiprocessors,
                found.copy_engines,
                found.decoders,
                found.encoders,
                found.jpeg_engines,
                found.ofa_engines,
                tuple(self._placements(handle, found.id)),
            )

    def _placements(self, handle: c_void_p, profile: int) -> Iterator[Placement]:
        call, count = "nvmlDeviceGetGpuInstancePossiblePlacements_v2", c_uint()
        self._call(call, handle, c_uint(profile), None, byref(count))
        found = (_Placement * count.value)()
        self._call(call, handle, c_uint(profile), found, byref(count))
        yield from (Placement(one.start, one.size) for one in found[: count.value])

    # -- what befalls it ------------------------------------------------------------------------

    def _listening(self) -> c_void_p | None:
        """None: this machine tells of no errors, as virtual ones do. GPUs can be had all the same."""
        events = c_void_p()
        try:
            self._call("nvmlEventSetCreate", byref(events))
            for handle in self._handles.values():
                self._call("nvmlDeviceRegisterEvents", handle, c_ulonglong(_XID_EVENTS), events)
        except NvmlError as failed:
            log.warning("critical errors of GPUs will not be heard of: %s", failed)
            return None
        return events

    def happened(self) -> tuple[Xid | Lost, ...]:
        """What the library has kept for us, and whether every GPU still answers."""
        lost = (Lost(uuid) for uuid, handle in self._handles.items() if self._is_lost(handle))
        errors = self._errors(self._events) if self._events is not None else ()
        return (*errors, *lost)

    def _errors(self, events: c_void_p) -> Iterator[Xid]:
        uuids = {handle.value: uuid for uuid, handle in self._handles.items()}
        for _ in range(_EVENTS_MAX):
            event = _Event()
            try:
                self._call("nvmlEventSetWait_v2", events, byref(event), c_uint(0))
            except NvmlError as failed:
                if failed.code in (_TIMEOUT, _GPU_IS_LOST):
                    return
                raise
            if event.type == _XID_EVENTS and event.device in uuids:
                yield Xid(uuids[event.device], event.data)

    def _is_lost(self, handle: c_void_p) -> bool:
        try:
            self._call("nvmlDeviceGetMemoryInfo", handle, byref(_Memory()))
        except NvmlError as failed:
            return failed.code == _GPU_IS_LOST
        return False

    # -- partitions -----------------------------------------------------------------------------

    def cut(self, wanted: Partition) -> Opened:
        """The partition, made unless it is there."""
        handle = self._handles[wanted.gpu.uuid]
        instance = self._instance(handle, wanted)
        if instance is None:
            instance, place = c_void_p(), _Placement(wanted.placement.start, wanted.placement.size)
            self._call(
                "nvmlDeviceCreateGpuInstanceWithPlacement",
                handle,
                c_uint(wanted.profile.id),
                byref(place),
                byref(instance),
            )
        compute = next(self._computing(instance, wanted), None)
        if compute is None:
            compute = c_void_p()
            profile = self._whole(instance, wanted).id
            self._call("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(profile), byref(compute))
        info, inner = _InstanceInfo(), _ComputeInfo()
        self._call("nvmlGpuInstanceGetInfo", instance, byref(info))
        self._call("nvmlComputeInstanceGetInfo_v2", compute, byref(inner))
        return Opened(_capability_minors(wanted.gpu.minor, info.id, inner.id))

    def merge(self, wanted: Partition) -> None:
        """What is not there need not be taken away."""
        instance = self._instance(self._handles[wanted.gpu.uuid], wanted)
        if instance is not None:
            for compute in self._computing(instance, wanted):
                self._call("nvmlComputeInstanceDestroy", compute)
            self._call("nvmlGpuInstanceDestroy", instance)

    def _instance(self, handle: c_void_p, wanted: Partition) -> c_void_p | None:
        """What is at the partition's place."""
        for one in self._several(
            "nvmlDeviceGetGpuInstances", handle, wanted.profile.id, wanted.profile.instances
        ):
            info = _InstanceInfo()
            self._call("nvmlGpuInstanceGetInfo", one, byref(info))
            if info.placement.start == wanted.placement.start:
                return one
        return None

    def _computing(self, instance: c_void_p, wanted: Partition) -> Iterator[c_void_p]:
        whole = self._whole(instance, wanted)
        yield from self._several(
            "nvmlGpuInstanceGetComputeInstances", instance, whole.id, max(1, whole.instances)
        )

    def _whole(self, instance: c_void_p, wanted: Partition) -> _ComputeProfile:
        """The compute profile that takes all of a GPU instance: it has as many slices."""
        for number in range(_PROFILES_MAX):
            found = _ComputeProfile()
            try:
                self._call(
                    "nvmlGpuInstanceGetComputeInstanceProfileInfo",
                    instance,
                    c_uint(number),
                    c_uint(0),
                    byref(found),
                )
            except NvmlError as failed:
                if failed.code not in (_NOT_SUPPORTED, _INVALID_ARGUMENT, _NOT_FOUND):
                    raise
                continue
            if found.slices == wanted.profile.slices:
                return found
        raise NotThere(f"{wanted.name}: NVML has no compute profile of {wanted.profile.slices} slices")

    def _several(self, call: str, of: c_void_p, profile: int, most: int) -> Iterator[c_void_p]:
        found, count = (c_void_p * most)(), c_uint(most)
        self._call(call, of, c_uint(profile), found, byref(count))
        yield from (c_void_p(one) for one in found[: count.value])

    # -- time -----------------------------------------------------------------------------------

    def slice_time(self, gpu: Gpu, interval: int) -> None:
        """The library has no call for it, and its command has."""
        program = next((one for one in driverfiles.programs() if one.endswith("/nvidia-smi")), "")
        if program:
            driverfiles.slice_time(program, gpu.uuid, interval)
        elif interval:
            raise NotThere(f"{gpu.name}: slicing time takes nvidia-smi, and this machine has none")

    # -- calls ----------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            function: Callable[..., int] = getattr(self._library, name)
        except AttributeError:
            raise NvmlError(
                name, _NOT_SUPPORTED, "this version of NVIDIA's driver has no such call"
            ) from None
        code = function(*arguments)
        if code != _SUCCESS:
            why = self._library.nvmlErrorString(c_int(code)) or b"unknown"
            raise NvmlError(name, code, why.decode())

    def _text(self, name: str, *of: c_void_p) -> str:
        found = ctypes.create_string_buffer(_TEXT)
        self._call(name, *of, found, c_uint(_TEXT))
        return found.value.decode()

    def _uuid(self, handle: c_void_p) -> str:
        return self._text("nvmlDeviceGetUUID", handle)

    def _known(self, name: str, of: c_void_p, otherwise: int) -> int:
        """What older drivers and virtual machines do not say."""
        try:
            return self._number(name, of)
        except NvmlError as failed:
            if failed.code != _NOT_SUPPORTED:
                raise
            return otherwise

    def _number(self, name: str, *of: c_void_p) -> int:
        found = c_uint()
        self._call(name, *of, byref(found))
        return found.value


# -- what the machine says ------------------------------------------------------------------------


def _node(path: Path) -> Node | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISCHR(found.st_mode):
        return None
    return Node(str(path), os.major(found.st_rdev), os.minor(found.st_rdev))


def _bus_id(pci: _Pci) -> str:
    """As Linux writes it: the domain has four digits there and eight in NVML."""
    function = pci.bus_id.decode().rpartition(".")[2] or "0"
    return f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.{function}"


def _numa_node(bus_id: str) -> int | None:
    try:
        found = int((PCI / bus_id / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return found if found >= 0 else None  # -1: the machine has no such thing


def _capabilities_major() -> int:
    try:
        lines = (PROC / "devices").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[0]) for line in lines if line.split()[1:] == ["nvidia-caps"]), 0)


def _capability_minors(gpu: int, instance: int, compute: int) -> tuple[int, ...]:
    """Of the nodes that open a partition, as the driver lists them: `gpu0/gi1/ci0/access 12`."""
    wanted = (f"gpu{gpu}/gi{instance}/access", f"gpu{gpu}/gi{instance}/ci{compute}/access")
    listed = dict(
        line.rsplit(maxsplit=1)
        for line in (PROC / "driver/nvidia-caps/mig-minors").read_text().splitlines()
        if line.strip()
    )
    return tuple(int(listed[one]) for one in wanted)
