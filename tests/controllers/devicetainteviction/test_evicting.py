"""Evictions over the real server, with the controller's own rights and no more."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from allot.api import Gates, Object, age
from allot.controllers import devicetainteviction
from allot.controllers.devicetainteviction.loop import make
from controllers.resourceclaims.objects import freeze
from controllers.world import NS, World, tell

from .objects import (
    DRIVER,
    claim,
    condition,
    device,
    holding,
    pod,
    result,
    rule,
    rules,
    running,
    slice_,
    slices,
    taint,
    tolerates,
)

PERIOD_S = 0.4
SHORTLY = tolerates(tolerationSeconds=2)  # times are whole seconds: at least one of them is left
PATIENTLY = tolerates(tolerationSeconds=3600)


def _impatient(world):
    return make(world, status_period_s=PERIOD_S)


QUICK = replace(devicetainteviction.CONTROLLER, make=_impatient)


def story(which) -> Any:
    """A test that is told to a running controller."""

    def test() -> None:
        tell(which, QUICK)

    test.__name__, test.__doc__ = which.__name__, which.__doc__
    return test


async def leaving(here: World, name: str = "p", namespace: str = NS) -> Object:
    """The pod, once it was told to go. Its node is not there to end it."""

    async def look() -> Object | None:
        found = await here.pods.get(name, namespace)
        return found if found.metadata.deletion_timestamp else None

    return await here.until(look)


async def stays(here: World, *names: str) -> None:
    await here.quiet()
    for name in names:
        assert (await here.pods.get(name, NS)).metadata.deletion_timestamp is None


async def says(here: World, name: str, reason: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await condition(here, name)
        return found if found.get("reason") == reason else None

    return await here.until(look)


def in_s(seconds: float) -> str:
    return age.timestamp(datetime.now(UTC) + timedelta(seconds=seconds))


async def retaint(here: World, name: str, *devices: dict[str, Any]) -> None:
    await slices(here).patch(name, {"spec": {"devices": [*devices]}})


# -- taints that drivers publish ----------------------------------------------------------------


@story
async def test_a_driver_taints_a_device_and_its_pod_goes(here: World) -> None:
    """Event DeviceTaintManagerEviction, condition DisruptionTarget, then DELETE."""
    await slices(here).create(slice_("s", device("d0"), device("d1")))
    await running(here, "p", "d0")
    await running(here, "other", "d1")
    await stays(here, "p")

    await retaint(here, "s", device("d0", taint("broken", "yes")), device("d1"))

    gone = await leaving(here, "p")
    told = next(one for one in gone.fields["status"]["conditions"] if one["type"] == "DisruptionTarget")
    assert told["reason"] == "DeletionByDeviceTaintManager"
    assert told["message"] == f"device {DRIVER}/pool/d0 of claim of-p is tainted with broken=yes:NoExecute"
    await stays(here, "other")

    async def event() -> Object | None:
        listed = (await here.client.resource("", "v1", "events").list(NS)).objects
        return next((one for one in listed if one.fields["reason"] == "DeviceTaintManagerEviction"), None)

    assert (await here.until(event)).fields["involvedObject"]["uid"] == gone.uid


@story
async def test_the_delete_names_the_pod_it_was_decided_on(here: World) -> None:
    """DELETE with UID precondition; and each deletion is counted once."""
    await slices(here).create(slice_("s", device("d0", taint())))
    made = await running(here)
    await leaving(here)
    await here.quiet()
    deletes = [one for one in here.wire.requests if one.method == "DELETE"]
    assert len(deletes) == 1 and made.uid in deletes[0].body.decode()
    shown = here.metrics.text()
    assert "device_taint_eviction_controller_pod_deletions_total 1" in shown
    assert "device_taint_eviction_controller_pod_deletion_duration_seconds_count 1" in shown


@story
async def test_a_newer_generation_without_the_taint_saves_the_pod(here: World) -> None:
    """Max generation only. The older slice still has the taint, and nobody cares."""
    await slices(here).create(slice_("new", device("d1"), generation=2))
    await slices(here).create(slice_("old", device("d0", taint())))
    await running(here)
    await stays(here, "p")
    await slices(here).delete("new")
    await leaving(here)


@story
async def test_a_pod_that_tolerates_for_a_while_goes_when_that_is_over(here: World) -> None:
    """timeAdded + tolerationSeconds, from the allocation's result."""
    await running(here, "p", "d0", SHORTLY)
    await running(here, "patient", "d1", tolerates())
    since = in_s(0)
    await slices(here).create(slice_("s", device("d0", taint(since=since)), device("d1", taint(since=since))))
    await stays(here, "p")
    await leaving(here)
    assert datetime.now(UTC) >= age.moment(since) + timedelta(seconds=2)
    await stays(here, "patient")


@story
async def test_a_taint_that_is_taken_back_in_time_evicts_nobody(here: World) -> None:
    await running(here, "p", "d0", SHORTLY)
    await slices(here).create(slice_("s", device("d0", taint(since=in_s(0)))))
    await here.quiet()
    await retaint(here, "s", device("d0"))
    await asyncio.sleep(2.1)
    await stays(here, "p")


@story
async def test_a_pod_that_comes_to_a_tainted_device_is_driven_away_too(here: World) -> None:
    """Bound, and then the reservation: whichever comes last."""
    await slices(here).create(slice_("s", device("d0", taint())))
    made = await here.pods.create(pod("p", node=None))
    await holding(here, made, "c", "d0")
    await stays(here, "p")
    await here.pods.bind("p", NS, "n")
    await leaving(here)


# -- extended resources -------------------------------------------------------------------------


@story
async def test_claims_for_extended_resources_are_honoured(here: World) -> None:
    """Upstream forgets them; a pod whose only claim is one goes like any other."""
    await slices(here).create(slice_("s", device("d0", taint())))
    wanted = pod("p", claim=None)
    amount = {"example.com/gpu": "1"}
    wanted["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
    made = await here.pods.create(wanted)
    await holding(here, made, "extended", "d0")
    await stays(here, "p")
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": [mapping]}}
    await here.pods.patch("p", {"status": status}, NS, subresource="status")
    await leaving(here)


# -- rules --------------------------------------------------------------------------------------


@story
async def test_a_rule_evicts_and_says_so(here: World) -> None:
    """PodsPendingEviction, then Completed, by server-side apply."""
    await running(here, "p", "d0")
    await running(here, "q", "d1", SHORTLY)
    await running(here, "r", "elsewhere")
    await here.quiet()
    since = in_s(0)

    await rules(here).create(rule("broken", {"driver": DRIVER, "device": "d0"}, taint(since=since)))
    await rules(here).create(rule("aging", {"device": "d1"}, taint(since=since)))

    pending = await says(here, "aging", "PodsPendingEviction")
    assert (pending["status"], pending["message"]) == ("True", "1 pod needs to be evicted in 1 namespace.")
    assert pending["observedGeneration"] == 1
    told = await leaving(here, "p")
    assert "by DeviceTaintRule broken" in str(told.fields["status"]["conditions"])
    for name in ("broken", "aging"):
        done = await says(here, name, "Completed")
        assert (done["status"], done["message"]) == ("False", "1 pod evicted since starting the controller.")
    await stays(here, "r")
    first = next(one for one in here.wire.requests if "devicetaintrules/broken/status" in one.path)
    assert b"PodsPendingEviction" in first.body, "not before the pods that it concerns were looked at"
    managers = [
        one["manager"] for one in (await rules(here).get("broken")).fields["metadata"]["managedFields"]
    ]
    assert "device-taint-eviction-controller" in managers


@story
async def test_a_rule_that_finds_nobody_says_so_and_other_effects_do_too(here: World) -> None:
    """NotStarted, OtherEffect. Without a selector nothing is selected."""
    await running(here)
    await rules(here).create(rule("elsewhere", {"pool": "other"}))
    await rules(here).create(rule("nothing", None))
    await rules(here).create(rule("closed", {}, taint(effect="NoSchedule")))
    assert (await says(here, "elsewhere", "NotStarted"))["status"] == "False"
    assert (await says(here, "nothing", "NotStarted"))["status"] == "False"
    assert (await says(here, "closed", "OtherEffect"))["status"] == "False"
    await stays(here, "p")


@story
async def test_a_rule_without_effect_is_a_dry_run_that_happens_once(here: World) -> None:
    """One-shot simulation, repeated only after a spec change."""
    await slices(here).create(slice_("s", device("d0"), device("d1")))
    await running(here)
    await here.quiet()  # the forecast is made once, of what the controller has heard by then
    await rules(here).create(rule("what-if", {"pool": "pool"}, taint(effect="None")))
    first = await says(here, "what-if", "NoEffect")
    assert first["message"].startswith(
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if"
    )

    await running(here, "q", "d1")
    await asyncio.sleep(2 * PERIOD_S)
    assert await condition(here, "what-if") == first
    await stays(here, "p", "q")

    await rules(here).patch("what-if", {"spec": {"taint": {"value": "other"}}})

    async def again() -> bool:
        return (await condition(here, "what-if"))["observedGeneration"] == 2

    await here.until(again)
    assert "2 pods would be evicted" in (await condition(here, "what-if"))["message"]

    await rules(here).patch("what-if", {"spec": {"taint": {"effect": "NoExecute"}}})
    await leaving(here, "p")
    await leaving(here, "q")
    assert "2 pods" in (await says(here, "what-if", "Completed"))["message"]


@story
async def test_a_status_is_written_at_most_once_in_a_period(here: World) -> None:
    """At most every 10 s; here the period is shorter, the evictions are many."""
    await rules(here).create(rule("all", {}))
    await says(here, "all", "NotStarted")
    began = asyncio.get_running_loop().time()
    for number in range(8):
        await running(here, f"p{number}", f"d{number}")
        await asyncio.sleep(0.1)
    await here.until(lambda: evicted(here, "all", 8))
    periods = (asyncio.get_running_loop().time() - began) / PERIOD_S
    assert here.wire.count("PATCH", "devicetaintrules") <= periods + 2


async def evicted(here: World, rule: str, count: int) -> bool:
    found = await condition(here, rule)
    return found.get("reason") == "Completed" and found["message"].startswith(f"{count} pods")


@story
async def test_a_rule_that_is_deleted_lets_the_waiting_stay(here: World) -> None:
    await running(here, "p", "d0", SHORTLY)
    await rules(here).create(rule("brief", {}, taint(since=in_s(0))))
    await says(here, "brief", "PodsPendingEviction")
    await rules(here).delete("brief")
    await asyncio.sleep(2.1)
    await stays(here, "p")


@story
async def test_a_rule_narrowed_to_others_counts_them_no_more(here: World) -> None:
    await running(here, "p", "d0", PATIENTLY)
    await rules(here).create(rule("brief", {}, taint(since=in_s(0))))
    await says(here, "brief", "PodsPendingEviction")
    await rules(here).patch("brief", {"spec": {"deviceSelector": {"device": "other"}}})
    await says(here, "brief", "NotStarted")
    await stays(here, "p")


@story
async def test_a_pod_that_lets_go_of_the_device_is_counted_no_more(here: World) -> None:
    await running(here, "p", "d0", PATIENTLY)
    await rules(here).create(rule("all", {}, taint(since=in_s(0))))
    await says(here, "all", "PodsPendingEviction")
    await here.claims.patch("of-p", {"status": {"reservedFor": None}}, NS, subresource="status")
    await says(here, "all", "NotStarted")


@story
async def test_a_rule_that_is_made_again_begins_at_nothing(here: World) -> None:
    """What another rule of its name has done is not its own."""
    await running(here)
    await rules(here).create(rule("again", {}))
    await says(here, "again", "Completed")
    await rules(here).delete("again")
    await rules(here).create(rule("again", {}))
    await says(here, "again", "NotStarted")


# -- caution ------------------------------------------------------------------------------------


@story
async def test_a_cache_that_is_behind_evicts_nobody(here: World) -> None:
    """The rule is gone, and the controller has not heard of it: the server is asked."""
    await running(here, "p", "d0", SHORTLY)
    await rules(here).create(rule("brief", {}, taint(since=in_s(0))))
    await says(here, "brief", "PodsPendingEviction")
    await freeze(here, "devicetaintrules")
    await rules(here).delete("brief")
    await asyncio.sleep(2.1)
    await stays(here, "p")


@story
async def test_a_claim_that_was_given_to_another_pod_meanwhile_protects_the_first(here: World) -> None:
    """As above, for the claim's reservation."""
    await slices(here).create(slice_("s", device("d0")))
    made = await running(here, "p", "d0")
    await here.quiet()
    await freeze(here, "resourceclaims")
    another = {"resource": "pods", "name": "later", "uid": "7ae8c1a6-3bf5-4a5b-8c9a-1c0b6c1f0e52"}
    await here.claims.patch("of-p", {"status": {"reservedFor": [another]}}, NS, subresource="status")
    await retaint(here, "s", device("d0", taint()))
    await here.quiet()
    await stays(here, "p")
    assert made.uid == (await here.pods.get("p", NS)).uid


@story
async def test_a_pod_that_was_told_to_go_is_not_told_again(here: World) -> None:
    """Though the cache does not show it yet."""
    await slices(here).create(slice_("s", device("d0")))
    await running(here)
    await here.quiet()
    await freeze(here, "pods")
    await retaint(here, "s", device("d0", taint()))
    await leaving(here)
    for key in ("another", "and-another"):
        await retaint(here, "s", device("d0", taint(key)))
        await here.quiet()
    assert here.wire.count("PATCH", "/pods/") == here.wire.count("DELETE", "/pods/") == 1


def test_a_new_leader_counts_from_the_same_moment():
    """kill and restart: what waited goes on waiting, what is due goes at once."""

    async def tale(here: World) -> None:
        await running(here, "p", "d0", SHORTLY)
        await running(here, "q", "d1", PATIENTLY)
        await rules(here).create(rule("all", {}, taint(since=in_s(0))))
        await says(here, "all", "PodsPendingEviction")
        await here.stop()
        await asyncio.sleep(2.1)
        await stays(here, "p")
        await here.start()
        await leaving(here)
        await stays(here, "q")

    tell(tale, QUICK)


def test_an_idle_cluster_makes_no_calls():
    """Waiting evictions and settled rules cost nothing."""

    async def tale(here: World) -> None:
        await running(here, "q", "d1", PATIENTLY)
        await rules(here).create(rule("all", {}, taint(since=in_s(0))))
        await says(here, "all", "PodsPendingEviction")
        await asyncio.sleep(2 * PERIOD_S)
        before = len(here.wire.requests)
        await asyncio.sleep(3 * PERIOD_S)
        assert len(here.wire.requests) == before

    tell(tale, QUICK)


def test_with_the_gate_for_taints_off_nobody_is_evicted():
    """DRADeviceTaints; DRADeviceTaintRules alone stops rules, not slices."""

    async def tale(here: World) -> None:
        here.gates = Gates({"DRADeviceTaints": False, "DRADeviceTaintRules": False})
        await here.start()
        await slices(here).create(slice_("s", device("d0", taint())))
        await running(here, "p", "d0")
        await running(here, "q", "d1")
        await rules(here).create(rule("all", {"device": "d1"}))
        await stays(here, "p", "q")
        await here.stop()

        here.gates = Gates({"DRADeviceTaintRules": False})
        await here.start()
        await leaving(here, "p")
        await stays(here, "q")
        assert await condition(here, "all") == {}

    tell(tale, QUICK, started=False)


@story
async def test_a_claim_shared_by_pods_of_which_one_has_finished(here: World) -> None:
    """What has finished holds nothing that could be saved: it is left for its owner to read."""
    first = await here.pods.create(pod("p"))
    second = await here.pods.create(pod("done"))
    await here.pods.patch("done", {"status": {"phase": "Succeeded"}}, NS, subresource="status")
    await here.claims.create(claim())
    users = [{"resource": "pods", "name": one.name, "uid": one.uid} for one in (first, second)]
    status = {"allocation": {"devices": {"results": [result("d0")]}}, "reservedFor": users}
    await here.claims.patch("c", {"status": status}, NS, subresource="status")
    await slices(here).create(slice_("s", device("d0", taint())))
    await leaving(here, "p")
    await stays(here, "done")
