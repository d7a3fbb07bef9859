"""allot defrag: how fragmented devices are, and the fewest moves after which something fits.

Without more, the largest size that fits in each sort of pool, against what as much free capacity would allow.
With `--for`, `--pod` or `--profile`, which pods to evict, one after the other, so that it fits; `--apply`
then does so, and asks before each eviction. The exit status is 0 when it fits, or would after these moves, 3
when no moves were found; 1 when it depends on what may not be read, or reality was not as planned; 2 when
what is asked for is wrong.
"""

import argparse
import json
import sys

from allot import planning, scheduler
from allot.allocation import POLICIES
from allot.api import Gates
from allot.base import SystemClock
from allot.client import Client
from allot.planning import defrag

from . import asking, flags
from .scheduler import deciding, scoring_of

NO_PLAN = 3
MOVES_MAX = 4
PATIENCE_S = 300.0


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--for",
        type=flags.path,
        metavar="FILE",
        dest="file",
        help="with pods, workloads, claims or templates",
    )
    what.add_argument("--pod", type=flags.object_name, metavar="NAME", help="that waits in the cluster")
    what.add_argument(
        "--profile",
        type=flags.something,
        metavar="[COUNTx]NAME",
        help="so many devices of a class, or of a profile: 3g.40gb, 4xgpu.example.com",
    )
    parser.add_argument("--dump", type=flags.path, metavar="FILE", help="ask about what `allot dump` wrote")
    parser.add_argument(
        "--moves",
        type=flags.count,
        default=MOVES_MAX,
        metavar="N",
        help="that a plan may have at most (default: %(default)s)",
    )
    parser.add_argument(
        "--priority",
        type=int,
        metavar="N",
        help="pods up to this priority may be moved (default: that of the pod that is to fit, or 0)",
    )
    parser.add_argument(
        "--evict-bare", action="store_true", help="also pods that nobody makes anew: they are gone then"
    )
    parser.add_argument("--apply", action="store_true", help="evict them, as disruption budgets allow")
    parser.add_argument("--yes", action="store_true", help="with --apply: do not ask before each eviction")
    parser.add_argument(
        "--patience",
        type=flags.seconds,
        default=PATIENCE_S,
        metavar="S",
        help="with --apply: how long a budget and a replacement are waited for (default: %(default).0f)",
    )
    asking.arguments(parser)
    deciding(parser)


def run(options: argparse.Namespace) -> int:
    try:
        settings = scheduler.Settings(policy=POLICIES[options.policy], scoring=scoring_of(options))
    except ValueError as wrong:
        return _wrong(str(wrong))
    is_asked = bool(options.file or options.pod or options.profile)
    if options.apply and not is_asked:
        return _wrong("--apply needs --for, --pod or --profile: what is to fit")
    if options.apply and options.dump:
        return _wrong("--apply is about a cluster: a dump cannot be changed")
    if options.apply and not options.yes and not sys.stdin.isatty():
        return _wrong("--apply asks before each eviction, and there is nobody to ask: --yes does without")
    if options.dump:
        try:
            dump = planning.load(options.dump)
        except planning.BadDump as wrong:
            return _wrong(str(wrong))
        return _Question(options, dump, options.namespace or "default", settings).answer()

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        asked = _Question(options, await planning.take(client, gates, namespace), namespace, settings)
        status = asked.answer()
        if status == 0 and options.apply and isinstance(asked.plan, defrag.Plan):
            return await _applied(client, asked, asked.plan)
        return status

    return asking.run("defrag", options, question)


def _wrong(words: str) -> int:
    print(f"allot defrag: {words}", file=sys.stderr)
    return 2


class _Question:
    def __init__(
        self,
        options: argparse.Namespace,
        dump: planning.Dump,
        namespace: str,
        settings: scheduler.Settings,
    ) -> None:
        self.options = options
        self.gates = dump.gates
        self.namespace = namespace
        self._cluster = planning.Cluster(dump.gathered, dump.gates)
        self._settings = settings
        self.plan: defrag.Plan | defrag.NoPlan | None = None

    def answer(self) -> int:
        reading = self._cluster.reading
        if reading.hides_supply:
            asking.tell_unread("defrag", reading.hides_supply)
            return asking.UNANSWERED
        asking.tell_unread("defrag", reading.hides_use)
        if not (self.options.file or self.options.pod or self.options.profile):
            found = defrag.fragmentation(reading.snapshot)
            print(json.dumps(found.as_json()) if self.options.json else defrag.telling.report(found))
            return asking.UNANSWERED if reading.hides_use else 0
        try:
            course = self.course()
        except (planning.BadChange, planning.BadManifest) as wrong:
            return _wrong(str(wrong))
        self.plan = defrag.plan(course, self.options.moves)
        print(json.dumps(self.plan.as_json()) if self.options.json else defrag.telling.planned(self.plan))
        if reading.hides_use:
            return asking.UNANSWERED
        return 0 if isinstance(self.plan, defrag.Plan) else NO_PLAN

    def course(self) -> defrag.Course:
        """Raises BadChange and BadManifest."""
        options, clock = self.options, SystemClock()
        if options.pod:
            wanted = defrag.waiting(self._cluster, options.pod, self.namespace)
        elif options.profile:
            wanted = defrag.of_profile(self._cluster, options.profile, self.namespace)
        else:
            manifests = planning.manifests.read(options.file, self.gates, clock, self.namespace)
            wanted = defrag.from_manifests(self._cluster, manifests)
        priority = wanted.priority if options.priority is None else options.priority
        terms = defrag.Terms(priority, options.evict_bare)
        return defrag.Course(wanted.reading, wanted.pods, terms, clock.now(), self._settings)

    async def anew(self, client: Client) -> "_Question":
        dump = await planning.take(client, self.gates, self.namespace)
        return _Question(self.options, dump, self.namespace, self._settings)


async def _applied(client: Client, asked: _Question, plan: defrag.Plan) -> int:
    async def look() -> defrag.Course:
        return (await asked.anew(client)).course()

    applying = defrag.Applying(
        client,
        SystemClock(),
        look,
        agrees=lambda step: asked.options.yes or _agrees(step),
        tell=lambda words: print(words, file=sys.stderr if asked.options.json else sys.stdout, flush=True),
        patience_s=asked.options.patience,
    )
    try:
        places = await applying.apply(plan.steps)
    except (defrag.Stopped, planning.BadChange) as stopped:
        print(f"allot defrag: stopped: {stopped}", file=sys.stderr)
        return asking.UNANSWERED
    for pod, node in places.items():
        applying.tell(f"fits     {pod}  on {node}")
    return 0


def _agrees(step: defrag.Step) -> bool:
    then = f"another goes to {step.to}" if step.to else "nobody makes it anew"
    print(f"evict {step.pod.key} from {step.node} ({then})? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
