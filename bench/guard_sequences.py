"""The device guard against many random sequences of status writes, in one recorded run.

    python bench/guard_sequences.py [--sequences 10000] [--stores sqlite etcd] [--seed 1] [--out FILE]

Every sequence is a dozen steps, some of several writes, in two pools of its own: claims are given devices
and give them back, through two servers on one store, in every version and by every kind of write, alone
and in crowds, while slices change, shrink, vanish and come back. An independent model says what may be
(tests/apiserver/guard_model.py). The record names the code that was tested and how often each answer was
given; stores that were not asked for stay in it as long as the code is the same. Exit status 1 if a device
was given that must not be, or refused in vain.
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
sequences: Any = importlib.import_module("apiserver.guard_sequences")
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
    found = {store: run(store, options.sequences, options.seed) for store in options.stores}
    if code_under_test() != code:
        print("the code changed while it was tested: this run says nothing", file=sys.stderr)
        return 1
    record = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "code": code,
        "seed": options.seed,
        "servers": 2,
        "steps_max": STEPS,
        "stores": {**recorded(options.out, code), **found},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 1 if any(one["wrong"] for one in found.values()) else 0


def recorded(record: Path, code: str) -> dict[str, Any]:
    """What a record says of other stores, if it is of this code."""
    if not record.exists():
        return {}
    before = json.loads(record.read_text())
    stores: dict[str, Any] = before["stores"] if before["code"] == code else {}
    return stores


def run(store: str, count: int, first: int) -> dict[str, Any]:
    """What became of `count` sequences on one store. Ends with the first that went wrong."""
    tally: Counter[str] = Counter()
    began_s, chunk, wrong = time.monotonic(), first, ""
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
                run_state_machine_as_test(seed(chunk)(machine), settings=profile)
            except AssertionError as error:
                wrong = str(error)
                print(wrong, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
            chunk += 1
            took_s = time.monotonic() - began_s
            print(f"{store}: {tally['sequences']} of {count}, {took_s:.0f} s", file=sys.stderr, flush=True)
    return {"wall_s": round(time.monotonic() - began_s), **dict(sorted(tally.items())), "wrong": wrong}


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
