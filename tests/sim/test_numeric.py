"""Worlds with numeric claims: two schedulers, capacity that shrinks, and checkers that would see it."""

from typing import Any

from allot.api import encode
from allot.api.object import Object
from allot.sim import Scope, run_one
from allot.sim.checkers import judge
from allot.sim.checkers.numeric_claims import NumericClaims
from allot.sim.lots import Lots
from allot.sim.recording import Seen

DRIVER, FINALIZER = "frob.example.com", "numeric.dra.k8s.io/delete-protection"
SHOWN = {"D6"}
"""Promises that histories here break."""
WORLD = Scope(seconds=900, pods=5, real_scheduler=True, agents=0.0, classic=0.0, numeric=1.0)


def test_a_world_with_shrinking_capacity_keeps_its_promises():
    """4381-BCT-13, 4381-SCH-21, 4381-FAIL-01, 4381-FAIL-03, 4381-FAIL-10, 4381-FAIL-11, 4381-FAIL-12,
    4381-DEA-10."""
    report = run_one(2, WORLD)
    assert report.wrong == []
    held = [one for one in report.history if one.resource == "resourceclaims" and _handle(one)]
    assert len(held) > 5


def _handle(seen: Seen) -> Any:
    return ((seen.fields.get("status") or {}).get("allocation") or {}).get("resourceHandle")


def test_half_of_the_worlds_have_them():
    found = [Scope(real_scheduler=True).has_numeric(Lots(seed)) for seed in range(200)]
    assert 60 < sum(found) < 140
    assert not Scope(real_scheduler=True, numeric=0.0).has_numeric(Lots(1))


# -- the checker sees what is wrong ---------------------------------------------------------------


class History:
    def __init__(self) -> None:
        self.seen: list[Seen] = []

    def says(self, resource: str, name: str, type: str = "MODIFIED", **fields: Any) -> "History":
        number = len(self.seen) + 1
        metadata = {"name": name, "uid": f"uid-{name}", **fields.pop("metadata", {})}
        whole = Object(encode({"metadata": metadata, **fields}))
        self.seen.append(Seen(number, resource, type, whole, float(number)))
        return self

    def capacity(self, count: int) -> "History":
        one = {"id": "c0", "data": {"count": count}}
        return self.says("noderesourcecapacities", "cap", nodeName="n", driverName=DRIVER, instances=[one])

    def claim(self, name: str, count: int | None, **parts: Any) -> "History":
        result = {
            "driver": DRIVER,
            "pool": "numeric/n",
            "device": "c0",
            "consumedCapacity": {"x": str(count)},
        }
        held = {"resourceHandle": "{}", "devices": {"results": [result]}}
        status = {"allocation": held, "reservedFor": parts.pop("users", [{"uid": "u"}])} if count else {}
        metadata = {"finalizers": parts.pop("finalizers", [FINALIZER]), **parts.pop("metadata", {})}
        spec = {"resourceClassName": "frob", **parts}
        return self.says("resourceclaims", name, metadata=metadata, spec=spec, status=status)

    def wrong(self) -> list[str]:
        return [one.partition(": ")[2] for one in judge(self.seen, [NumericClaims()])]


def test_more_than_there_is_is_seen_when_it_is_written_and_not_when_capacity_shrinks():
    assert History().capacity(4).claim("a", 2).claim("b", 2).capacity(1).wrong() == []
    (told,) = History().capacity(4).claim("a", 2).claim("b", 3).wrong()
    assert told.startswith("D6: with claim b 5")
    (told,) = History().capacity(1).claim("a", 2).wrong()
    assert told.startswith("D6")


def test_allocations_without_a_finalizer_or_changed_or_left_are_seen():
    (told,) = History().capacity(4).claim("a", 1, finalizers=[]).wrong()
    assert told.startswith("C8: claim a is allocated without")
    (told,) = History().capacity(4).claim("a", 1).claim("a", 2).wrong()
    assert told.startswith("C8: the allocation of claim a was changed")
    told = History().capacity(4).claim("a", 1).claim("a", 1, users=[]).wrong()
    assert told == ["C11: nobody uses claim a, and it keeps what it has"]
    kept = History().capacity(4).claim("a", 1, allocationMode="Immediate")
    assert kept.claim("a", 1, users=[], allocationMode="Immediate").wrong() == []
    told = kept.claim("a", None, allocationMode="Immediate", finalizers=[]).wrong()
    assert told == ["C11: immediate claim a was given back, and nobody deleted it"]


def test_a_claim_that_is_protected_and_has_nothing_is_seen_at_rest():
    """4381-ALC-14."""
    half_done = History().capacity(4).claim("a", None)
    assert half_done.wrong() == ["C11: claim a is protected, and has nothing"]
    assert half_done.claim("a", 1).wrong() == []
