"""The driver of devices that are not there."""

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from allot.cli.main import main
from allot.driver import Node, Places, Surroundings, running
from allot.drivers import sim
from allot.fleet import CATALOGUE, UnknownFleet
from allot.wire import UnixSockets, cdi, dra, health
from driver.world import NODE, tell, until
from e2e.process import ServerProcess, allot

POOLS = [
    (name, build.name, given)
    for name, design in CATALOGUE.items()
    for build in design.builds
    for given in build.pools("node-1")
]


@pytest.mark.parametrize(("fleet", "build", "given"), POOLS, ids=[f"{a}-{b}-{c.driver}" for a, b, c in POOLS])
def test_what_the_catalogue_has_is_published_to_the_letter(fleet, build, given):
    ours = sim.pool(given).slices(given.driver, "node-1")
    assert list(ours) == list(given.slices())


def test_a_node_gets_the_machine_of_its_name_or_the_one_that_was_asked_for():
    def names(*arguments):
        return [driver.name for driver in sim.drivers(*arguments)]

    assert names("mixed", "gpu-3") == ["gpu.example.com", "nic.example.com"]
    assert names("mixed", "whatever") == ["gpu.example.com", "nic.example.com"]
    assert names("nic", "whatever") == ["nic.example.com"]
    assert names("plain", "plain-0") == []
    with pytest.raises(sim.UnknownBuild, match="fleet 'gpu' has no machine 'x'; there are gpu"):
        names("gpu", "a", "x")
    with pytest.raises(UnknownFleet, match="no fleet is called 'nope'"):
        names("nope", "a")


def test_what_a_machine_has_counted_is_served_by_a_device_plugin_with_the_same_faults():
    class Clock:
        def monotonic_s(self):
            return now_s

    async def listed(plugin):
        return await anext(plugin.devices(Node("plugin-0")))

    (plugin,) = sim.plugins("plugin", "plugin-0", faults=sim.Faults(lose_s=10, flap_s=15), clock=Clock())
    assert plugin.name == "example.com/gpu"
    assert sim.plugins("gpu", "gpu-0") == []
    now_s = 0.0
    assert [(one.id, one.is_healthy) for one in asyncio.run(listed(plugin))] == [
        (f"gpu-{number}", True) for number in range(8)
    ]
    now_s = 16.0
    assert [one.id for one in asyncio.run(listed(plugin))] == [f"gpu-{number}" for number in range(1, 8)]
    now_s = 45.0
    assert [one.id for one in asyncio.run(listed(plugin)) if not one.is_healthy] == ["gpu-1"]


def test_devices_take_turns_in_being_lost_or_sick():
    faults = sim.Faults(lose_s=10, flap_s=5)
    assert [faults.lost(["a", "b"], at) for at in (0, 9, 10, 19, 20, 30, 39, 40, 50)] == [
        *("", "", "a", "a", "", "b", "b", "", "a")
    ]
    assert [faults.sick(["a", "b"], at) for at in (0, 5, 10, 15)] == ["", "a", "", "b"]
    assert sim.Faults().lost(["a"], 10) == sim.Faults(lose_s=1).lost([], 1) == ""


def test_so_large_a_part_of_prepares_fails():
    rng = random.Random(1)
    assert not any(sim.Faults().fails(rng) for _ in range(100))
    assert all(sim.Faults(fail=1).fails(rng) for _ in range(100))
    assert 200 < sum(sim.Faults(fail=0.3).fails(rng) for _ in range(1000)) < 400


def simulated(world, faults=None, files=None):
    (driver,) = sim.drivers("gpu", NODE, faults=faults, files=files)
    places = Places(driver.name, world.places.root, world.places.cdi)
    return running(driver, Node(NODE), places, Surroundings(world.server.client()))


def test_a_container_is_told_its_devices_by_a_variable_and_by_a_file():
    async def story(world):
        files = world.places.root / "devices"
        claim = await world.claim("a", "gpu-0", "gpu-1")
        async with simulated(world, files=files):
            channel = UnixSockets().dial(str(world.places.service_socket))
            answer = (await dra.prepare(channel, dra.V1, [claim], timeout_s=60))[claim.uid]
            names = [name for device in answer.devices for name in device.cdi_device_ids]
            edits = cdi.catalogue([world.places.cdi]).edits(names)
            assert edits.env == (
                f"DEVICE_GPU_0=gpu.example.com/{NODE}/gpu-0",
                f"DEVICE_GPU_1=gpu.example.com/{NODE}/gpu-1",
            )
            assert [one.container_path for one in edits.mounts] == [
                "/run/allot/devices/gpu-0",
                "/run/allot/devices/gpu-1",
            ]
            file = files / f"{claim.uid}-gpu-1"
            assert edits.mounts[1].host_path == str(file)
            assert file.read_text() == f"gpu.example.com/{NODE}/gpu-1\n"
            await dra.unprepare(channel, dra.V1, [claim], timeout_s=60)
            assert list(files.iterdir()) == []
            await channel.close()

    tell(story)


def test_a_lost_device_leaves_the_slices_and_comes_back():
    async def story(world):
        async with simulated(world, sim.Faults(lose_s=0.6)):
            seen = set()

            async def came_and_went():
                seen.add(frozenset(await world.devices()))
                return {len(one) for one in seen} >= {7, 8} and len(seen) >= 3

            await until(came_and_went, within_s=60)

    tell(story)


def test_a_sick_device_is_reported():
    async def story(world):
        async with simulated(world, sim.Faults(flap_s=0.4)):
            channel = UnixSockets().dial(str(world.places.service_socket))
            seen = set()
            async with asyncio.timeout(60):
                async for report in channel.stream(health.V1.watch, health.NodeWatchResourcesRequest()):
                    seen.add(tuple(one.health for one in report.devices).count(health.Health.UNHEALTHY))
                    if seen == {0, 1}:
                        break
            await channel.close()

    tell(story)


def test_the_command_serves_every_driver_of_the_machine():
    with TemporaryDirectory(prefix="dra") as folder:
        server = ServerProcess(Path(folder, "api"))
        flags = ["--node", "gpu-0", "--kubeconfig", str(server.kubeconfig), "--root", folder]
        driver = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "allot.cli",
                "driver",
                "sim",
                "--fleet",
                "mixed",
                *flags,
                "--metrics-port",
                "0",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert driver.stdout is not None and driver.stderr is not None
            assert driver.stdout.readline() == "ready\n", driver.stderr.read()
            found = UnixSockets().found(f"{folder}/plugins_registry")
            assert set(found) == {"gpu.example.com-reg.sock", "nic.example.com-reg.sock"}
        finally:
            driver.terminate()
            driver.communicate(timeout=30)
            server.stop()
        assert driver.returncode == 0


def test_the_command_prints_what_an_administrator_offers(capsys):
    assert main(["driver", "sim", "--fleet", "mig", "--offers"]) == 0
    kinds = {(one["kind"], one["metadata"]["name"]) for one in json.loads(capsys.readouterr().out)["items"]}
    assert ("DeviceClass", "gpu.example.com") in kinds
    assert ("ResourceClaimTemplate", "half-gpu") in kinds


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fleet", "nope"], "no fleet is called 'nope'"),
        (["--fleet", "gpu", "--machine", "x"], "has no machine 'x'"),
        (["--fleet", "plain"], "machines of fleet 'plain' have no devices"),
        (["--fail", "2"], "'2' is not between 0 and 1"),
        (["--node", ""], "--node is needed"),
    ],
)
def test_a_wrong_flag_is_refused_in_a_line(arguments, words):
    done = allot("driver", "sim", "--node", "n", *arguments)
    assert done.returncode == 2 and words in done.stderr
