"""Checkers of classic claims see what they are for: each is shown a history that breaks its promise."""

import json
from typing import Any

import pytest

from allot.api import Object
from allot.sim.checkers import Checker, judge
from allot.sim.checkers.classic_claims import ClassicClaims
from allot.sim.checkers.classic_pods import ClassicPods
from allot.sim.checkers.kept_claims import KeptClaims
from allot.sim.checkers.talks import Talks
from allot.sim.recording import Seen

DRIVER = "fabric.example.com"
FINALIZER = f"{DRIVER}/deletion-protection"
LONG_S = 1000.0


def seen(resource: str, name: str, at: float = 0.0, type: str = "MODIFIED", **fields: Any) -> Seen:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **fields.pop("meta", {})}
    if resource in ("nodes", "resourceclasses"):
        del metadata["namespace"]
    return Seen(0, resource, type, Object(json.dumps({"metadata": metadata, **fields}).encode()), at)


def gone(event: Seen) -> Seen:
    return event._replace(type="DELETED")


def claim(
    name: str = "c",
    on: str | None = None,
    users: tuple[str, ...] = (),
    *,
    at: float = 0.0,
    flag: bool = False,
    finalizer: bool = True,
    leaving: bool = False,
    shareable: bool = False,
    mode: str = "WaitForFirstConsumer",
    driver: str = DRIVER,
    results: tuple[Any, ...] = (),
) -> Seen:
    meta: dict[str, Any] = {"finalizers": [FINALIZER] if finalizer else []}
    if leaving:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    status: dict[str, Any] = {}
    if on is not None:
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        allocation = {"nodeSelector": selector, "shareable": shareable, "devices": {"results": list(results)}}
        status = {"driverName": driver, "allocation": allocation}
        status["reservedFor"] = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in users]
    if flag:
        status["deallocationRequested"] = True
    spec = {"resourceClassName": "fabric", "allocationMode": mode}
    return seen("resourceclaims", name, at, meta=meta, spec=spec, status=status)


def structured(name: str = "c", **status: Any) -> Seen:
    return seen("resourceclaims", name, spec={"devices": {"requests": []}}, status=status)


def pod(name: str = "p", *claims: str, node: str = "", at: float = 0.0) -> Seen:
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    spec = {"nodeName": node, "resourceClaims": entries, "containers": []}
    return seen("pods", name, at, spec=spec, status={})


def talk(
    name: str = "p", selected: str = "", answers: tuple[str, ...] = (), *, of: str = "", at: float = 0.0
) -> Seen:
    meta = {"uid": "uid-talk", "ownerReferences": [{"kind": "Pod", "name": name, "uid": f"uid-{of or name}"}]}
    said = {"resourceClaims": [{"name": one, "unsuitableNodes": []} for one in answers]}
    return seen("podschedulings", name, at, meta=meta, spec={"selectedNode": selected}, status=said)


def node(name: str = "a", **spec: Any) -> Seen:
    return seen("nodes", name, spec=spec)


CLASS = seen("resourceclasses", "fabric", driverName=DRIVER)


def said(checker: Checker, *history: Seen) -> list[str]:
    return [one.partition(": ")[2] for one in judge(history, [checker])]


GOOD = [
    claim(finalizer=False),
    claim(),
    claim(on="a", users=("p",)),
    claim(on="a"),
    claim(on="a", flag=True),
    claim(),
    claim(finalizer=False),
]


def test_a_claim_that_is_allocated_used_and_given_back_by_the_rules_is_fine():
    assert said(ClassicClaims(), *GOOD) == []
    assert said(ClassicClaims(), structured(allocation={"devices": {}})) == []


BROKEN_CLAIMS = [
    ([claim(), structured()], "C8: claim c is of another shape"),
    ([structured(driverName=DRIVER)], "C8: claim c is structured"),
    ([structured(deallocationRequested=True)], "C8: claim c is structured"),
    ([claim(), claim(on="a", results=({"device": "d"},))], "C8: claim c was allocated by somebody else"),
    ([claim(), claim(on="a", driver="")], "C8: claim c was allocated by somebody else"),
    ([claim(finalizer=False), claim(on="a")], "C9: claim c was allocated before"),
    ([claim(), claim(on="a"), claim(on="a", finalizer=False)], "C9: claim c is allocated without"),
    ([claim(), claim(on="a", users=("p", "q"))], "C2: claim c has 2 reservations"),
    (
        [claim(), claim(on="a", users=("p",), flag=True)],
        "C10: claim c is to be deallocated and is reserved",
    ),
    ([claim(), claim(flag=True)], "C10: claim c is to be deallocated and is not allocated"),
    ([claim(), claim(on="a", flag=True), claim(on="a")], "C10: claim c was to be deallocated, and keeps"),
    ([claim(), claim(on="a", leaving=True)], "C11: claim c is to be given back"),
    ([claim(), claim(on="a", flag=True)], "C11: claim c is to be given back"),
    ([claim(leaving=True)], "C9: claim c is kept by a finalizer"),
]


@pytest.mark.parametrize(("history", "broken"), BROKEN_CLAIMS)
def test_what_breaks_the_rules_of_classic_claims_is_said(history: list[Seen], broken: str):
    assert any(one.startswith(broken) for one in said(ClassicClaims(), *history)), said(
        ClassicClaims(), *history
    )


def test_a_talk_by_the_rules_is_fine():
    several = [claim("c"), claim("d"), pod("p", "c", "d")]
    checker = Talks()
    found = said(
        checker,
        *several,
        talk(at=LONG_S),
        talk(answers=("c", "d"), at=LONG_S),
        talk(selected="a", answers=("c", "d"), at=LONG_S),
        pod("p", "c", "d", node="a"),
        gone(talk()),
    )
    assert found == []
    assert checker.chosen == 1
    one = [claim("c"), pod("p", "c"), talk(selected="a", at=LONG_S), gone(talk())]
    assert said(Talks(), *one) == []


BROKEN_TALKS = [
    (
        [claim("c"), claim("d"), pod("p", "c", "d"), talk(selected="a", answers=("c",), at=LONG_S)],
        "P6: a was selected for pod p, and nobody has answered for d",
    ),
    (
        [pod("p"), talk(of="former"), talk(selected="a", of="former", at=LONG_S)],
        "P5: podscheduling p of a former",
    ),
    ([pod("p"), talk(), gone(pod("p"))], "P5: podscheduling p is there, and its pod is gone"),
    ([pod("p"), talk(), pod("p", node="a")], "P5: podscheduling p is there, and its pod is bound"),
]
SHOWN = {words.partition(":")[0] for _, words in (*BROKEN_CLAIMS, *BROKEN_TALKS)}
"""The promises of which a history here is found to break them."""


@pytest.mark.parametrize(("history", "broken"), BROKEN_TALKS)
def test_what_breaks_the_rules_of_talks_is_said(history: list[Seen], broken: str):
    assert any(one.startswith(broken) for one in said(Talks(), *history)), said(Talks(), *history)


@pytest.mark.parametrize(
    ("history", "is_wrong"),
    [
        ([claim("c"), pod("p", "c")], True),
        ([claim("c", "b"), pod("p", "c")], True),  # it lies elsewhere, idle: it can be moved
        ([claim("c", "b", mode="Immediate"), pod("p", "c")], False),
        ([claim("c", "a", ("q",)), pod("p", "c")], False),
        ([claim("c", "a", ("q",), shareable=True), pod("p", "c")], True),
        ([claim("c", leaving=True), pod("p", "c")], False),
        (
            [claim("x", "a", ("q",)), claim("y", "a", ("r",)), claim("c"), pod("p", "c")],
            False,
        ),  # the node is full
        ([claim("x", "a", ("q",)), claim("c"), claim("d"), pod("p", "c", "d")], False),
        ([pod("p", "c")], False),
    ],
)
def test_who_waits_for_what_can_be_had_is_told(history: list[Seen], is_wrong: bool):
    found = said(ClassicPods(), CLASS, node("a"), *history)
    assert found == (["P2: pod p waits, and its claims can be had on a"] if is_wrong else [])
    assert said(ClassicPods(), CLASS, node("a", taints=[{"key": "k"}]), *history) == []


def test_a_pod_that_waits_and_keeps_a_claim_is_told():
    history = [claim("c", "a", ("p",)), claim("d", "a", ("q",)), pod("p", "c", "d"), pod("q", "c", "d")]
    assert said(ClassicPods(), CLASS, node("a"), *history) == [
        "P1: claim c is reserved for p, which waits",
        "P1: claim d is reserved for q, which waits",
    ]


@pytest.mark.parametrize(
    ("after", "is_wrong"),
    [
        ([claim("c", "a", at=LONG_S)], True),
        ([claim("c", "a", at=1.0)], False),
        ([pod("p", "c", node="a"), claim("c", "a", at=LONG_S)], False),
        ([gone(pod("p", "c")), claim("c", "a", at=LONG_S)], False),
    ],
)
def test_a_pod_that_waits_and_keeps_a_claim_for_long_is_told(after: list[Seen], is_wrong: bool):
    found = said(KeptClaims(), pod("p", "c"), claim("c", "a", ("p",)), *after)
    assert found == (["TALK6: pod p waited for 1000 s and kept claim c"] if is_wrong else [])


def test_a_pod_that_is_bound_where_its_claim_is_not_is_told():
    history = [claim("c", "b", ("p",)), pod("p", "c"), pod("p", "c", node="a")]
    assert said(ClassicPods(), node("a"), *history) == ["ALLOC: pod p is on a, and c on {'b'}"]
