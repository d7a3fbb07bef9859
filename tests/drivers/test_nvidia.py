"""NVIDIA's GPUs, from a recording: what is published, what containers get, what troubles do."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

from allot.base import MachineFiles
from allot.cli.main import main
from allot.driver import Node, NotUsable, Places, Surroundings, Taint, running
from allot.drivers import nvidia
from allot.drivers.nvidia import driverfiles, sharing, troubles
from allot.drivers.nvidia.backend import Lost, Well, Xid
from allot.drivers.nvidia.inventory import semantic
from allot.drivers.nvidia.published import partitions, pool
from allot.wire import UnixSockets, health
from driver.world import NODE, tell, until
from drivers.asking import prepared, unprepared
from drivers.gpus import PROFILES, RECORDING, h200, in_mig_mode
from e2e.process import ServerProcess

GPU = h200().gpus[0]


# -- what is published ----------------------------------------------------------------------------


def test_a_gpu_has_the_attributes_of_nvidias_own_driver():
    (device,) = pool(h200(), "n", {}).devices
    fields = device.fields()
    assert fields["name"] == "gpu-0"
    assert fields["capacity"] == {"memory": {"value": "150754820096"}}
    assert fields["attributes"] == {
        "type": {"string": "gpu"},
        "uuid": {"string": GPU.uuid},
        "index": {"int": 0},
        "minor": {"int": 0},
        "productName": {"string": "NVIDIA H200"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.159.4"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:00:06.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }


def test_where_memory_is_near_is_published_too():
    several = replace(h200(), gpus=(replace(GPU, numa_node=1),))
    attributes = pool(several, "n", {}).devices[0].fields()["attributes"]
    assert attributes["resource.kubernetes.io/numaNode"] == {"int": 1}


def test_what_is_not_known_is_not_published():
    bare = replace(h200(), gpus=(replace(GPU, pcie_root="", numa_node=None),))
    names = pool(bare, "n", {}).devices[0].attributes.keys()
    assert not {"resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"} & names


@pytest.mark.parametrize(
    ("theirs", "ours"), [("535.104.05", "535.104.5"), ("12.8", "12.8.0"), ("9", "9.0.0"), ("", "0.0.0")]
)
def test_versions_are_semantic_ones(theirs, ours):
    assert semantic(theirs) == ours


def test_in_mig_mode_partitions_take_counters_of_their_gpu():
    published = pool(in_mig_mode(), "n", {})
    assert [one.name for one in published.devices][6:9] == [
        "gpu-0-mig-1g18gb-19-6",
        "gpu-0-mig-1g18gb-me-20-0",
        "gpu-0-mig-1g18gb-me-20-1",
    ]
    counters = published.counters["gpu-0-counter-set"]
    assert counters["memory"] == "143384Mi" and counters["multiprocessors"] == "132"
    assert counters["ofa-engines"] == "1", "one partition with all engines, as the profile says"
    assert [name for name in counters if name.startswith("memory-slice-")] == [
        f"memory-slice-{at}" for at in range(8)
    ]
    half = next(one for one in published.devices if one.name == "gpu-0-mig-3g71gb-9-4")
    assert half.attributes["profile"] == "3g.71gb" and half.attributes["parentUUID"] == GPU.uuid
    assert half.capacity["memory"] == "71424Mi"
    assert [*half.consumes["gpu-0-counter-set"]][-4:] == [f"memory-slice-{at}" for at in (4, 5, 6, 7)]


def test_partitions_that_fit_together_on_the_gpu_fit_together_in_its_counters():
    """And those that overlap do not: else the scheduler would hand out what NVML refuses."""
    published = pool(in_mig_mode(), "n", {})
    has = {name: _amount(value) for name, value in published.counters["gpu-0-counter-set"].items()}
    by_name = {one.name: one.consumes["gpu-0-counter-set"] for one in published.devices}

    def fits(*names):
        drawn = {name: sum(_amount(by_name[one].get(name, "0")) for one in names) for name in has}
        return all(drawn[name] <= has[name] for name in has)

    assert fits(*(f"gpu-0-mig-1g18gb-19-{at}" for at in range(7)))
    assert fits("gpu-0-mig-3g71gb-9-0", "gpu-0-mig-3g71gb-9-4")
    assert fits("gpu-0-mig-3g71gb-9-0", "gpu-0-mig-1g18gb-me-20-4", "gpu-0-mig-1g18gb-19-5")
    assert not fits("gpu-0-mig-3g71gb-9-0", "gpu-0-mig-1g18gb-19-3")
    assert not fits("gpu-0-mig-1g18gb-me-20-0", "gpu-0-mig-1g18gb-me-20-1")
    assert not fits("gpu-0-mig-7g141gb-0-0", "gpu-0-mig-1g18gb-19-6")


def test_as_many_of_a_profile_fit_as_nvml_says_also_where_together_they_have_more_than_the_largest():
    """Engines may be counted once for each small partition, and fewer for one that has all of them."""
    small, *others = PROFILES
    gpu = replace(GPU, mig=True, profiles=(replace(small, copy_engines=2), *others))
    counters = pool(replace(h200(), gpus=(gpu,)), "n", {}).counters["gpu-0-counter-set"]
    assert counters["copy-engines"] == "14"


def _amount(text):
    return int(text.removesuffix("Mi"))


# -- recordings -----------------------------------------------------------------------------------


def test_a_recording_is_read_as_it_was_written():
    for inventory in (h200(), in_mig_mode()):
        assert nvidia.decoded(nvidia.encoded(inventory), "here") == inventory


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: one | {"format": "v2"}, "its format is 'v2'"),
        (lambda one: one | {"gpu": []}, "unknown field `gpu`"),
        (lambda one: one | {"gpus": one["gpus"] * 2}, "two GPUs are called gpu-0"),
        (lambda one: [], "Expected `object`"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(change, why):
    content = json.dumps(change(json.loads(RECORDING.read_bytes()))).encode()
    with pytest.raises(nvidia.BadRecording, match=why) as refused:
        nvidia.decoded(content, "gpus.json")
    assert "gpus.json" in str(refused.value)


# -- a driver at work -----------------------------------------------------------------------------


def gpus(world, backend=None, rehearsed=None):
    driver = nvidia.driver(backend or nvidia.Recorded(h200()), NODE, rehearsed)
    places = Places(driver.name, world.places.root, world.places.cdi)
    return places, running(driver, Node(NODE), places, Surroundings(world.server.client()))


def two_gpus():
    return replace(h200(), gpus=(GPU, replace(GPU, index=1, minor=1, uuid="GPU-2", node=None)))


def test_a_container_gets_the_nodes_and_files_of_its_gpu_and_no_others():
    two = two_gpus()

    async def story(world):
        places, driver = gpus(world, nvidia.Recorded(two))
        async with driver:
            claim = await world.claim("a", "gpu-0", driver=nvidia.DRIVER)
            return await prepared(world, places, claim)

    error, edits = tell(story)
    assert error == ""
    assert edits.env == ("NVIDIA_VISIBLE_DEVICES=void", f"DEVICE_GPU_0=gpu.nvidia.com/{NODE}/gpu-0")
    assert [one.path for one in edits.device_nodes] == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
    ]
    assert {one.type for one in edits.device_nodes} == {"c"}
    assert edits.device_nodes[0].major == 195
    assert {one.container_path for one in edits.mounts} == {*two.libraries, *two.programs}
    assert all(one.host_path == one.container_path and "ro" in one.options for one in edits.mounts)


class Noting(nvidia.Recorded):
    """What a driver asks of its GPUs."""

    def __init__(self, recording):
        super().__init__(recording)
        self.asked = []

    def cut(self, wanted):
        self.asked.append(("cut", wanted.name))
        return super().cut(wanted)

    def merge(self, wanted):
        self.asked.append(("merge", wanted.name))

    def slice_time(self, gpu, interval):
        self.asked.append((gpu.name, interval))


def test_a_partition_is_made_for_its_claim_and_taken_away_with_it():
    backend = Noting(in_mig_mode())

    async def story(world):
        places, driver = gpus(world, backend)
        async with driver:
            claim = await world.claim("a", "gpu-0-mig-3g71gb-9-4", driver=nvidia.DRIVER)
            answer = await prepared(world, places, claim)
            assert await unprepared(places, claim) == ""
            return answer

    error, edits = tell(story)
    assert error == ""
    assert backend.asked == [("cut", "gpu-0-mig-3g71gb-9-4"), ("merge", "gpu-0-mig-3g71gb-9-4")]
    assert [one.path for one in edits.device_nodes][-2:] == [
        "/dev/nvidia-caps/nvidia-cap9",
        "/dev/nvidia-caps/nvidia-cap10",
    ]
    assert edits.device_nodes[-1].major == 236


def _config(sharing):
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": sharing}
    return [{"source": "FromClaim", "opaque": {"driver": nvidia.DRIVER, "parameters": parameters}}]


@pytest.mark.parametrize(("interval", "number"), [("Default", 0), ("Short", 1), ("Medium", 2), ("Long", 3)])
def test_time_is_sliced_as_the_claim_says_and_as_before_when_it_is_over(interval, number):
    backend = Noting(two_gpus())

    async def story(world):
        places, driver = gpus(world, backend)
        async with driver:
            asked = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}
            sliced = await world.claim("a", "gpu-0", driver=nvidia.DRIVER, config=_config(asked))
            error, edits = await prepared(world, places, sliced)
            assert error == "" and f"GPU_TIME_SLICE={interval}" in edits.env
            assert await unprepared(places, sliced) == ""
            plain = await world.claim("b", "gpu-1", driver=nvidia.DRIVER)
            assert (await prepared(world, places, plain))[0] == ""
            assert await unprepared(places, plain) == ""

    tell(story)
    assert backend.asked == [("gpu-0", number), ("gpu-0", 0)]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"strategy": "MPS"}, "sharing.strategy is 'MPS', and this driver has TimeSlicing alone"),
        ({"timeSlicingConfig": {"interval": "Eternal"}}, "sharing.timeSlicingConfig.interval"),
        ({"strategie": "TimeSlicing"}, "unknown field `strategie`"),
    ],
)
def test_a_wrong_configuration_is_told_to_the_claim(asked, why):
    async def story(world):
        places, driver = gpus(world)
        async with driver:
            claim = await world.claim("a", "gpu-0", driver=nvidia.DRIVER, config=_config(asked))
            return (await prepared(world, places, claim))[0]

    assert why in tell(story)


def test_a_partition_slices_no_time():
    with pytest.raises(NotUsable, match="time is sliced on whole GPUs"):
        sharing.interval([sharing.GpuConfig(sharing=sharing.Sharing())], "gpu-0-mig-1g18gb-19-0", False)


# -- troubles -------------------------------------------------------------------------------------


def test_an_error_of_a_program_is_not_the_gpus():
    assert troubles.after({}, [Xid("a", 13), Xid("a", 31), Xid("a", 43)]) == {}


def test_what_is_worse_is_kept_and_what_is_repaired_forgotten():
    sick = troubles.after({}, [Xid("a", 48), Xid("b", 79)])
    assert troubles.taints(sick) == {
        "a": Taint("gpu.nvidia.com/xid", "NoSchedule", "48"),
        "b": Taint("gpu.nvidia.com/xid", "NoSchedule", "79"),
    }
    lost = troubles.after(sick, [Lost("a"), Xid("a", 62)])
    assert troubles.taints(lost)["a"] == Taint("gpu.nvidia.com/lost", "NoExecute")
    assert troubles.after(lost, [Well("a"), Well("b")]) == {}


def test_lines_of_a_file_are_troubles_once_each(tmp_path, caplog):
    path = tmp_path / "events"
    rehearsal = nvidia.Rehearsal(path, MachineFiles(), {"gpu-0": "GPU-a"})
    assert rehearsal.happened() == ()
    path.write_text("gpu-0 xid 79\n\ngpu-7 lost\ngpu-0 lo")
    assert rehearsal.happened() == (Xid("GPU-a", 79),)
    assert "'gpu-7 lost' was ignored: wanted is one of gpu-0" in caplog.text
    with path.open("a") as file:
        file.write("st\ngpu-0 well\n")
    assert rehearsal.happened() == (Lost("GPU-a"), Well("GPU-a"))


def test_troubles_taint_the_device_and_are_reported_until_it_is_well():
    told = []

    def rehearsed():
        heard, told[:] = tuple(told), []
        return heard

    async def story(world):
        places, driver = gpus(world, rehearsed=rehearsed)
        async with driver:

            async def taints():
                return [
                    device.get("taints", [])
                    for one in await world.slices()
                    for device in one["spec"].get("devices", ())
                ]

            async def tainted(key, effect):
                found = [(one["key"], one["effect"]) for own in await taints() for one in own]
                return found == [(key, effect)]

            await until(lambda: taints())
            told.append(Xid(GPU.uuid, 79))
            await until(lambda: tainted("gpu.nvidia.com/xid", "NoSchedule"))
            assert await reported(places) == (health.Health.UNHEALTHY, "critical error XID 79")
            told.append(Lost(GPU.uuid))
            await until(lambda: tainted("gpu.nvidia.com/lost", "NoExecute"))
            claim = await world.claim("a", "gpu-0", driver=nvidia.DRIVER)
            assert "gpu-0 of claim default/a is lost" in (await prepared(world, places, claim))[0]
            told.append(Well(GPU.uuid))

            async def is_clean():
                return await taints() == [[]]

            await until(is_clean)
            assert (await prepared(world, places, claim))[0] == ""

    tell(story)


async def reported(places):
    channel = UnixSockets().dial(str(places.service_socket))
    try:
        async with asyncio.timeout(60):
            async for report in channel.stream(health.V1.watch, health.NodeWatchResourcesRequest()):
                (one,) = report.devices
                if one.health != health.Health.HEALTHY:
                    return one.health, one.message
    finally:
        await channel.close()


# -- the command ----------------------------------------------------------------------------------


def test_the_command_serves_a_recording():
    with TemporaryDirectory(prefix="dra") as folder:
        server = ServerProcess(Path(folder, "api"))
        words = ["driver", "nvidia", "--replay", str(RECORDING), "--node", "gpu-box"]
        words += ["--kubeconfig", str(server.kubeconfig), "--root", folder]
        driver = subprocess.Popen(
            [sys.executable, "-m", "allot.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert driver.stdout is not None and driver.stderr is not None
            assert driver.stdout.readline() == "ready\n", driver.stderr.read()
        finally:
            driver.terminate()
            driver.wait()
            server.stop()


def test_a_machine_without_a_gpu_is_told_so_in_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("allot.drivers.nvidia.nvml.LIBRARY", "libnothing-of-the-kind.so.1")
    to = tmp_path / "gpus.json"
    assert main(["driver", "nvidia", "--record", str(to)]) == 1
    said = capsys.readouterr().err
    assert said == (
        "allot driver nvidia: libnothing-of-the-kind.so.1 was not found: this machine has no NVIDIA driver\n"
    )
    assert not to.exists()


def test_a_wrong_recording_is_told_in_one_line(capsys, tmp_path):
    words = ["driver", "nvidia", "--node", "n", "--replay"]
    assert main([*words, str(tmp_path / "none")]) == 1
    assert "none: No such file or directory" in capsys.readouterr().err
    (tmp_path / "bad").write_text("{")
    assert main([*words, str(tmp_path / "bad")]) == 1
    assert "is not a recorded inventory" in capsys.readouterr().err


# -- files of the driver --------------------------------------------------------------------------

LISTED = """\
3 libs found in cache `/etc/ld.so.cache'
\tlibnvidia-ml.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libnvidia-ml.so.1
\tlibnvidia-ml.so.1 (libc6) => /lib/i386-linux-gnu/libnvidia-ml.so.1
\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
\tlibcuda.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so
\tlibcudart.so.12 (libc6,x86-64) => /usr/local/cuda/lib64/libcudart.so.12
"""


def test_libraries_of_the_driver_are_told_from_those_of_programs():
    assert driverfiles.in_cache(LISTED) == (
        "/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        "/lib/x86_64-linux-gnu/libcuda.so.1",
    )


def test_without_a_cache_libraries_are_found_where_they_usually_are(tmp_path):
    for name in ("libcuda.so", "libcuda.so.1", "libcuda.so.570.148.08", "libnvidia-ml.so.1", "libc.so.6"):
        (tmp_path / name).touch()
    found = driverfiles.in_folders([tmp_path / "nothing", tmp_path])
    assert found == (str(tmp_path / "libcuda.so.1"), str(tmp_path / "libnvidia-ml.so.1"))


def test_names_of_partitions_are_their_own():
    names = [one.name for gpu in in_mig_mode().gpus for one in partitions(gpu)]
    assert len(names) == len({*names}) == 17
