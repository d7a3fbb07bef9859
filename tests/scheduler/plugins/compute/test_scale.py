"""What placing by class costs, counted in nodes that are looked at; figures are the benchmark's."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from allot.scheduler.plugins.compute.plugin import ComputeCheck

BENCH = Path(__file__).parents[4] / "bench" / "compute.py"


def world(**of):
    spec = importlib.util.spec_from_file_location("bench_compute", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.World(**of)


@pytest.fixture
def looked_at(monkeypatch):
    """The nodes that were looked at, in order."""
    found: list[str] = []
    look = ComputeCheck.__call__

    def counting(self, node):
        found.append(node.name)
        return look(self, node)

    monkeypatch.setattr(ComputeCheck, "__call__", counting)
    return found


@pytest.mark.parametrize("nodes", [8, 80])
def test_the_next_pod_looks_at_what_moved(looked_at, nodes):
    """14-SCALE-04: one node, however many there are."""
    here = world(nodes=nodes, classes=2)
    here.place("class-0")
    looked_at.clear()
    here.place("class-0")
    assert len(looked_at) == 1


def test_a_class_that_changes_costs_those_who_ask_for_it(looked_at):
    """14-SCHED-13, 14-SCALE-02: the change looks at no node, and pods of other classes do not notice."""
    here = world(nodes=40, classes=4)
    here.place("class-0")
    looked_at.clear()
    here.change(1, 1)
    assert looked_at == []
    here.place("class-0")
    assert len(looked_at) == 1
    here.change(0, 1)
    here.place("class-0")
    assert len(looked_at) == 1 + 40


def test_the_benchmark_measures_each_dimension_alone():
    """14-SCALE-01, 14-SCALE-05"""
    small = ["--nodes", "500", "--pods", "2", "--duration", "0.05", "--tries", "1"]
    done = subprocess.run([sys.executable, str(BENCH), *small], capture_output=True, text=True, timeout=100)
    figures = json.loads(done.stdout)
    for dimension in ("properties", "devices", "nodes", "classes"):
        assert all(figure > 0 for figure in figures[dimension].values()), dimension
    assert figures["status_bytes"]["8192"] < 1_500_000
    assert figures["changes"]["nodes"] == 500
