"""What people do and what befalls components, decided before the world begins.

A script is a list of steps in order of time. Each belongs to a line of the story (one pod
and what becomes of it, one deployment, one namespace), and each line is drawn by its own
name, so that a line or a step can be left out and the others stay as they were.

    --steps M    plays the first M steps
    Cut          plays some of them: what `shrinking` tries
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import classic_script, compute_script, group_script, mishaps, numeric_pods, numeric_script
from .classic_things import DRIVERS
from .compute_things import RAW
from .lots import Lots
from .naming import components_of, driver_of
from .step import AUTOSCALERS, CLASSIC_DRIVERS, FORGETFUL, PODS, Scope, Step
from .things import CLASS, EXTENDED, PAIR, PART, PORT, SHARED, URGENT

DEFAULT = "default"
QUOTAS = "counted"
"""The namespace in which a quota holds."""
OTHER_SCHEDULER = "other-scheduler"
CLASSIC_PODS = 12
COMPUTE_PODS = 24
NUMERIC_PODS = 14
LARGE_PODS = 6
HARDS = (
    {"pods": 4, "count/resourceclaims.resource.k8s.io": 3, f"requests.{EXTENDED}": 4},
    {"pods": 3, f"{CLASS}.deviceclass.resource.k8s.io/devices": 3},
    {"count/pods": 6, f"requests.{EXTENDED}": 3, "count/configmaps": 5},
)


def write(lots: Lots, scope: Scope) -> list[Step]:
    """The whole script of a seed."""
    steps: list[Step] = []
    lines = [*_lines(scope, scope.agent_nodes(lots))]
    lines += _classic_lines(scope.agent_nodes(lots)) if scope.has_classic(lots) else ()
    lines += _numeric_lines() if scope.has_numeric(lots) else ()
    lines += _compute_lines(scope.agent_nodes(lots)) if scope.has_compute(lots) else ()
    lines += _autoscaler_lines() if scope.has_autoscaler(lots) else ()
    for line, draw in lines:
        steps += draw(lots.generator(f"line {line}"), line, scope)
    return sorted(steps, key=lambda step: (step.at_s, step.line))


Draw = Callable[[random.Random, str, Scope], Iterator[Step]]


def _lines(scope: Scope, agents: Sequence[str]) -> Iterator[tuple[str, Draw]]:
    size = scope.pods / PODS
    bare = round(22 * size)
    for number in range(bare):
        yield f"pod-{number}", _pod
    for number in range(max(1, round(2 * size))):
        yield f"web-{number}", _deployment
        yield f"job-{number}", _job
        yield f"team-{number}", _namespace
        yield f"tree-{number}", _tree
    yield "agent", _daemon_set
    yield "db", _stateful_set
    yield "nightly", _cron_job
    yield "shared", _shared_claim
    yield "thief", _thief
    yield "template", _template
    yield "quota", _quota
    yield "outside", _outside
    yield "spare", _spare
    if scope.node_churn:
        yield "nodes", mishaps.nodes
    if scope.real_scheduler:
        yield "drivers", mishaps.drivers
        yield "health", mishaps.health
        yield "urgent", _urgent
        yield "misuse", _misuse
    for node in agents:
        yield f"machine {node}", mishaps.machines
        yield f"capacity {node}", numeric_script.capacity
    for component in (*scope.components, *components_of(*agents)):
        yield f"trouble {component}", mishaps.trouble
    yield "clock", mishaps.clock
    yield "rivals", mishaps.rivals
    yield "news", mishaps.news


def _classic_lines(agents: Sequence[str]) -> Iterator[tuple[str, Draw]]:
    for number in range(CLASSIC_PODS):
        yield f"classic-{number}", classic_script.pods
    yield "twin", classic_script.twins
    yield "classic claims", classic_script.claims
    yield "talks", classic_script.talks
    yield "vanishing", classic_script.vanishing
    plugins = [driver_of(driver, node) for node in agents for driver in DRIVERS]
    for component in (*CLASSIC_DRIVERS, FORGETFUL, *plugins):
        yield f"trouble {component}", mishaps.trouble


def _compute_lines(agents: Sequence[str]) -> Iterator[tuple[str, Draw]]:
    for number in range(COMPUTE_PODS):
        yield f"card-{number}", compute_script.pods
    yield "card classes", compute_script.classes
    yield "cards", compute_script.exports
    for node in agents:
        yield f"trouble {driver_of(RAW, node)}", mishaps.trouble


def _numeric_lines() -> Iterator[tuple[str, Draw]]:
    for number in range(NUMERIC_PODS):
        yield f"numeric-{number}", numeric_pods.pods
    yield "counters", numeric_pods.capacity
    yield "numeric claims", numeric_pods.claims


def _autoscaler_lines() -> Iterator[tuple[str, Draw]]:
    for number in range(LARGE_PODS):
        yield f"large-{number}", group_script.pods
    for number in range(2):
        yield f"surge-{number}", group_script.surges
    yield "crowd", group_script.crowds
    yield "groups", group_script.groups
    yield "clocks of autoscalers", group_script.clocks
    for component in AUTOSCALERS:
        yield f"trouble {component}", mishaps.trouble


# -- one line each ------------------------------------------------------------------------------


def _pod(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A pod comes, and may go at any moment of its life; another may take its name."""
    at = rng.uniform(0, scope.seconds * 0.75)
    for again in range(2):
        kind = rng.random()
        claims: tuple[str, ...] = ("own",) if kind < 0.6 else ("own", SHARED) if kind < 0.85 else (SHARED,)
        if scope.real_scheduler and rng.random() < 0.5:
            claims = (rng.choice((PAIR, PART, PORT)),)
        of: dict[str, Any] = {"name": line, "claims": claims}
        if scope.real_scheduler and rng.random() < 0.3:
            of["helper"] = True
        if rng.random() < 0.15:
            of["node"] = rng.randrange(100)  # it comes to its node without the scheduler
        elif rng.random() < 0.3 and scope.real_scheduler:
            of |= {"scheduler": OTHER_SCHEDULER} if rng.random() < 0.5 else {"extended": rng.randint(1, 2)}
        yield Step(at, line, "create pod", of)
        if rng.random() < 0.15:
            yield Step(
                at + rng.uniform(0, 4), line, "steal claim", {"pod": line, "replaced": rng.random() < 0.6}
            )
        if rng.random() < 0.4:
            return
        at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 60), rng.uniform(0, scope.seconds * 0.2)))
        yield Step(at, line, "delete pod", {"name": line, "force": rng.random() < 0.3})
        if again or rng.random() < 0.6:
            return
        at += rng.choice((0.0, rng.uniform(0, 60)))


def _deployment(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    at = rng.uniform(0, scope.seconds * 0.4)
    claims = ("own",) if rng.random() < 0.6 else ()
    strategy = "Recreate" if rng.random() < 0.25 else "RollingUpdate"
    of = {"name": line, "replicas": rng.randint(1, 3), "claims": claims, "strategy": strategy}
    yield Step(at, line, "create deployment", of)
    for edition in range(rng.randint(2, 4)):
        at += rng.choice((rng.uniform(0, 20), rng.uniform(0, scope.seconds * 0.15)))
        if rng.random() < 0.5:
            yield Step(at, line, "roll", {"kind": "deployments", "name": line, "edition": edition + 2})
        else:
            yield Step(at, line, "scale", {"name": line, "replicas": rng.randint(0, 4)})
    if rng.random() < 0.6:
        at += rng.uniform(0, scope.seconds * 0.15)
        yield Step(at, line, "delete", {"kind": "deployments", "name": line, "policy": _policy(rng)})
    else:
        yield Step(_at_last(rng, scope), line, "scale", {"name": line, "replicas": 1})


def _job(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    at = rng.uniform(0, scope.seconds * 0.7)
    claims = ("own",) if rng.random() < 0.5 else ()
    completions = rng.randint(1, 4)
    mode = "Indexed" if rng.random() < 0.4 else "NonIndexed"
    of = {"name": line, "completions": completions, "parallelism": rng.randint(1, 2)}
    yield Step(at, line, "create job", {**of, "claims": claims, "mode": mode})
    if rng.random() < 0.3:
        at += rng.uniform(0, 120)
        yield Step(at, line, "suspend", {"name": line, "suspended": True})
        at += rng.uniform(0, 120)
        yield Step(at, line, "suspend", {"name": line, "suspended": False})
    if rng.random() < 0.3:
        at += rng.uniform(0, 300)
        policy = rng.choice(("Background", "Foreground"))
        yield Step(at, line, "delete", {"kind": "jobs", "name": line, "policy": policy})


def _daemon_set(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    at = rng.uniform(0, scope.seconds * 0.5)
    yield Step(
        at, line, "create daemon set", {"name": line, "claims": ("own",) if rng.random() < 0.3 else ()}
    )
    if rng.random() < 0.6:
        at += rng.uniform(0, scope.seconds * 0.2)
        yield Step(at, line, "roll", {"kind": "daemonsets", "name": line, "edition": 2})
    if rng.random() < 0.4:
        at += rng.uniform(0, scope.seconds * 0.2)
        yield Step(at, line, "delete", {"kind": "daemonsets", "name": line, "policy": "Background"})


def _stateful_set(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    at = rng.uniform(0, scope.seconds * 0.5)
    policy = "Parallel" if rng.random() < 0.4 else "OrderedReady"
    claims = ("own",) if rng.random() < 0.4 else ()
    of = {"name": line, "replicas": rng.randint(1, 3), "claims": claims, "policy": policy}
    yield Step(at, line, "create stateful set", of)
    for edition in range(rng.randint(1, 3)):
        at += rng.choice((rng.uniform(0, 20), rng.uniform(0, scope.seconds * 0.1)))
        if rng.random() < 0.5:
            yield Step(at, line, "roll", {"kind": "statefulsets", "name": line, "edition": edition + 2})
        else:
            size = {"name": line, "replicas": rng.randint(0, 4), "kind": "statefulsets"}
            yield Step(at, line, "scale", size)
    if rng.random() < 0.4:
        at += rng.uniform(0, scope.seconds * 0.1)
        yield Step(at, line, "delete", {"kind": "statefulsets", "name": line, "policy": _policy(rng)})


def _cron_job(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """It stops before the end, or nothing would ever be quiet."""
    at = rng.uniform(0, scope.seconds * 0.3)
    policy = rng.choice(("Allow", "Forbid", "Replace"))
    yield Step(at, line, "create cron job", {"name": line, "minutes": rng.randint(2, 10), "policy": policy})
    at = rng.uniform(at, scope.seconds * 0.75)
    if rng.random() < 0.5:
        yield Step(at, line, "suspend", {"name": line, "suspended": True, "kind": "cronjobs"})
    else:
        policy = rng.choice(("Background", "Foreground"))
        yield Step(at, line, "delete", {"kind": "cronjobs", "name": line, "policy": policy})


def _namespace(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A team's namespace with something in it, deleted while it is in use, some at last."""
    at = rng.uniform(0, scope.seconds * 0.6)
    yield Step(at, line, "create namespace", {"name": line})
    for number in range(2):
        at += rng.uniform(0, 30)
        of = {"name": f"{line}-pod-{number}", "claims": ("own",), "namespace": line}
        yield Step(at, line, "create pod", of)
    yield Step(at + 1, line, "plant tree", {"name": f"{line}-tree", "namespace": line})
    if rng.random() < 0.7:
        at += rng.choice((rng.uniform(0, 10), rng.uniform(0, scope.seconds * 0.25)))
    else:
        at = _at_last(rng, scope)
        of = {"name": f"{line}-pod-late", "claims": ("own",), "namespace": line}
        yield Step(at - rng.uniform(30, 60), line, "create pod", of)
    yield Step(at, line, "delete namespace", {"name": line})


def _tree(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Config maps that own each other; what is deleted takes or leaves the others."""
    at = rng.uniform(0, scope.seconds * 0.6)
    yield Step(at, line, "plant tree", {"name": line})
    at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 300), rng.uniform(300, 900)))
    yield Step(at, line, "fell tree", {"name": line, "policy": _policy(rng)})


def _shared_claim(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """The claim that pods share is deleted, in use perhaps, and made again."""
    at = 0.0
    for _ in range(rng.randint(1, 2)):
        at += rng.uniform(scope.seconds * 0.1, scope.seconds * 0.5)
        yield Step(at, line, "delete claim", {"name": SHARED})
        at += rng.uniform(0, 120)
        yield Step(at, line, "create claim", {"name": SHARED})


def _thief(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Somebody deletes generated claims; somebody else puts one of the same name in the place, or a copy
    of another name beside one."""
    for _ in range(rng.randint(1, 2)):
        at = rng.uniform(scope.seconds * 0.05, scope.seconds * 0.9)
        yield Step(at, line, "steal claim", {"lot": rng.randrange(1000), "replaced": rng.random() < 0.4})
    for at in (rng.uniform(scope.seconds * 0.2, scope.seconds * 0.9), _at_last(rng, scope)):
        yield Step(at, line, "copy claim", {"lot": rng.randrange(1000)})


def _template(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Pods may come while there is no template; a template may change."""
    at = rng.uniform(0, scope.seconds * 0.6)
    yield Step(at, line, "delete template")
    yield Step(at + rng.uniform(0, 200), line, "create template", {"edition": 2})


def _quota(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Many want what is left, at the same moment; the limits change, and what a class is called."""
    at = rng.uniform(0, scope.seconds * 0.2)
    yield Step(at, line, "create quota", {"hard": rng.randrange(len(HARDS))})
    for number in range(rng.randint(3, 4)):
        at += rng.uniform(1, scope.seconds * 0.12)
        yield Step(
            at,
            line,
            "rush",
            {"name": f"rush-{number}", "many": rng.randint(3, 5), "lot": rng.randrange(1000)},
        )
        at += rng.uniform(1, 90)
        yield Step(at, line, "clear out", {"lot": rng.randrange(1000)})
    if rng.random() < 0.5:
        at += rng.uniform(1, 60)
        yield Step(at, line, "change quota", {"hard": rng.randrange(len(HARDS))})
    if rng.random() < 0.5:
        at += rng.uniform(1, 60)
        yield Step(at, line, "rename class", {"extended": rng.choice(("", "example.com/other", EXTENDED))})
    at = _at_last(rng, scope)
    late = {"name": "rush-late", "many": rng.randint(3, 5), "lot": rng.randrange(1000)}
    yield Step(at - rng.uniform(30, 60), line, "rush", late)
    yield Step(at, line, "clear out", {"lot": rng.randrange(1000)})


def _outside(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A claim is reserved for something that is no pod."""
    yield Step(
        rng.uniform(0, scope.seconds * 0.7), line, "reserve for an outsider", {"lot": rng.randrange(1000)}
    )


def _spare(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A claim is allocated, nobody ever uses it, and it is deleted."""
    at = 0.0
    for _ in range(2):
        at += rng.uniform(0, scope.seconds * 0.3)
        yield Step(at, line, "create claim", {"name": line})
        at += rng.uniform(0, 20)
        yield Step(at, line, "allocate claim", {"name": line, "node": rng.randrange(100)})
        at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 120)))
        yield Step(at, line, "delete claim", {"name": line})


def _urgent(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """More pods at once than there are pairs of devices, and others must make room for them."""
    began = rng.uniform(scope.seconds * 0.1, scope.seconds * 0.8)
    for number in range(rng.randint(5, 8)):
        at = began + rng.uniform(0, 20)
        of = {"name": f"{line}-{number}", "claims": (PAIR,), "priority": URGENT}
        yield Step(at, line, "create pod", of)
        if rng.random() < 0.3:
            at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 120)))
            yield Step(at, line, "delete pod", {"name": of["name"], "force": rng.random() < 0.3})


def _misuse(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Pods ask for extended resources, and others help themselves to the claims that serve them: they name
    them, before or after the pod is bound, or list themselves as users (one for good is enough)."""
    hows = ["name", "name", "name, on a node", rng.choice(("list", "list and delete the pod"))]
    for number, how in enumerate(hows):
        at = rng.uniform(0, scope.seconds * 0.8)
        owner = f"{line}-{number}"
        yield Step(at, line, "create pod", {"name": owner, "claims": (), "extended": rng.randint(1, 2)})
        is_late = rng.random() < 0.5 and how != "list and delete the pod"
        of = {"owner": owner, "how": how, "is_late": is_late, "lot": rng.randrange(1000)}
        yield Step(at, line, "misuse claim", of)
        if rng.random() < 0.6:
            at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 300)))
            yield Step(at, line, "delete pod", {"name": owner, "force": rng.random() < 0.3})
        if rng.random() < 0.5 and how.startswith("name"):
            at += rng.uniform(0, scope.seconds * 0.2)
            yield Step(at, line, "delete pod", {"name": f"{owner}-stranger", "force": rng.random() < 0.3})


def _at_last(rng: random.Random, scope: Scope) -> float:
    """When no component dies any more: a new leader looks at everything, and would mend what the one
    before it forgot."""
    return scope.seconds * rng.uniform(0.98, 0.995)


def _policy(rng: random.Random) -> str:
    return rng.choice(("Background", "Foreground", "Orphan"))
