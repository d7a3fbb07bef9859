"""Limits as files of both versions of cgroups, and rules for devices as a program of the kernel's."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from allot.nodeagent.runtimes import Limits
from allot.nodeagent.runtimes.process.shepherd import cgroups, devicerules
from allot.nodeagent.runtimes.process.shepherd.devices import RULES

from .places import FUSE


def limits(**more):
    return Limits(**more)._asdict()


def test_limits_of_both_versions_say_the_same():
    asked = limits(cpu_shares=1024, cpu_quota_us=50_000, memory_bytes=1 << 30, cpus="0-1")
    assert cgroups.v1_writes(asked) == [
        ("cpu", "cpu.shares", "1024"),
        ("cpu", "cpu.cfs_period_us", "100000"),
        ("cpu", "cpu.cfs_quota_us", "50000"),
        ("memory", "memory.limit_in_bytes", "1073741824"),
        ("memory", "memory.memsw.limit_in_bytes", "1073741824"),
        ("cpuset", "cpuset.cpus", "0-1"),
    ]
    assert cgroups.v2_writes(asked) == [
        ("", "cpu.weight", "39"),
        ("", "cpu.max", "50000 100000"),
        ("", "memory.max", "1073741824"),
        ("", "memory.swap.max", "0"),
        ("", "cpuset.cpus", "0-1"),
    ]
    assert cgroups.v1_writes(limits()) == cgroups.v2_writes(limits()) == []


@pytest.mark.parametrize(("shares", "weight"), [(0, 1), (2, 1), (1024, 39), (1 << 30, 10_000)])
def test_shares_are_weights_between_one_and_ten_thousand(shares, weight):
    assert cgroups.v2_writes(limits(cpu_shares=shares)) == [("", "cpu.weight", str(weight))]


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'c 1:3' is no rule for devices"):
        devicerules.program(["c 1:3"])


def unified() -> Path:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    raise AssertionError("this machine has no cgroup of version 2")


@pytest.mark.parametrize(
    ("rules", "reads", "writes"),
    [
        ([], False, False),
        (["c 10:229 r"], True, False),
        (["c 10:229 w"], False, True),
        (["c 10:* rw"], True, True),
    ],
)
def test_the_kernel_lets_through_what_rules_say_and_nothing_else(rules, reads, writes):
    """On a real cgroup of version 2."""
    if os.geteuid() != 0:  # a plain user attaches nothing, and is told so
        with pytest.raises(OSError):
            devicerules.attach(unified(), rules)
        return
    group = unified() / f"allot-test-{os.getpid()}"
    group.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        node = Path(folder) / "card"
        os.mknod(node, 0o20666, FUSE)
        try:
            devicerules.attach(group, [*RULES, *rules])

            def works(text: str) -> bool:
                joined = f"echo 0 > {group}/cgroup.procs; exec sh -c {text!r}"
                return subprocess.run(["sh", "-c", joined], stderr=subprocess.DEVNULL).returncode == 0

            assert works("head -c 1 /dev/zero > /dev/null")
            assert works(f"exec 3<{node}") == reads
            assert works(f"exec 3>{node}") == writes
        finally:
            group.rmdir()
