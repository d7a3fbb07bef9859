"""Containers of a real containerd, and the devices that they get."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from allot.nodeagent.runtimes import Attempt, CannotStart, CriRuntime, Profile
from allot.nodeagent.runtimes.contract import Limits, Mount
from allot.wire import cdi
from containerd import Containerd

from ..plugins import until
from .cri_stories import end_of, printed, script, tell


def test_a_container_runs_in_its_image_prints_and_ends(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        heard: list[Attempt] = []
        runtime.changed(heard.append)
        text = 'echo out "$A"; echo err >&2; test -e /work && echo machine; exit 3'
        started = await runtime.start(script(text, pod, env={"A": "b"}))
        assert started.id.startswith("containerd://") and started.image_id
        over = await end_of(runtime, started)
        assert (over.exit_code, over.reason) == (3, "")
        assert over.finished_at is not None and over.finished_at >= over.started_at > time.time() - 60
        assert sorted(printed(over)) == ["stderr F err", "stdout F out b"]
        await until(lambda: [one.exit_code for one in heard] == [3])

    tell(daemon, play)


def test_the_images_own_command_runs_where_none_is_written(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        spec = script("", pod)._replace(command=(), args=("sh", "-c", "echo mine"))
        assert printed(await end_of(runtime, await runtime.start(spec))) == ["stdout F mine"]

    tell(daemon, play)


def test_what_cannot_be_started_says_why_and_leaves_no_trace(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        wanted = script("", pod)._replace(command=("no-such-program",))
        with pytest.raises(CannotStart, match="no-such-program") as no:
            await runtime.start(wanted)
        assert no.value.reason == "RunContainerError"
        assert [one for one in await runtime.attempts() if one.pod_uid == pod] == []
        over = await end_of(runtime, await runtime.start(script("exit 4", pod)))
        assert over.exit_code == 4, "the same attempt, once it can be started"

    tell(daemon, play)


def test_a_container_has_the_limits_that_were_asked_for(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        limits = Limits(cpu_shares=128, cpu_quota_us=50_000, memory_bytes=64 << 20, cpus="0")
        old = "memory/memory.limit_in_bytes cpu/cpu.shares cpu/cpu.cfs_quota_us cpuset/cpuset.cpus"
        new = "memory.max cpu.weight cpu.max cpuset.cpus"
        text = f"cd /sys/fs/cgroup; if test -e memory; then cat {old}; else cat {new}; fi"
        over = await end_of(runtime, await runtime.start(script(text, pod, limits=limits)))
        found = [line.removeprefix("stdout F ") for line in printed(over)]
        assert found in (
            [str(64 << 20), "128", "50000", "0"],
            [str(64 << 20), "5", "50000 100000", "0"],
        )

    tell(daemon, play)


def test_a_container_that_takes_too_much_memory_is_killed_and_says_so(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        heard: list[Attempt] = []
        runtime.changed(heard.append)
        limits = Limits(memory_bytes=16 << 20)
        started = await runtime.start(script("tail /dev/zero", pod, limits=limits))
        over = await end_of(runtime, started)
        await until(lambda: bool(heard))
        assert (heard[0].exit_code, heard[0].reason) == (137, "OOMKilled")
        assert over.exit_code == 137

    tell(daemon, play)


def test_a_container_is_whom_its_security_context_says(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        kernel = "grep CapEff /proc/self/status; test -c /proc/keys && echo masked"
        text = f"id -u; id -g; id -G; touch /x 2>&1; {kernel}"
        spec = script(text, pod, user=1000, group=77, groups=(88,), read_only_root=True)
        over = await end_of(runtime, await runtime.start(spec))
        uid, gid, groups, touched, caps, kernel = (line.removeprefix("stdout F ") for line in printed(over))
        assert (uid, gid) == ("1000", "77")
        assert set(groups.split()) == {"77", "88"}
        assert "Read-only file system" in touched
        assert caps.split()[-1] == "0" * 16
        assert kernel == "masked", "what tells of others on the machine"
        only_group = script("id -u; id -g", pod, name="group", group=77)
        over = await end_of(runtime, await runtime.start(only_group))
        assert printed(over) == ["stdout F 0", "stdout F 77"]

    tell(daemon, play)


def test_system_calls_are_filtered_by_the_profile_that_was_asked_for(daemon: Containerd, tmp_path: Path):
    """The kernel says of each process whether a filter is there (2) or not (0)."""
    own = tmp_path / "no-mkdir.json"
    own.write_text(
        json.dumps(
            {
                "defaultAction": "SCMP_ACT_ALLOW",
                "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}],
            }
        )
    )
    filters = "grep Seccomp: /proc/self/status | cut -f2"
    made = "mkdir /tmp/x 2>/dev/null && echo made || echo not made"
    unshared = "unshare -u true 2>/dev/null && echo unshared || echo not unshared"

    async def play(runtime: CriRuntime, pod: str) -> None:
        async def seen(name: str, seccomp: Profile | None, **more: Any) -> list[str]:
            text = f"{filters}; {made}; {unshared}"
            caps = {"capabilities_added": ("SYS_ADMIN",)}
            over = await end_of(
                runtime, await runtime.start(script(text, pod, name, seccomp=seccomp, **(more or caps)))
            )
            return [line.removeprefix("stdout F ") for line in printed(over)]

        assert await seen("none", None) == ["0", "made", "unshared"]
        assert await seen("free", Profile("Unconfined")) == ["0", "made", "unshared"]
        assert (await seen("usual", Profile("RuntimeDefault"), user=0))[::2] == ["2", "not unshared"]
        assert await seen("own", Profile("Localhost", str(own))) == ["2", "not made", "unshared"]
        assert (await seen("all", Profile("RuntimeDefault"), privileged=True))[0] == "0"
        missing = script("true", pod, "missing", seccomp=Profile("Localhost", str(tmp_path / "none.json")))
        with pytest.raises(CannotStart, match=r"none\.json"):
            await runtime.start(missing)

    tell(daemon, play)


def test_a_container_may_see_all_of_proc_and_a_pod_has_its_sysctls(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        text = "test -c /proc/keys && echo masked; cat /proc/sys/kernel/shm_rmid_forced"
        sysctls = {"kernel.shm_rmid_forced": "1"}
        seen = script(text, pod, hides_proc=False, sandbox={"sysctls": sysctls})
        assert printed(await end_of(runtime, await runtime.start(seen))) == ["stdout F 1"]

    tell(daemon, play)


def test_capabilities_are_added_and_dropped_and_a_privileged_one_has_all(daemon: Containerd):
    def bits(attempt: Attempt) -> int:
        return int(printed(attempt)[0].split()[-1], 16)

    async def play(runtime: CriRuntime, pod: str) -> None:
        text = "grep CapEff /proc/self/status"
        found = {}
        for number, (name, more) in enumerate(
            {
                "plain": {},
                "more": {"capabilities_added": ("SYS_ADMIN",)},
                "less": {"capabilities_dropped": ("ALL",)},
                "privileged": {"privileged": True},
            }.items()
        ):
            spec = script(text, pod, name=f"c{number}", **more)
            found[name] = bits(await end_of(runtime, await runtime.start(spec)))
        assert found["less"] == 0
        assert found["more"] == found["plain"] | 1 << 21
        assert found["privileged"] & found["more"] == found["more"] != found["privileged"]

    tell(daemon, play)


def test_mounts_are_there_and_read_only_where_that_was_asked_for(daemon: Containerd, tmp_path: Path):
    async def play(runtime: CriRuntime, pod: str) -> None:
        (tmp_path / "f").write_text("hello\n")
        mounts = (Mount(str(tmp_path), "/a"), Mount(str(tmp_path), "/b", read_only=True))
        text = "cat /b/f; echo x > /a/g && echo written; echo x > /b/h || echo refused"
        over = await end_of(runtime, await runtime.start(script(text, pod, mounts=mounts)))
        assert [one for one in printed(over) if one.startswith("stdout")] == [
            "stdout F hello",
            "stdout F written",
            "stdout F refused",
        ]
        assert (tmp_path / "g").exists() and not (tmp_path / "h").exists()

    tell(daemon, play)


GRANTED = next(one for one in ("/dev/fuse", "/dev/kvm", "/dev/loop-control") if Path(one).exists())
"""It stands for a device. No container may open it by itself, but for the few nodes that all have."""


def test_devices_are_handed_over_by_their_names_and_what_was_not_granted_cannot_be_opened(
    daemon: Containerd, tmp_path: Path
):
    """3063-GRPC-11: the names go to the runtime, in the field of the CRI that is for them, and the runtime
    finds node, variable, mount and hook in the CDI spec (N4)."""
    (tmp_path / "f").write_text("mounted\n")
    node = cdi.DeviceNode("/dev/granted", GRANTED)
    edits = cdi.ContainerEdits(
        env=("GPU=zero",),
        device_nodes=(node,),
        mounts=(cdi.Mount(str(tmp_path), "/cdi", ("ro", "rbind", "rprivate")),),
        hooks=(cdi.Hook("createRuntime", "/bin/sh", ("sh", "-c", f"touch {tmp_path}/hooked")),),
    )
    spec = cdi.with_minimum_version(cdi.Spec("", "example.com/gpu", (cdi.Device("zero", edits),)))
    cdi.SpecDirectory(daemon.cdi).write(cdi.spec_file_name("example.com/gpu", "zero"), spec)
    major, minor = os.major(os.stat(GRANTED).st_rdev), os.minor(os.stat(GRANTED).st_rdev)
    text = (
        f"echo GPU=$GPU; cat /cdi/f; mknod /tmp/same c {major} {minor}; "
        "for d in /dev/granted /tmp/same; do head -c 0 < $d && echo opened $d; done 2>/dev/null; true"
    )

    async def play(runtime: CriRuntime, pod: str) -> None:
        has = script(text, pod, name="has", cdi_devices=("example.com/gpu=zero",))
        has_not = script(text, pod, name="has-not")
        granted, denied = [await end_of(runtime, await runtime.start(one)) for one in (has, has_not)]
        out = [[line for line in printed(one) if line.startswith("stdout")] for one in (granted, denied)]
        assert out[0] == [
            "stdout F GPU=zero",
            "stdout F mounted",
            "stdout F opened /dev/granted",
            "stdout F opened /tmp/same",
        ]
        assert out[1] == ["stdout F GPU="]
        assert (tmp_path / "hooked").exists()

    tell(daemon, play)


def test_a_device_that_no_spec_has_is_an_error_that_names_it(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        with pytest.raises(CannotStart, match=r"example\.com/gpu=none-such") as no:
            await runtime.start(script("true", pod, cdi_devices=("example.com/gpu=none-such",)))
        assert no.value.reason == "CreateContainerError"

    tell(daemon, play)


def test_nodes_of_device_plugins_are_given_with_their_permissions(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        node = cdi.DeviceNode("/dev/mine", GRANTED, permissions="r")
        text = "head -c 0 < /dev/mine && echo read; (echo x > /dev/mine) 2>/dev/null || echo no write"
        over = await end_of(runtime, await runtime.start(script(text, pod, devices=(node,))))
        assert [one for one in printed(over) if "stdout" in one] == ["stdout F read", "stdout F no write"]

    tell(daemon, play)
