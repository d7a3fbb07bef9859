"""NVIDIA's library, called as it is: here by a stand-in that answers through the same pointers."""

import ctypes
from collections import deque

import pytest

from allot.drivers.nvidia import NotThere, Nvml, nvml
from allot.drivers.nvidia.backend import Lost, Xid
from allot.drivers.nvidia.published import partitions
from drivers.gpus import PROFILES

TIMEOUT, LOST, NOT_SUPPORTED = 10, 15, 3


class Library:
    """One H200, in MIG mode if asked. Each function writes where its pointers lead and returns a code."""

    def __init__(self, *, gpus=1, mig=False):
        self.gpus, self.mig = gpus, mig
        self.events = deque()
        self.lost = set()
        self.instances = {}  # handle -> (profile, start, computes)
        self.nvmlErrorString = self._error_string  # a function whose restype can be set

    class _Function:
        def __init__(self, call):
            self.call = call

        def __call__(self, *arguments):
            return self.call(*arguments)

    @property
    def _error_string(self):
        return Library._Function(lambda code: {LOST: b"GPU is lost"}.get(code.value, b"something"))

    def nvmlInit_v2(self):
        return 0

    def nvmlSystemGetDriverVersion(self, text, length):
        text.value = b"570.148.08"
        return 0

    def nvmlSystemGetCudaDriverVersion_v2(self, version):
        version._obj.value = 12080
        return 0

    def nvmlDeviceGetCount_v2(self, count):
        count._obj.value = self.gpus
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        handle._obj.value = 0x1000 + index.value
        return 0

    def nvmlDeviceGetUUID(self, handle, text, length):
        text.value = f"GPU-{handle.value - 0x1000}".encode()
        return 0

    def nvmlDeviceGetName(self, handle, text, length):
        text.value = b"NVIDIA H200"
        return 0

    def nvmlDeviceGetBrand(self, handle, brand):
        brand._obj.value = 14
        return 0

    def nvmlDeviceGetArchitecture(self, handle, architecture):
        architecture._obj.value = 9
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, handle, major, minor):
        major._obj.value, minor._obj.value = 9, 0
        return 0

    def nvmlDeviceGetMinorNumber(self, handle, minor):
        minor._obj.value = handle.value - 0x1000
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        if handle.value in self.lost:
            return LOST
        memory._obj.total = 150754820096
        return 0

    def nvmlDeviceGetPciInfo_v3(self, handle, pci):
        pci._obj.domain, pci._obj.bus, pci._obj.device = 0, 0xC8, 0
        pci._obj.bus_id = b"00000000:C8:00.0"
        return 0

    def nvmlDeviceGetMigMode(self, handle, now, pending):
        now._obj.value = int(self.mig)
        return 0

    def nvmlDeviceGetGpuInstanceProfileInfoV(self, handle, number, found):
        if number.value >= len(PROFILES):
            return NOT_SUPPORTED
        assert found._obj.version == 0x02000098, "as NVIDIA's header has it"
        one = PROFILES[number.value]
        found._obj.id, found._obj.name = one.id, f"MIG {one.name}".encode()
        for name in ("slices", "instances", "memory_mib", "multiprocessors", "copy_engines", "decoders"):
            setattr(found._obj, name, getattr(one, name))
        for name in ("encoders", "jpeg_engines", "ofa_engines"):
            setattr(found._obj, name, getattr(one, name))
        return 0

    def nvmlDeviceGetGpuInstancePossiblePlacements_v2(self, handle, profile, found, count):
        (one,) = [one for one in PROFILES if one.id == profile.value]
        if found is not None:
            for at, place in enumerate(one.placements):
                found[at].start, found[at].size = place.start, place.size
        count._obj.value = len(one.placements)
        return 0

    # -- events

    def nvmlEventSetCreate(self, events):
        events._obj.value = 0x77
        return 0

    def nvmlDeviceRegisterEvents(self, handle, types, events):
        assert (types.value, events.value) == (8, 0x77)
        return 0

    def nvmlEventSetWait_v2(self, events, event, timeout):
        if not self.events:
            return TIMEOUT
        event._obj.device, event._obj.type, event._obj.data = self.events.popleft()
        return 0

    # -- partitions

    def nvmlDeviceGetGpuInstances(self, handle, profile, found, count):
        own = [one for one, known in self.instances.items() if known[0] == profile.value]
        for at, one in enumerate(own):
            found[at] = one
        count._obj.value = len(own)
        return 0

    def nvmlDeviceCreateGpuInstanceWithPlacement(self, handle, profile, place, instance):
        instance._obj.value = 0x2000 + len(self.instances)
        self.instances[instance._obj.value] = (profile.value, place._obj.start, [])
        return 0

    def nvmlGpuInstanceGetInfo(self, instance, info):
        profile, start, _ = self.instances[instance.value]
        info._obj.id, info._obj.profile = instance.value - 0x2000 + 1, profile
        info._obj.placement.start = start
        return 0

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(self, instance, number, engines, found):
        if number.value not in (0, 2):
            return NOT_SUPPORTED
        found._obj.id, found._obj.slices, found._obj.instances = number.value, number.value + 1, 1
        return 0

    def nvmlGpuInstanceGetComputeInstances(self, instance, profile, found, count):
        own = self.instances[instance.value][2]
        for at, one in enumerate(own):
            found[at] = one
        count._obj.value = len(own)
        return 0

    def nvmlGpuInstanceCreateComputeInstance(self, instance, profile, compute):
        assert profile.value == 2, "the profile of three slices"
        compute._obj.value = 0x1000 + instance.value
        self.instances[instance.value][2].append(compute._obj.value)
        return 0

    def nvmlComputeInstanceGetInfo_v2(self, compute, info):
        info._obj.id = 0
        return 0

    def nvmlComputeInstanceDestroy(self, compute):
        (computes,) = [own for _, _, own in self.instances.values() if compute.value in own]
        computes.remove(compute.value)
        return 0

    def nvmlGpuInstanceDestroy(self, instance):
        assert not self.instances.pop(instance.value)[2], "its compute instances go first"
        return 0


def test_structures_are_as_long_as_nvidias():
    """By their header, on a machine of 64 bits: a byte more or less, and every field behind it is wrong."""
    sizes = {one: ctypes.sizeof(getattr(nvml, one)) for one in ("_Memory", "_Pci", "_Event", "_Profile")}
    assert sizes == {"_Memory": 24, "_Pci": 68, "_Event": 32, "_Profile": 0x98}
    assert ctypes.sizeof(nvml._InstanceInfo) == 24 and ctypes.sizeof(nvml._ComputeInfo) == 32


def test_what_the_library_says_is_the_inventory():
    found = Nvml(Library()).inventory()
    (gpu,) = found.gpus
    assert (found.driver_version, found.cuda_version) == ("570.148.08", "12.8")
    assert (gpu.name, gpu.uuid, gpu.product_name, gpu.brand) == ("gpu-0", "GPU-0", "NVIDIA H200", "Nvidia")
    assert (gpu.architecture, gpu.compute_capability) == ("Hopper", "9.0")
    assert (gpu.memory_bytes, gpu.pci_bus_id, gpu.mig) == (150754820096, "0000:c8:00.0", False)


def test_profiles_are_read_where_mig_mode_is_on():
    (gpu,) = Nvml(Library(mig=True)).inventory().gpus
    assert gpu.mig and gpu.profiles == PROFILES


def test_errors_and_losses_are_heard_of_once_and_as_long_as_they_last():
    library = Library(gpus=2)
    found = Nvml(library)
    assert found.happened() == ()
    library.events += [(0x1001, 8, 79), (0x1000, 1, 0), (0x1000, 8, 48)]
    assert found.happened() == (Xid("GPU-1", 79), Xid("GPU-0", 48)), "other events are not ours"
    assert found.happened() == ()
    library.lost.add(0x1001)
    assert found.happened() == found.happened() == (Lost("GPU-1"),)


def test_a_partition_is_made_once_and_goes_whole(tmp_path, monkeypatch):
    minors = tmp_path / "driver/nvidia-caps/mig-minors"
    minors.parent.mkdir(parents=True)
    lines = ["config 1", "monitor 2", "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13"]
    minors.write_text("\n".join([*lines, "gpu0/gi2/access 21", "gpu0/gi2/ci0/access 22", ""]))
    monkeypatch.setattr(nvml, "PROC", tmp_path)
    library = Library(mig=True)
    found = Nvml(library)
    half, other = [one for one in partitions(found.inventory().gpus[0]) if one.profile.name == "3g.71gb"]
    assert found.cut(half).capability_minors == (12, 13)
    assert found.cut(half).capability_minors == (12, 13), "asked for again, it is the same"
    assert [*library.instances.values()] == [(9, 0, [0x3000])]
    assert found.cut(other).capability_minors == (21, 22), "beside it, and not in its place"
    found.merge(half)
    found.merge(half)
    assert [*library.instances.values()] == [(9, 4, [0x3001])]
    found.merge(other)
    assert library.instances == {}


def test_a_failure_names_the_call_and_the_reason():
    library = Library()
    library.nvmlDeviceGetName = lambda *arguments: LOST
    with pytest.raises(OSError, match=r"nvmlDeviceGetName: GPU is lost \(NVML's error 15\)"):
        Nvml(library).inventory()


def test_a_driver_that_does_not_answer_and_one_without_gpus_are_told_apart():
    silent = Library()
    silent.nvmlInit_v2 = lambda: 9
    with pytest.raises(NotThere, match="NVIDIA's driver does not answer: nvmlInit_v2"):
        Nvml(silent)
    with pytest.raises(NotThere, match="and no GPU"):
        Nvml(Library(gpus=0))


def test_a_machine_that_tells_of_no_errors_has_its_gpus_all_the_same(caplog):
    library = Library()
    library.nvmlEventSetCreate = lambda events: NOT_SUPPORTED
    library.nvmlDeviceGetMinorNumber = library.nvmlDeviceGetBrand = lambda handle, number: NOT_SUPPORTED
    found = Nvml(library)
    assert [(gpu.name, gpu.brand) for gpu in found.inventory().gpus] == [("gpu-0", "Unknown")]
    assert "critical errors of GPUs will not be heard of: nvmlEventSetCreate" in caplog.text
    library.lost.add(0x1000)
    assert found.happened() == (Lost("GPU-0"),)


def test_an_older_library_without_mig_has_whole_gpus():
    class Older(Library):
        nvmlDeviceGetMigMode = property(doc="it has no such symbol")

    assert Nvml(Older()).inventory().gpus[0].mig is False
