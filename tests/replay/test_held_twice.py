"""D1, as a record tells it: a device that two claims have at once is found, and what only looks so is not."""

from pathlib import Path

from msgspec import Raw
from msgspec.structs import replace

from allot.api import Gates, Object, encode, resource
from allot.informers import ResourceId
from allot.replay import read, replayed, telling
from allot.replay.keeping import term_of
from allot.replay.lines import AnyLine, Decided, Flight, Set, Verdict
from allot.replay.world import HeldTwice
from allot.scheduler import CLAIMS, PODS, Settings
from scheduler.cluster import Cluster

from .recorded import tell
from .test_onlooker import DRIVER, NOW, Watched, claim, pod

GPU_0 = f"{DRIVER}/a/gpu-0"


def seen_twice() -> list[AnyLine]:
    """Somebody else's scheduler on a server that guards nothing. Pods join others that use the claims, so
    nothing else is wrong."""
    here = Watched()
    here.furnish()
    claims = {"c": "gpu-0", "d": "gpu-0", "e": "gpu-1"}
    for name, device in claims.items():
        here.add(CLAIMS, claim(name, device, f"first-of-{name}", f"second-of-{name}"))
        here.add(PODS, pod(f"first-of-{name}", "a", name))
    for name in claims:
        here.bind(f"second-of-{name}", "a", name)
    return here.lines


def test_a_server_that_gave_a_device_to_two_claims_is_found_out():
    found = replayed(seen_twice())
    assert found.decisions == 3 and not found.differences
    assert found.held_twice == {HeldTwice(GPU_0, ("default/c", "default/d"))}
    assert telling.text(found).endswith(f"\nD1: {GPU_0} is held by default/c and default/d")
    assert found.as_json()["heldTwice"] == [{"device": GPU_0, "claims": ("default/c", "default/d")}]


def test_a_decision_that_gives_away_what_another_has_is_found_out(tmp_path: Path):
    """As a scheduler would whose ledger forgets what is in flight."""

    async def story(here: Cluster) -> None:
        await here.device_class()
        await here.template()
        await here.node("a")
        await here.devices("a", 2)
        for name in ("first", "second"):
            await here.pod(name, template="one")
            await here.bound(name)

    tell(tmp_path / "record", story)
    lines = list(read(tmp_path / "record"))
    assert not replayed(lines).held_twice
    first, second = [one for one in lines if isinstance(one, Decided) and one.verdict.flights]
    (had,), (gets,) = first.verdict.flights, second.verdict.flights
    wrong = replace(second.verdict, flights=(replace(gets, devices=had.devices),))
    lines[lines.index(second)] = replace(second, verdict=wrong)
    (twice,) = replayed(lines).held_twice
    device = had.devices[0]
    assert twice.device == f"{device.driver}/{device.pool}/{device.device}"
    assert twice.claims == tuple(sorted(f"default/{one.claim}" for one in (had, gets)))


def test_what_another_scheduler_took_while_ours_wanted_it_has_one_holder():
    """The slower of the two is refused by the server, as its record says later."""
    results = claim("c", "gpu-0").view(resource.ResourceClaim).status.allocation
    assert results is not None
    lines: list[AnyLine] = [
        term_of(Settings(), Gates(), NOW),
        heard(PODS, pod("p", "", "c")),
        heard(PODS, pod("q", "")),
        heard(CLAIMS, claim("c")),
        Decided(
            "uid-of-p", "default/p", NOW, Verdict("a", (Flight("uid-of-c", "c", results.devices.results),))
        ),
        heard(CLAIMS, claim("d", "gpu-0", "other")),
        Decided("uid-of-q", "default/q", NOW, Verdict()),
    ]
    assert not replayed(lines).held_twice
    accepted = heard(CLAIMS, replaced(claim("c", "gpu-0", "p"), "2"))
    assert replayed([*lines, accepted, lines[-1]]).held_twice == {
        HeldTwice(GPU_0, ("default/c", "default/d"))
    }


def heard(what: ResourceId, object: Object) -> Set:
    return Set(what, Raw(encode(object.fresh())))


def replaced(object: Object, version: str) -> Object:
    return object.changed({"metadata": {"resourceVersion": version}})
