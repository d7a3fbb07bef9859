"""Worlds with real agents and drivers: they fail like all others, and every promise of nodes holds."""

import hashlib
import subprocess
import sys
from itertools import pairwise

from allot.sim import Scope, classic_things, faults_of, run_many, run_one, script
from allot.sim.checkers.contained import Contained
from allot.sim.lots import Lots
from allot.sim.naming import components_of
from allot.sim.recording import MACHINES

WORLD = Scope(real_scheduler=True, agents=1.0)
SHORT = Scope(seconds=900, pods=15, real_scheduler=True, agents=1.0, autoscaler=0.0)


def test_every_promise_holds_while_agents_drivers_and_machines_die():
    """A whole hour. Things must have happened on machines, or it says nothing of them."""
    report = run_one(3, WORLD)
    assert report.good, report.wrong
    notes = [seen for seen in report.history if seen.resource == MACHINES]
    assert {"OFF", "AWAY", "STARTED", "ENDED", "PREPARE", "ANSWERED", "UNPREPARED"} <= {
        one.type for one in notes
    }
    checker = Contained()
    for seen in report.history:
        list(checker.see(seen))
    assert checker.starts > 10


def test_every_fault_of_machines_strikes():
    total = run_many([1, 2, 3], SHORT, jobs=0)
    assert not total.broken
    new = set(faults_of(SHORT)) - set(faults_of(Scope()))
    assert {"reboot", "driver away", "call late", "call cut", "device slow", "device fails"} <= new
    assert not new & set(total.never)


def test_each_agent_and_driver_is_in_trouble_of_its_own():
    for seed in range(20):
        nodes = WORLD.agent_nodes(Lots(seed))
        steps = script.write(Lots(seed), WORLD)
        crashed = {step.of["component"] for step in steps if step.deed == "crash"}
        assert nodes and len(crashed & set(components_of(*nodes))) >= 2
        assert {step.of["node"] for step in steps if step.deed == "reboot"} == set(nodes)


def test_a_seed_draws_whether_its_world_has_agents():
    found = [len(Scope(real_scheduler=True).agent_nodes(Lots(seed))) for seed in range(200)]
    assert {0, 1, 2} == set(found) and 70 < found.count(0) < 130
    assert Scope(real_scheduler=True, agents=0.0).agent_nodes(Lots(1)) == ()
    assert Scope(agents=1.0).agent_nodes(Lots(1)) == ()


def test_capacity_of_machines_comes_and_goes_and_is_shown_as_it_is():
    """4381-FAIL-10: whatever a driver says and unsays, everybody else goes on."""
    report = run_one(2, Scope(seconds=900, pods=10, real_scheduler=True, agents=1.0, classic=0.0))
    assert report.good, report.wrong
    said = [seen.fields["counts"] for seen in report.history if seen.type == "OFFERS"]
    shown = [seen for seen in report.history if seen.resource == "noderesourcecapacities"]
    assert any(sum(later.values()) < sum(before.values()) for before, later in pairwise(said))
    assert {"ADDED", "MODIFIED"} <= {seen.type for seen in shown}


def test_classic_claims_are_prepared_on_machines_by_halves_of_their_drivers_that_fail_too():
    report = run_one(4, Scope(seconds=1800, pods=10, real_scheduler=True, agents=1.0, classic=1.0))
    assert report.good, report.wrong
    notes = [seen for seen in report.history if seen.resource == MACHINES]
    of_classic = {one.type for one in notes if one.fields.get("driver") in classic_things.DRIVERS}
    assert {"PREPARE", "ANSWERED", "UNPREPARED"} <= of_classic
    started = [one.fields["devices"] for one in notes if one.type == "STARTED"]
    assert any(name.startswith(classic_things.DRIVERS) for devices in started for name in devices)


PROGRAM = """
import hashlib
from allot.sim import Scope, run_one
report = run_one(5, Scope(seconds=900, pods=15, real_scheduler=True, agents=1.0))
story = "".join(f"{s.revision} {s.type} {s.object.raw!r}" for s in report.history)
told = "".join(map(str, report.journal))
print(hashlib.sha256((story + told).encode()).hexdigest(), sorted(report.struck.items()), report.wrong)
"""


def test_a_world_with_agents_is_the_same_in_every_process():
    """VTIME2, to the byte: neither files, sockets nor processes of this machine enter it."""
    worlds = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(worlds) == 1
    assert hashlib.sha256(b"").hexdigest() not in worlds.pop()
