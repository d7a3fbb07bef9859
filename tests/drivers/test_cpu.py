"""Cores: which there are, who has which, and that containers keep to theirs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import rights
from allot.base import MachineFiles
from allot.cli.main import main
from allot.driver import Allocated, Claim, Entry, Node, NotUsable, Places, Surroundings, running
from allot.drivers import cpu
from allot.drivers.cpu import machine
from allot.drivers.cpu.topology import TooFew, choose, groups, listed, written
from driver.world import NODE, tell, until
from drivers.asking import prepared, unprepared

CORES = [
    cpu.Core((at, at + 8), socket=0, numa_node=at // 4, cache=at // 2) for at in range(8)
]  # four to a node, two to a cache


def test_cores_that_share_a_node_and_a_cache_are_one_device():
    assert [(one.name, [core.cpus for core in one.cores]) for one in groups(CORES)] == [
        ("numa-0-cache-0", [(0, 8), (1, 9)]),
        ("numa-0-cache-1", [(2, 10), (3, 11)]),
        ("numa-1-cache-2", [(4, 12), (5, 13)]),
        ("numa-1-cache-3", [(6, 14), (7, 15)]),
    ]
    bare = [core._replace(cache=None) for core in CORES]
    assert [one.name for one in groups(bare)] == ["numa-0", "numa-1"]


def test_whole_cores_are_chosen_that_nobody_has():
    (group, *_) = groups([core._replace(cache=None) for core in CORES])
    assert choose(group, [], 2) == (0, 1, 8, 9)
    assert choose(group, [8, 2], 2) == (1, 3, 9, 11), "a core of which one thread is taken is taken"
    with pytest.raises(TooFew, match="numa-0 has 2 free cores of 4, and 3 are asked for"):
        choose(group, [0, 1], 3)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), ("0,2-3", (0, 2, 3))]
)
def test_lists_of_cpus_are_read_and_written(text, cpus):
    assert listed(text) == cpus
    assert written(cpus) == text


def test_cores_are_read_from_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 5})
    for at in range(6):
        own = tmp_path / f"cpu/cpu{at}"
        for path, text in {
            "topology/thread_siblings_list": f"{at % 2},{at % 2 + 2}"
            if at < 4
            else f"{at - at % 2}-{at | 1}",
            "topology/physical_package_id": "0",
            "cache/index0/level": "1",
            "cache/index3/level": "3",
            "cache/index3/id": str(at % 2),
        }.items():
            (own / path).parent.mkdir(parents=True, exist_ok=True)
            (own / path).write_text(f"{text}\n")
    (tmp_path / "node/node1").mkdir(parents=True)
    (tmp_path / "node/node1/cpulist").write_text("1,3\n")
    assert machine.cores(tmp_path) == (cpu.Core((0, 2), 0, 0, 0), cpu.Core((1, 3), 0, 1, 1))


def test_this_machine_has_the_cores_that_we_run_on():
    cpus = [one for core in cpu.cores() for one in core.cpus]
    assert sorted(cpus) == sorted({*cpus}) and {*cpus} <= os.sched_getaffinity(0) and cpus


# -- the driver -----------------------------------------------------------------------------------

SHARES = [f"{digit * 8}-1111-1111-1111-111111111111" for digit in "123456"]


def claim(name, at, many, *more):
    """Of the first cache, so many cores for each part."""
    parts = [
        Allocated("r", NODE, "numa-0-cache-0", SHARES[one], consumed={"cores": str(many)})
        for one in (at, *more)
    ]
    return Claim(cpu.DRIVER, "default", name, f"uid-{name}", tuple(parts))


def driver_in(notes, found=CORES):
    return cpu.driver(found, cpu.Pins(notes / "containers"), notes / "claims", MachineFiles())


def had(driver, one):
    """The CPUs of each part."""
    given = driver.prepare(one)
    for edits in given.values():
        (hook,), (variable,) = edits.hooks, edits.env
        assert f"CPUS_R={hook.args[-1]}" == variable
    return [edits.hooks[0].args[-1] for edits in given.values()]


def test_no_two_claims_have_a_core_and_each_keeps_its_own(tmp_path):
    """CPU1, CPU2."""
    driver = driver_in(tmp_path)
    first, second, third = claim("a", 0, 1), claim("b", 1, 1), claim("c", 2, 1)
    assert had(driver, first) == ["0,8"]
    assert had(driver, second) == ["1,9"]
    with pytest.raises(NotUsable, match="numa-0-cache-0 has 0 free cores of 2, and 1 are asked for"):
        driver.prepare(third)
    again = driver_in(tmp_path)
    assert had(again, second) == ["1,9"], "after a restart too"
    again.unprepare(Entry("uid-a", "default", "a", ()))
    assert had(again, third) == ["0,8"]


def test_a_claim_with_several_parts_has_cores_for_each(tmp_path):
    assert had(driver_in(tmp_path), claim("a", 0, 1, 1)) == ["0,8", "1,9"]


def test_a_claim_is_given_cores_over_the_kubelets_socket(tmp_path):
    async def story(world):
        driver = driver_in(tmp_path)
        places = Places(driver.name, world.places.root, world.places.cdi)
        async with running(driver, Node(NODE), places, Surroundings(world.server.client())):
            await until(world.devices)
            asked = await world.claim(
                "a", "numa-1-cache-3", driver=cpu.DRIVER, shares=SHARES[:1], capacity={"cores": "2"}
            )
            error, edits = await prepared(world, places, asked)
            assert (error, edits.env) == ("", ("CPUS_R=6-7,14-15",))
            assert await unprepared(places, asked) == ""
            assert [*(tmp_path / "claims").iterdir()] == []

    tell(story)


def test_reserved_cpus_leave_something(capsys):
    everything = written(sorted(os.sched_getaffinity(0)))
    assert main(["driver", "cpu", "--node", "n", "--reserved", everything]) == 1
    assert capsys.readouterr().err == "allot driver cpu: --reserved leaves no core\n"
    with pytest.raises(SystemExit):
        main(["driver", "cpu", "--node", "n", "--reserved", "all"])
    assert "'all' is not a list of CPUs such as 0-1,8" in capsys.readouterr().err


# -- keeping containers to their CPUs -------------------------------------------------------------


@pytest.fixture
def process():
    one = subprocess.Popen(["sleep", "600"])
    yield one
    one.kill()
    one.wait()


def run_hook(hook, pid):
    state = json.dumps({"id": "c1", "pid": pid})
    return subprocess.run([hook.path, *hook.args[1:]], input=state, capture_output=True, text=True)


def test_a_container_runs_on_its_cpus_and_no_others(process, tmp_path):
    (first, *more) = sorted(os.sched_getaffinity(0))
    pins = cpu.Pins(tmp_path)
    done = run_hook(pins.hook([first]), process.pid)
    assert done.returncode == 0, done.stderr
    assert os.sched_getaffinity(process.pid) == {first}
    if more:
        done = run_hook(pins.hook([more[0]]), process.pid)
        assert done.returncode == 0, done.stderr
        assert os.sched_getaffinity(process.pid) == {first, more[0]}, "of another claim: it has both"


def test_notes_go_with_the_container(process, tmp_path):
    pins = cpu.Pins(tmp_path)
    assert run_hook(pins.hook([min(os.sched_getaffinity(0))]), process.pid).returncode == 0
    pins.sweep()
    assert len([*tmp_path.iterdir()]) == 1, "it still runs"
    process.kill()
    process.wait()
    pins.sweep()
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def cpuset():
    """A cgroup of version 1 with all CPUs, as a container runtime makes one."""
    group = Path(f"/sys/fs/cgroup/cpuset/test-{os.getpid()}")
    if not (group.parent / "cpuset.mems").exists():
        pytest.skip("this machine has no cpusets of cgroup v1")
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        (group / name).write_text((group.parent / name).read_text())
    yield group
    group.rmdir()


@rights.needs_root("only root may make cpusets")
def test_a_container_cannot_leave_its_cpus(cpuset, process, tmp_path):
    cpus = sorted(os.sched_getaffinity(0))
    (cpuset / "cgroup.procs").write_text(str(process.pid))
    done = run_hook(cpu.Pins(tmp_path).hook(cpus[:1]), process.pid)
    assert done.returncode == 0, done.stderr
    os.sched_setaffinity(process.pid, cpus)
    assert os.sched_getaffinity(process.pid) == {*cpus[:1]}
    process.kill()
    process.wait()


@rights.needs_root("only root may make cpusets")
def test_a_cgroup_that_others_are_in_too_is_left_alone(cpuset, process, tmp_path):
    with subprocess.Popen(["sleep", "600"]) as other:
        for one in (process, other):
            (cpuset / "cgroup.procs").write_text(str(one.pid))
        before = os.sched_getaffinity(other.pid)
        assert run_hook(cpu.Pins(tmp_path).hook([min(before)]), process.pid).returncode == 0
        assert os.sched_getaffinity(process.pid) == {min(before)}
        assert os.sched_getaffinity(other.pid) == before
        for one in (process, other):
            one.kill()
            one.wait()


def test_what_cannot_be_given_is_told(tmp_path):
    done = run_hook(cpu.Pins(tmp_path).hook([0]), 2**22 + 1)
    assert done.returncode == 1
    assert "CPUs 0 cannot be given to container c1" in done.stderr
