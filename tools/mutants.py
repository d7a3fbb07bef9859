"""Planted bugs, each of which the allocator's fast tests must catch.

    python tools/mutants.py            # all of them; prints a table
    python tools/mutants.py undo       # those with a name that contains "undo"

Every mutant is one small edit of one file. It is made in a copy of the tree, never in
the tree itself, and the tests are run there. Exit status 1 if a mutant survives, or if
its text is no longer found where it was: then the list wants looking after, or it
proves nothing.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOCATION = "src/allot/allocation"
TIMEOUT_S = 900

TESTS = (
    "tests/allocation/test_stories.py",
    "tests/allocation/test_against_oracle.py",
    "tests/allocation/test_explanation.py",
    "tests/allocation/test_problem.py",
    "tests/allocation",
)
"""In the order in which they are likely to notice; the last line is all of them."""

NEAREST = {
    "explanation.py": "tests/allocation/test_explanation.py",
    "remedies.py": "tests/allocation/test_explanation.py",
    "problem.py": "tests/allocation/test_problem.py",
}
"""Where to look first for what is none of the search's business."""


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    # What is published
    Mutant(
        "pool: counters elsewhere are not known",
        "pool.py",
        "for shelf in (*kept, *others) for one in shelf.counters",
        "for shelf in kept for one in shelf.counters",
    ),
    Mutant(
        "pool: counters reach only selected nodes",
        "pool.py",
        "if self.counters:  # needed wherever",
        "if False:  # needed wherever",
    ),
    Mutant(
        "capacity: a request may be below the minimum",
        "capacity.py",
        "    if requested < span.min:\n",
        "    if False:\n",
    ),
    Mutant(
        "expression: a derived list has a type without its gate",
        "expression.py",
        "        if lists:\n",
        "        if True:\n",
    ),
    Mutant(
        "pool: an older generation counts too",
        "pool.py",
        "kept = [shelf for shelf in reaching if shelf.generation == newest]",
        "kept = list(reaching)",
    ),
    Mutant(
        "pool: incomplete is complete enough",
        "pool.py",
        "return PoolView(self.id, incomplete=True)",
        "pass",
    ),
    Mutant(
        "pool: a newer generation elsewhere is not looked for",
        "pool.py",
        "if any(generation > newest for generation in self._generations):",
        "if False:",
    ),
    Mutant(
        "pool: duplicate names are fine",
        "pool.py",
        "if len(set(names)) < len(names):",
        "if False:",
    ),
    Mutant(
        "pool: slices in the order of arrival",
        "pool.py",
        "kept.sort(key=lambda shelf: shelf.name)",
        "pass",
    ),
    Mutant(
        "inventory: devices to be made ready are not last",
        "inventory.py",
        "pools = tuple(sorted(views, key=lambda view: (view.binding, view.id)))",
        "pools = tuple(sorted(views, key=lambda view: view.id))",
    ),
    Mutant(
        "pool: devices on other nodes draw nothing",
        "pool.py",
        "yield from self.elsewhere[name]",
        "pass",
    ),
    # What a device is like
    Mutant(
        "kind: a bare name counts under any domain",
        "kind.py",
        "if identifier and domain == self.driver:",
        "if identifier:",
    ),
    Mutant(
        "question: taints are not looked at",
        "question.py",
        "return features.device_taints and untolerated(device, want) is not None",
        "return False",
    ),
    Mutant(
        "question: NoExecute keeps nobody away",
        "question.py",
        'if taint.effect in ("NoSchedule", "NoExecute") and not any(',
        'if taint.effect in ("NoSchedule",) and not any(',
    ),
    Mutant(
        "question: binding conditions need no gate",
        "question.py",
        "if kind.binding and not view.features.device_binding_and_status:",
        "if False:",
    ),
    Mutant(
        "question: a device chooses no nodes",
        "question.py",
        "if not usable(device, view.node):",
        "if False:",
    ),
    Mutant(
        "question: all devices of a pool that is not whole",
        "question.py",
        "if pool.incomplete or pool.invalid:",
        "if pool.invalid:",
    ),
    Mutant(
        "question: an overdrawn pool goes on",
        "question.py",
        "return Stock(left, groups, any(amount < 0 for amount in left.values()))",
        "return Stock(left, groups, overdrawn=False)",
    ),
    # Capacity
    Mutant(
        "capacity: rounded down",
        "capacity.py",
        "return smallest + step * max(0, -(-(requested - smallest) // step))",
        "return smallest + step * max(0, (requested - smallest) // step)",
    ),
    Mutant(
        "capacity: what is not requested costs nothing",
        "capacity.py",
        "return policy.default if policy is not None and policy.default is not None else capacity.value",
        "return policy.default if policy is not None and policy.default is not None else Quantity(0)",
    ),
    Mutant(
        "capacity: above the maximum",
        "capacity.py",
        "if span.max is not None and part > span.max:",
        "if False:",
    ),
    # What was chosen before
    Mutant(
        "state: a device may be given twice",
        "state.py",
        "return holders is not None or at in self.question.owned",
        "return at in self.question.owned",
    ),
    Mutant(
        "state: what others hold may be given",
        "state.py",
        "return holders is not None or at in self.question.owned",
        "return holders is not None",
    ),
    Mutant(
        "state: an admin takes a device twice for one claim",
        "state.py",
        "return holders is not None and alternative.claim in holders",
        "return False",
    ),
    Mutant(
        "state: undo forgets shared capacity",
        "state.py",
        "self._consume(at, parts, -1)",
        "pass",
    ),
    Mutant(
        "state: undo forgets constraints",
        "state.py",
        "self.rules[alternative.claim] = rules\n        if parts is None:",
        "if parts is None:",
    ),
    Mutant(
        "state: undo forgets counters",
        "state.py",
        "self._draw(at, self.question.devices[at].kind, -1)",
        "pass",
    ),
    Mutant(
        "state: undo forgets groups",
        "state.py",
        "                self._groups[key] = before",
        "                pass",
    ),
    Mutant(
        "state: every share draws from counters",
        "state.py",
        "charged = bool(kind.consumption) and not self.is_charged(at)",
        "charged = bool(kind.consumption)",
    ),
    Mutant(
        "state: distinct values may repeat",
        "state.py",
        "return None if not value or agreed & value else agreed | value",
        "return agreed | value",
    ),
    Mutant(
        "state: the first device decides what matches",
        "state.py",
        "return value if agreed is None else (agreed & value) or None",
        "return value if agreed is None else (agreed if agreed & value else None)",
    ),
    # The search
    Mutant(
        "search: orders instead of combinations",
        "search.py",
        "return iter(row.worth_trying[bisect_right(row.worth_trying, last) :])",
        "return iter(row.worth_trying)",
    ),
    Mutant(
        "search: no limit on the devices of a claim",
        "search.py",
        "if self._state.sizes[alternative.claim] + count > RESULTS_MAX:",
        "if False:",
    ),
    Mutant(
        "search: failed states are remembered without their constraints",
        "search.py",
        "            state.rules[frame.claim],\n",
        "",
    ),
    Mutant(
        "search: an invalid pool is no error",
        "search.py",
        "if question.has_invalid_pool:",
        "if False:",
    ),
    Mutant(
        "search: errors are never risked",
        "search.py",
        "risky = question.is_risky()",
        "risky = False",
    ),
    Mutant(
        "flow: nobody moves aside",
        "flow.py",
        "came_from[user] = (one, place)\n                        waiting.append(user)",
        "came_from[user] = (one, place)",
    ),
    Mutant(
        "flow: exactly enough is too little",
        "flow.py",
        "return missing <= 0",
        "return missing < 0",
    ),
    Mutant(
        "bounds: what is drawn from several sets is one piece",
        "bounds.py",
        "frozenset(n for one in draws for n in one.get(name, ())) - {0}",
        "frozenset(sum(one.get(name, ())) for one in draws) - {0}",
    ),
    # The result
    Mutant(
        "result: a claim's configuration for a subrequest that was not chosen",
        "result.py",
        "if requests and not concerned:",
        "if False:",
    ),
    Mutant(
        "result: devices that bind to a node are usable anywhere",
        "result.py",
        "if pick.device.node_name is not None or pick.device.kind.description.binds_to_node:",
        "if pick.device.node_name is not None:",
    ),
    # Explanations and problems
    Mutant(
        "remedies: suggested without trying",
        "remedies.py",
        "if change.about not in found and trials.fits(change):",
        "if change.about not in found:",
    ),
    Mutant(
        "spelling: keys of objects may be anything",
        "spelling.py",
        'yield f"{where}.", key, shape.fields',
        "pass",
    ),
    # What an answer may cost
    Mutant("budget: work is free", "budget.py", "self._left -= units", "self._left -= 0"),
    Mutant(
        "flow: a piece larger than the amount may be used",
        "flow.py",
        "fitting = [size for size in sizes if size <= amount]",
        "fitting = list(sizes)",
    ),
    Mutant(
        "explanation: the first device of each reason is forgotten",
        "explanation.py",
        "yield Group(reason, ids, detail, tuple(holders), members[0].passed)",
        "yield Group(reason, ids[1:], detail, tuple(holders), members[0].passed)",
    ),
    Mutant(
        "problem: amounts are not checked",
        "problem.py",
        'raise NotAProblem(where, f"expected a quantity, got {_type(value)}")',
        "return Quantity(0)",
    ),
)


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    outcome: str  # caught, survived, lost
    by: str = ""
    seconds: float = 0.0


def judged(mutant: Mutant) -> Verdict:
    """Plant the bug in a copy and see whether a test notices."""
    source = (ROOT / ALLOCATION / mutant.file).read_text()
    if source.count(mutant.old) != 1:
        return Verdict(mutant, "lost", f"found {source.count(mutant.old)} times")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
        for part in ("src", "tests/allocation", "pyproject.toml"):
            (copy / part).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, copy / part)
        shared = ROOT.parent / "shared"
        if shared.is_dir():
            (Path(folder) / "shared").symlink_to(shared)
        (copy / ALLOCATION / mutant.file).write_text(source.replace(mutant.old, mutant.new))
        first = NEAREST.get(mutant.file)
        for tests in (first, *TESTS) if first else TESTS:
            caught = noticed(copy, tests)
            if caught:
                return Verdict(mutant, "caught", caught, time.monotonic() - started)
    return Verdict(mutant, "survived", "", time.monotonic() - started)


def noticed(copy: Path, tests: str) -> str:
    """The test that failed, or empty."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:allot", tests]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{copy / 'src'}:{copy / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "does not come back"
    if run.returncode == 0:
        return ""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split("::")[-1].split(" - ")[0][:70] if failed else f"exit status {run.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.words or any(word in m.name for word in options.words)]
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for verdict in pool.map(judged, chosen):
            verdicts.append(verdict)
            name, outcome = verdict.mutant.name, verdict.outcome
            print(f"{outcome:9} {name:62} {verdict.seconds:5.1f} s  {verdict.by}", flush=True)
    wrong = [verdict for verdict in verdicts if verdict.outcome != "caught"]
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} caught")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
