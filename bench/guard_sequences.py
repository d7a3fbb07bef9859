"""The device guard against many random sequences of status writes, in one recorded run.

    python bench/guard_sequences.py [--sequences 10000] [--stores sqlite etcd] [--seed 1] [--out FILE]

Every sequence is a dozen steps, some of several writes, in two pools of its own: claims are given devices
and give them back, through two servers on one store, in every version and by every kind of write, alone
and in crowds, while slices change, shrink, vanish and come back. An independent model says what may be
(tests/apiserver/writing/guard_model.py). The record names the code that was tested and how often each
answer was given. It is written after each chunk of sequences, so that a run can be interrupted and taken
up again; a change of the code under test starts it anew. Exit status 1 if a device was given that must not
be, or refused in vain.
"""

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from sim_seeds import code_under_test

from allot.store import open_store

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "bench" / "results" / "guard-sequences.json"
STORES = ("memory", "sqlite", "etcd")
STEPS = 12
CHUNK = 500  # a machine keeps what it has seen of its examples: new ones now and then

NO_DISK = ("--unsafe-no-fsync",)
"""What is at stake here is who is given what, not whether it survives a crash."""

sys.path.insert(0, str(ROOT / "tests"))
sequences: Any = importlib.import_module("apiserver.writing.guard_sequences")
components: Any = importlib.import_module("components")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=10_000, metavar="N", help="on each store")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=["sqlite", "etcd"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    code = code_under_test()
    for store in options.stores:
        for found in run(store, options.sequences, options.seed, recorded(options, code).get(store, {})):
            if code_under_test() != code:
                print("the code changed while it was tested: this run says nothing", file=sys.stderr)
                return 1
            write(options, code, store, found)
    record = json.loads(options.out.read_text())
    print(json.dumps(record, indent=1))
    return 1 if any(one["wrong"] for one in record["stores"].values()) else 0


def recorded(options: argparse.Namespace, code: str) -> dict[str, Any]:
    """What the record says of each store, if it is of this code and seed."""
    if not options.out.exists():
        return {}
    before = json.loads(options.out.read_text())
    same = (before["code"], before["seed"]) == (code, options.seed)
    stores: dict[str, Any] = before["stores"] if same else {}
    return stores


def write(options: argparse.Namespace, code: str, store: str, found: dict[str, Any]) -> None:
    record = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "code": code,
        "seed": options.seed,
        "servers": 2,
        "steps_max": STEPS,
        "stores": {**recorded(options, code), store: found},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


def run(store: str, count: int, first: int, before: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What became of the sequences on one store so far, after each chunk. Ends with the first wrong one."""
    tally: Counter[str] = Counter({name: seen for name, seen in before.items() if isinstance(seen, int)})
    spent_s = tally.pop("wall_s", 0)
    began_s, wrong = time.monotonic(), ""
    with servers_on(store) as servers:
        machine = type("Sequence", (sequences.GuardSequence,), {"servers": servers, "tally": tally})
        while tally["sequences"] < count and not wrong:
            profile = settings(
                max_examples=min(CHUNK, count - tally["sequences"]),
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            try:
                run_state_machine_as_test(seed(first + tally["chunks"])(machine), settings=profile)
            except AssertionError as error:
                wrong = str(error)
                print(wrong, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
            tally["chunks"] += 1
            took_s = spent_s + round(time.monotonic() - began_s)
            print(f"{store}: {tally['sequences']} of {count}, {took_s} s", file=sys.stderr, flush=True)
            yield {"wall_s": took_s, **dict(sorted(tally.items())), "wrong": wrong}


@contextmanager
def servers_on(store: str) -> Iterator[Any]:
    if store == "etcd":
        with components.etcd(extra=NO_DISK) as cluster:
            url = cluster.url("/sequences")
            yield from closing([open_store(url), open_store(url)])
    else:
        with tempfile.TemporaryDirectory() as folder:
            one = open_store(store, Path(folder))
            yield from closing([one, one])


def closing(stores: list[Any]) -> Iterator[Any]:
    servers = sequences.Servers(stores)
    try:
        yield servers
    finally:
        servers.close()


if __name__ == "__main__":
    sys.exit(main())
