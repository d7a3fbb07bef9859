"""D1 and D2 over random sequences of writes, with two servers on each store: never more than there is,
and nothing refused that should be allowed. `bench/guard_sequences.py` runs many more of them.
"""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from allot.store import open_store
from components import etcd

from .guard_sequences import REASONS, GuardSequence, Servers

NO_DISK = ("--unsafe-no-fsync",)  # what is at stake is who is given what, not whether it survives a crash
QUICK = settings(
    max_examples=120,
    stateful_step_count=10,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # what fails is printed as it is: making it small takes minutes
    suppress_health_check=list(HealthCheck),
)


def sequences(servers: Servers) -> Counter[str]:
    found: Counter[str] = Counter()
    machine = type("Sequence", (GuardSequence,), {"servers": servers, "tally": found})
    run_state_machine_as_test(machine, settings=QUICK)
    return found


def is_telling(found: Counter[str]) -> bool:
    """Whether devices were given often, and nearly everything that can stand in the way did."""
    met = [reason for reason in REASONS if found[f"because {reason}"]]
    often = found["allocations"] > 100 and found["crowds"] > 50 and found["given up"] < 10
    return often and len(met) >= len(REASONS) - 2


@pytest.mark.parametrize("store", ["sqlite", "etcd"])
def test_never_more_is_held_than_there_is(store: str, tmp_path: Path) -> None:
    if store == "etcd":
        with etcd(extra=NO_DISK) as cluster:
            url = cluster.url("/sequences")
            servers = Servers([open_store(url), open_store(url)])
            found = run_and_close(servers)
    else:
        one = open_store(store, tmp_path)
        found = run_and_close(Servers([one, one]))
    assert is_telling(found), found


def run_and_close(servers: Servers) -> Counter[str]:
    try:
        return sequences(servers)
    finally:
        servers.close()
