"""kill -9 in the middle of concurrent writes, again and again, and account for every write.

A child opens the store and writes with many tasks at once. Each task numbers its writes
and reports a write when the store has acknowledged it. The parent kills the child at a
random moment, opens the file and reads the history of the round:

    lost        an acknowledged write that is not there, or at another revision
    doubled     a write that is there twice
    stray       a write that nobody can have asked for: a task has one on its way at most
    went_back   the revision is smaller than one that was acknowledged

    python bench/crash_rounds.py --rounds 100
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allot.store import Committed, Compare, Delete, Event, Put, Store, Write, open_store

STARTED_S = 60.0
TASKS = 32
KEYS_PER_TASK = 5
DELETE_EVERY = 7
FILLING = b"." * 2000


@dataclass
class Tally:
    rounds: int = 0
    acknowledged: int = 0
    unacknowledged_but_written: int = 0
    lost: int = 0
    doubled: int = 0
    stray: int = 0
    went_back: int = 0
    reopen_s_max: float = 0.0
    problems: list[str] = field(default_factory=list)


# -- the child -----------------------------------------------------------------------------------------


async def write_for_ever(path: Path, start: int) -> None:
    store = open_store(f"sqlite:{path}")
    await asyncio.gather(*(write_one_after_another(store, task, start) for task in range(TASKS)))


async def write_one_after_another(store: Store, task: int, start: int) -> None:
    revisions: dict[str, int] = {}
    for page in (await store.range(f"/{task}/")).entries:
        revisions[page.key] = page.revision
    number = start
    while True:
        write = numbered(task, number, revisions)
        answer = await store.transact([Compare(write.key, revisions.get(write.key, 0))], [write])
        if not isinstance(answer, Committed):
            raise AssertionError(f"nobody else writes {write.key}: {answer}")
        os.write(1, f"{task} {number} {answer.revision}\n".encode())
        revisions[write.key] = answer.revision if isinstance(write, Put) else 0
        number += 1


def numbered(task: int, number: int, revisions: dict[str, int]) -> Write:
    """The task's write with this number. A deletion carries no number, so it is never two in a row."""
    key = f"/{task}/{number % KEYS_PER_TASK}"
    if number % DELETE_EVERY == 0 and revisions.get(key):
        return Delete(key)
    return Put(key, b"%d %d " % (task, number) + FILLING)


# -- the parent ----------------------------------------------------------------------------------------


def one_round(path: Path, start: int, after_s: float, before: int, tally: Tally) -> int:
    """Start, kill, open, check; the revision that the file is at."""
    child = [sys.executable, __file__, "--child", str(path), "--start", str(start)]
    with tempfile.TemporaryFile() as reports:
        process = subprocess.Popen(child, stdout=reports)
        if tally.rounds % 2 == 0:  # else it may be killed while it opens the file, too
            wait_for_a_report(process, reports.fileno())
        time.sleep(after_s)
        if process.poll() is not None:
            raise SystemExit(f"the writing process ended by itself with {process.returncode}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        reports.seek(0)
        complete = reports.read().decode().rpartition("\n")[0]
    acknowledged = [tuple(map(int, line.split())) for line in complete.splitlines()]
    revision, events = asyncio.run(history(path, before, tally))
    tally.rounds += 1
    tally.acknowledged += len(acknowledged)
    if acknowledged and revision < max(one[2] for one in acknowledged):
        tally.went_back += 1
    account(events, acknowledged, tally)
    return revision


def wait_for_a_report(process: subprocess.Popen[bytes], reports: int) -> None:
    """A busy machine may need longer to start the child than it is given to write."""
    end_s = time.monotonic() + STARTED_S
    while not os.fstat(reports).st_size and process.poll() is None and time.monotonic() < end_s:
        time.sleep(0.01)


async def history(path: Path, before: int, tally: Tally) -> tuple[int, list[Event]]:
    """Everything that happened since the revision `before`."""
    opened = time.perf_counter()
    store = open_store(f"sqlite:{path}")
    tally.reopen_s_max = max(tally.reopen_s_max, time.perf_counter() - opened)
    revision = await store.revision()
    if revision < before:
        tally.went_back += 1
    watch, events = store.watch("", before), list[Event]()
    while watch.progress < revision:
        events += await anext(watch)
    await store.compact(revision)
    await store.close()
    return revision, events


def account(events: Sequence[Event], acknowledged: Sequence[Sequence[int]], tally: Tally) -> None:
    """Lay the history beside the reports, task by task."""
    written: dict[int, list[Event]] = defaultdict(list)
    reported: dict[int, list[int]] = defaultdict(list)
    for event in events:
        written[int(event.key.split("/")[1])].append(event)
    for task, _, revision in acknowledged:
        reported[task].append(revision)
    for task in written.keys() | reported.keys():
        found, told = [event.revision for event in written[task]], reported[task]
        if found[: len(told)] != told:
            tally.lost += 1
            tally.problems.append(f"task {task}: told {told[-3:]}, found {found[-3:]}")
        if len(found) > len(told) + 1:
            tally.stray += 1
        tally.unacknowledged_but_written += max(0, len(found) - len(told))
        values = [event.value for event in written[task] if event.value is not None]
        if len(set(values)) != len(values):
            tally.doubled += 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        asyncio.run(write_for_ever(asked.child, asked.start))
    rng, tally = random.Random(asked.seed), Tally()
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        revision = 1
        for number in range(asked.rounds):
            after_s = rng.uniform(0.25, 0.8)
            revision = one_round(Path(folder) / "store.db", number * 1_000_000, after_s, revision, tally)
    print(json.dumps({"benchmark": "crash_rounds", **vars(tally)}, indent=2))
    return 1 if tally.lost or tally.doubled or tally.stray or tally.went_back else 0


if __name__ == "__main__":
    sys.exit(main())
