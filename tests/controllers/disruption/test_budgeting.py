"""Disruption budgets over the real server: counted by the controller, asked by evictions."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api import Object, Request, age, errors
from allot.controllers import deployments, disruption, replicasets
from controllers.kubelet import make_ready
from controllers.world import NS, World, tell

LABELS = {"app": "web"}
POD_SPEC = {"containers": [{"name": "main", "image": "app:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD_SPEC}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def budgets(here: World):
    return here.client.resource("policy", "v1", "poddisruptionbudgets")


async def budget(here: World, **spec: Any) -> Object:
    wanted = {"selector": {"matchLabels": LABELS}, **spec}
    return await budgets(here).create({"metadata": {"name": "b", "namespace": NS}, "spec": wanted})


async def pod(here: World, name: str, *owners: Any, ready: bool = True, **metadata: Any) -> Object:
    metadata = {"name": name, "namespace": NS, "labels": LABELS, "ownerReferences": [*owners], **metadata}
    made = await here.pods.create({"metadata": metadata, "spec": POD_SPEC})
    if ready:
        await make_ready(here.client, name)
    return made


def owned_by(owner: Object) -> dict[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


async def stands(here: World, **numbers: Any) -> Any:
    """The status, once it says so of the spec as it is."""

    async def so() -> Any:
        live = await budgets(here).get("b", NS)
        said = live.fields.get("status") or {}
        is_seen = said.get("observedGeneration") == live.metadata.generation
        return said if is_seen and all(said.get(name) == n for name, n in numbers.items()) else None

    return await here.until(so)


def condition(status: Any) -> Any:
    (found,) = status["conditions"]
    return found


async def is_refused(here: World, name: str) -> bool:
    try:
        await here.pods.evict(name, NS)
    except errors.TooManyRequests:
        return True
    return False


def apps(here: World, plural: str):
    return here.client.resource("apps", "v1", plural)


def replicated(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE, **more}
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


async def replica_set(here: World, replicas: int, name: str = "web", *owners: Any) -> Object:
    wanted = replicated(name, replicas)
    wanted["metadata"]["ownerReferences"] = [*owners]
    return await apps(here, "replicasets").create(wanted)


# -- a drain ------------------------------------------------------------------------------------


def test_of_a_deployment_one_pod_goes_at_a_time():
    """The next may go when a pod that took the place of the first is ready."""

    async def story(here: World) -> None:
        await apps(here, "deployments").create(replicated("web", 3))
        await budget(here, maxUnavailable=1)

        async def three() -> Any:
            found = (await here.pods.list(NS)).objects
            return found if len(found) == 3 else None

        names = [one.name for one in await here.until(three)]
        status = await stands(here, expectedPods=3, desiredHealthy=2, currentHealthy=0, disruptionsAllowed=0)
        assert (condition(status)["status"], condition(status)["reason"]) == ("False", "InsufficientPods")
        for name in names:
            await make_ready(here.client, name)
        status = await stands(here, expectedPods=3, desiredHealthy=2, currentHealthy=3, disruptionsAllowed=1)
        assert (condition(status)["status"], condition(status)["reason"]) == ("True", "SufficientPods")

        await here.pods.evict(names[0], NS)
        assert await is_refused(here, names[1])
        await stands(here, currentHealthy=2, disruptionsAllowed=0)
        (new,) = [one.name for one in await here.until(three) if one.name not in names]
        assert await is_refused(here, names[1])
        await make_ready(here.client, new)
        await stands(here, currentHealthy=3, disruptionsAllowed=1)
        assert not await is_refused(here, names[1])

    tell(story, disruption.CONTROLLER, deployments.CONTROLLER, replicasets.CONTROLLER)


def test_a_pod_that_was_evicted_and_stays_counts_again_after_two_minutes():
    """PDB3: its time is up in a moment, and nothing else happens."""

    async def story(here: World) -> None:
        await pod(here, "p0")
        await pod(here, "p1")
        await budget(here, minAvailable=1)
        await stands(here, currentHealthy=2, disruptionsAllowed=1)
        noted = age.timestamp(datetime.now(UTC) - timedelta(seconds=118))
        status = {"disruptionsAllowed": 0, "disruptedPods": {"p0": noted}}
        await budgets(here).patch("b", {"status": status}, NS, subresource="status")
        said = await stands(here, currentHealthy=1, disruptionsAllowed=0)
        assert said["disruptedPods"] == {"p0": noted}
        said = await stands(here, currentHealthy=2, disruptionsAllowed=1)
        assert "disruptedPods" not in said

    tell(story, disruption.CONTROLLER)


def test_a_charge_made_meanwhile_is_not_undone():
    """PDB2: the eviction is allowed while the controller is about to write what it counted before."""

    async def story(here: World) -> None:
        await here.start()
        await pod(here, "p0")
        await budget(here, minAvailable=1)
        await stands(here, currentHealthy=1)
        noted = age.timestamp(datetime.now(UTC))
        meanwhile: list[Request] = []

        async def charge(request: Request) -> None:
            if request.method == "PUT" and not meanwhile:
                meanwhile.append(request)
                status = {"disruptionsAllowed": 0, "disruptedPods": {"p0": noted}}
                await budgets(here).patch("b", {"status": status}, NS, subresource="status")

        here.wire.before = charge
        await pod(here, "p1")
        await pod(here, "p2")
        said = await stands(here, expectedPods=3, currentHealthy=2, disruptionsAllowed=1)
        assert meanwhile and said["disruptedPods"] == {"p0": noted}

    tell(story, disruption.CONTROLLER, started=False)


def test_an_evicted_pod_that_the_cache_does_not_show_yet_is_still_known_to_go():
    """It came, became ready and was evicted before the controller heard of it."""

    async def story(here: World) -> None:
        await budget(here, minAvailable=0)
        await stands(here, expectedPods=0)
        assert here.ear is not None
        here.ear.hold("pods")
        await pod(here, "p0")
        noted = {"p0": age.timestamp(datetime.now(UTC))}
        await budgets(here).patch("b", {"status": {"disruptedPods": noted}}, NS, subresource="status")
        await here.quiet()
        here.ear.let_go()
        said = await stands(here, expectedPods=1)
        await here.quiet()
        assert (said["currentHealthy"], said["disruptedPods"]) == (0, noted)

    tell(story, disruption.CONTROLLER)


@pytest.mark.parametrize(("policy", "goes"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_a_sick_pod_may_go_while_too_few_are_healthy_only_where_the_budget_says_so(policy, goes):
    async def story(here: World) -> None:
        await pod(here, "well")
        await pod(here, "sick", ready=False)
        await here.pods.patch("sick", {"status": UNREADY}, NS, subresource="status")
        await budget(here, minAvailable=2, unhealthyPodEvictionPolicy=policy)
        await stands(here, expectedPods=2, currentHealthy=1, desiredHealthy=2)
        assert await is_refused(here, "well")
        assert await is_refused(here, "sick") != goes

    tell(story, disruption.CONTROLLER)


def test_a_sick_pod_goes_without_a_charge_once_enough_are_healthy():
    async def story(here: World) -> None:
        await pod(here, "well")
        await pod(here, "sick", ready=False)
        await here.pods.patch("sick", {"status": UNREADY}, NS, subresource="status")
        await budget(here, minAvailable=1)
        await stands(here, expectedPods=2, currentHealthy=1, disruptionsAllowed=0)
        assert await is_refused(here, "well")
        await here.pods.evict("sick", NS)
        await stands(here, expectedPods=1, currentHealthy=1, disruptionsAllowed=0)

    tell(story, disruption.CONTROLLER)


# -- how many there should be -------------------------------------------------------------------


def test_what_the_owner_wants_counts_whether_or_not_the_pods_are_there():
    """A quota may keep them from coming: no pod tells of the change."""

    async def story(here: World) -> None:
        owner = await replica_set(here, 2)
        await pod(here, "p0", owned_by(owner))
        await pod(here, "p1", owned_by(owner))
        await budget(here, minAvailable="50%")
        await stands(here, expectedPods=2, desiredHealthy=1, disruptionsAllowed=1)
        await apps(here, "replicasets").scale("web", NS, 3)
        await stands(here, expectedPods=3, desiredHealthy=2, disruptionsAllowed=0)

    tell(story, disruption.CONTROLLER)


def test_the_sets_of_one_deployment_are_counted_once():
    """In the middle of a rollout."""

    async def story(here: World) -> None:
        owner = await apps(here, "deployments").create(replicated("web", 4))
        for name, replicas in (("old", 3), ("new", 2)):
            made = await replica_set(here, replicas, name, owned_by(owner))
            await pod(here, name, owned_by(made))
        await budget(here, maxUnavailable="50%")
        await stands(here, expectedPods=4, desiredHealthy=2, currentHealthy=2)

    tell(story, disruption.CONTROLLER)


def test_every_owner_with_a_scale_counts():
    async def story(here: World) -> None:
        controllers = here.client.resource("", "v1", "replicationcontrollers")
        wanted = replicated("old", 3, selector=LABELS)
        stateful = replicated("db", 4, serviceName="db")
        owners = [
            await controllers.create(wanted),
            await apps(here, "statefulsets").create(stateful),
            await replica_set(here, 5),
        ]
        for owner in owners:
            await pod(here, owner.name, owned_by(owner))
        await budget(here, maxUnavailable=10)
        await stands(here, expectedPods=12, desiredHealthy=2, currentHealthy=3, disruptionsAllowed=1)

    tell(story, disruption.CONTROLLER)


def test_a_kind_of_somebody_elses_counts_by_its_scale():
    """Its changes are not told; they are seen when one of its pods changes."""

    async def story(here: World) -> None:
        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
        shape = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": shape},
            "subresources": {"scale": scale, "status": {}},
        }
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "squads", "singular": "squad", "kind": "Squad", "listKind": "SquadList"},
            "versions": [version],
        }
        await definitions.create({"metadata": {"name": "squads.example.com"}, "spec": spec})
        squads = here.client.resource("example.com", "v1", "squads")
        body = {"apiVersion": "example.com/v1", "kind": "Squad"}

        async def made() -> Any:
            try:
                return await squads.create(
                    {**body, "metadata": {"name": "s", "namespace": NS}, "spec": {"size": 6}}
                )
            except errors.NotFound:
                return None

        owner = await here.until(made)
        await pod(here, "p0", owned_by(owner))
        await budget(here, maxUnavailable="50%")
        await stands(here, expectedPods=6, desiredHealthy=3)
        await squads.patch("s", {"spec": {"size": 2}}, NS)
        await pod(here, "p1", owned_by(owner))
        await stands(here, expectedPods=2, desiredHealthy=1, disruptionsAllowed=1)

    tell(story, disruption.CONTROLLER)


def test_an_owner_that_the_cache_does_not_show_yet_is_asked_for():
    async def story(here: World) -> None:
        await budget(here, maxUnavailable=1)
        await stands(here, expectedPods=0)
        assert here.ear is not None
        here.ear.hold("replicasets")
        owner = await replica_set(here, 1)
        await pod(here, "p0", owned_by(owner))
        await stands(here, expectedPods=1, disruptionsAllowed=1)
        here.ear.let_go()

    tell(story, disruption.CONTROLLER)


def test_pods_that_nobody_scales_allow_nothing_and_the_budget_says_why():
    """PDB4. The controller of a pod has no scale; another controller mends it."""

    async def story(here: World) -> None:
        job = await here.client.resource("batch", "v1", "jobs").create(
            {
                "metadata": {"name": "sum", "namespace": NS},
                "spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}},
            }
        )
        owner = await replica_set(here, 1)
        await pod(here, "p0", owned_by(job))
        await budget(here, maxUnavailable=1)
        said = condition(await stands(here, disruptionsAllowed=0, currentHealthy=1))
        assert said["reason"] == "SyncFailed"
        assert said["message"] == "pod p0 is controlled by Job sum, which has no scale"

        with pytest.raises(errors.TooManyRequests) as refused:
            await here.pods.evict("p0", NS)
        assert refused.value.causes[0].message.endswith("cannot be judged: " + said["message"])

        async def reported() -> bool:
            events = (await here.client.resource("", "v1", "events").list(NS)).objects
            reasons = [one.fields["reason"] for one in events]
            return reasons.count("CalculateExpectedPodCountFailed") == 1

        await here.until(reported)
        await here.pods.patch("p0", {"metadata": {"ownerReferences": [owned_by(owner)]}}, NS)
        said = condition(await stands(here, disruptionsAllowed=1))
        assert (said["reason"], said["message"]) == ("SufficientPods", "")

    tell(story, disruption.CONTROLLER)


def test_a_pod_without_a_controller_is_not_expected():
    """It is healthy, and nobody asked for it: beside two that somebody wants, one more may go."""

    async def story(here: World) -> None:
        owner = await replica_set(here, 2)
        for name, owners in (("p0", [owned_by(owner)]), ("p1", [owned_by(owner)]), ("alone", [])):
            await pod(here, name, *owners)
        await budget(here, maxUnavailable=1)
        await stands(here, expectedPods=2, desiredHealthy=1, currentHealthy=3, disruptionsAllowed=2)

    tell(story, disruption.CONTROLLER)


def test_pods_that_nobody_controls_allow_nothing_and_the_refusal_says_why():
    """PDB4. One is healthy and none is needed, so the numbers do not tell."""

    async def story(here: World) -> None:
        await pod(here, "alone")
        await budget(here, maxUnavailable=1)
        said = condition(await stands(here, expectedPods=0, currentHealthy=1, disruptionsAllowed=0))
        why = "no pods are expected: its pods have no controller that says how many there should be"
        assert (said["reason"], said["message"]) == ("InsufficientPods", why)
        with pytest.raises(errors.TooManyRequests) as refused:
            await here.pods.evict("alone", NS)
        assert refused.value.causes[0].message.endswith("needs 0 healthy pods and has 1 currently; " + why)

    tell(story, disruption.CONTROLLER)


def test_an_owner_of_that_name_that_is_another_does_not_count():
    async def story(here: World) -> None:
        owner = await replica_set(here, 5)
        await pod(here, "p0", {**owned_by(owner), "uid": "another"})
        await budget(here, maxUnavailable=1)
        said = condition(await stands(here, disruptionsAllowed=0))
        assert said["message"] == "pod p0 is controlled by ReplicaSet web, which does not exist"

    tell(story, disruption.CONTROLLER)


# -- what it costs ------------------------------------------------------------------------------


def test_what_concerns_no_budget_costs_nothing():
    """Other namespaces, other labels, and news of a pod that changes nothing for its budget."""

    async def story(here: World) -> None:
        await here.start()
        await pod(here, "p0")
        await budget(here, minAvailable=1)
        await stands(here, currentHealthy=1)
        await here.quiet()
        before, looks = len(here.wire.requests), worked(here)
        await pod(here, "other", labels={"app": "db"})
        note = {"metadata": {"annotations": {"note": "x"}}}
        await here.pods.patch("p0", note, NS)
        spaces = here.client.resource("", "v1", "namespaces", namespaced=False)
        await spaces.create({"metadata": {"name": "elsewhere"}})
        await here.pods.create(
            {"metadata": {"name": "p0", "namespace": "elsewhere", "labels": LABELS}, "spec": POD_SPEC}
        )
        await here.quiet()
        assert (len(here.wire.requests), worked(here)) == (before, looks)

    tell(story, disruption.CONTROLLER, started=False)


def worked(here: World) -> str:
    """How often a budget was looked at."""
    count = 'workqueue_work_duration_seconds_count{name="disruption"}'
    return next(line for line in here.metrics.text().splitlines() if line.startswith(count))


def test_what_happens_in_a_moment_is_counted_together():
    async def story(here: World) -> None:
        await here.start()
        for n in range(20):
            await pod(here, f"p{n}")
        await budget(here, minAvailable=1)
        await stands(here, currentHealthy=20)
        before = here.wire.count("PUT", "poddisruptionbudgets")
        for n in range(20):
            await here.pods.delete(f"p{n}", NS, grace_period_s=0)
            await asyncio.sleep(0.01)
        await stands(here, currentHealthy=0)
        await here.quiet()
        assert here.wire.count("PUT", "poddisruptionbudgets") - before <= 8

    tell(story, disruption.CONTROLLER, started=False)


def test_a_new_term_finds_nothing_to_write():
    async def story(here: World) -> None:
        await here.start()
        await pod(here, "p0")
        await budget(here, minAvailable=1)
        before = await stands(here, currentHealthy=1)
        await here.stop()
        await here.start()
        await here.quiet()
        assert here.wire.count("PUT", "") == 0
        assert (await budgets(here).get("b", NS)).fields["status"] == before

    tell(story, disruption.CONTROLLER, started=False)
