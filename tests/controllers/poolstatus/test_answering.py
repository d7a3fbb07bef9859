"""Requests for the status of pools, over the real server. Rule 6.3."""

import pytest

from allot.api import Gates, errors
from allot.controllers.poolstatus import CONTROLLER, loop, plan
from controllers.resourceclaims.objects import FINALIZER, claim
from controllers.world import NS, World, tell

ON = Gates({"DRAResourcePoolStatus": True})
DRIVER = "gpu.example.com"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(loop, "LOOK_AGAIN_S", 0.02)


def requests(here: World):
    return here.client.resource("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", namespaced=False)


def slices(here: World):
    return here.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)


async def publish(here: World, name: str = "pool", count: int = 1, *, pool: str = "", devices: int = 2):
    told = {"name": pool or name, "generation": 1, "resourceSliceCount": count}
    listed = [{"name": f"{name}-{at}"} for at in range(devices)]
    spec = {"driver": DRIVER, "nodeName": "n", "pool": told, "devices": listed}
    await slices(here).create({"metadata": {"name": name}, "spec": spec})


async def ask(here: World, name: str = "q", **spec):
    return await requests(here).create({"metadata": {"name": name}, "spec": {"driver": DRIVER, **spec}})


async def answer(here: World, name: str = "q"):
    async def look():
        return (await requests(here).get(name)).fields.get("status")

    return await here.until(look)


def test_a_request_is_answered_once_and_for_good():
    """Rule 6.3: one-shot computation. What happens later does not change the answer."""

    async def story(here: World) -> None:
        await publish(here)
        await here.claims.create(claim())
        results = {"request": "r", "driver": DRIVER, "pool": "pool", "device": "pool-0"}
        status = {"allocation": {"devices": {"results": [results]}}}
        await here.claims.patch("c", {"metadata": {"finalizers": [FINALIZER]}}, NS)
        await here.claims.patch("c", {"status": status}, NS, subresource="status")
        await here.quiet()
        made = await ask(here)
        assert made.fields["spec"]["limit"] == 100 and "status" not in made.fields
        told = await answer(here)
        (pool,) = told["pools"]
        assert told["poolCount"] == 1
        assert pool == {
            "driver": DRIVER,
            "poolName": "pool",
            "generation": 1,
            "resourceSliceCount": 1,
            "totalDevices": 2,
            "allocatedDevices": 1,
            "availableDevices": 1,
            "unavailableDevices": 0,
            "nodeName": "n",
        }
        assert [one["type"] for one in told["conditions"]] == ["Complete"]
        settled = await requests(here).get("q")
        await publish(here, "another")
        await here.quiet()
        assert (await requests(here).get("q")).resource_version == settled.resource_version

    tell(story, CONTROLLER, gates=ON)


def test_pools_that_are_still_being_published_are_waited_for():
    """Rule 6.3: retries while pools are incomplete."""

    async def story(here: World) -> None:
        await publish(here, "one", 2, pool="pool")
        await here.quiet()
        loop.LOOK_AGAIN_S = 0.2
        await ask(here)
        await here.quiet()
        assert "status" not in (await requests(here).get("q")).fields
        await publish(here, "two", 2, pool="pool")
        (pool,) = (await answer(here))["pools"]
        assert pool["totalDevices"] == 4 and "validationError" not in pool

    tell(story, CONTROLLER, gates=ON)


def test_after_five_looks_an_incomplete_pool_is_told_as_it_is():
    """Rule 6.3: five of them."""

    async def story(here: World) -> None:
        await publish(here, "one", 2, pool="pool")
        await here.quiet()
        await ask(here)
        (pool,) = (await answer(here))["pools"]
        assert pool["validationError"] == "it is incomplete: 1 of 2 slices are published"
        done = 'workqueue_work_duration_seconds_count{name="resourcepoolstatusrequest"}'

        async def looked() -> bool:  # six times at the pools, and once at the answer
            return f"{done} {plan.LOOKS + 2}" in here.metrics.text()

        await here.until(looked)

    tell(story, CONTROLLER, gates=ON)


def test_answers_and_questions_go_when_their_time_is_up(monkeypatch):
    """Rule 6.3: completed and pending requests have their time to live."""

    async def story(here: World) -> None:
        await publish(here)
        await here.quiet()
        monkeypatch.setattr(plan, "COMPLETED_S", 1.5)
        await ask(here)
        await answer(here)

        async def gone() -> bool:
            return not (await requests(here).list()).objects

        await here.until(gone)
        await publish(here, "half", 2)
        await here.quiet()
        monkeypatch.setattr(loop, "LOOK_AGAIN_S", 60.0)
        monkeypatch.setattr(plan, "PENDING_S", 1.5)
        await ask(here, "pending")
        await here.until(gone)

    tell(story, CONTROLLER, gates=ON)


def test_processing_is_counted():
    """Rule 6.3: requests_processed_total, request_processing_errors_total and
    request_processing_duration_seconds."""

    async def story(here: World) -> None:
        failed = False

        async def refuse(request) -> None:
            nonlocal failed
            if request.method == "PUT" and not failed:
                failed = True
                raise errors.Unavailable("not now")

        here.wire.before = refuse
        await ask(here)
        await answer(here)
        name = "resourcepoolstatusrequest_controller"
        text = here.metrics.text()
        assert f"{name}_requests_processed_total 1" in text
        assert f"{name}_request_processing_errors_total 1" in text
        assert f"{name}_request_processing_duration_seconds_count 1" in text

    tell(story, CONTROLLER, gates=ON)


def test_neither_question_nor_answer_can_be_changed():
    """The spec is immutable, and so is the status once it was written."""

    async def story(here: World) -> None:
        await ask(here)
        await answer(here)
        with pytest.raises(errors.Invalid, match="spec"):
            await requests(here).patch("q", {"spec": {"driver": "other.example.com"}})
        with pytest.raises(errors.Invalid, match="status"):
            await requests(here).patch("q", {"status": {"poolCount": 7}}, subresource="status")
        await requests(here).patch("q", {"metadata": {"labels": {"a": "b"}}})

    tell(story, CONTROLLER, gates=ON)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": ""}, "spec.driver"),
        ({"limit": 0}, "spec.limit"),
        ({"limit": 1001}, "spec.limit"),
        ({"poolName": "Not_a_pool"}, "spec.poolName"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(spec, path):
    """Limit 1 to 1000; the driver is required."""

    async def story(here: World) -> None:
        with pytest.raises(errors.Invalid) as refused:
            await ask(here, **spec)
        assert path in [cause.field for cause in refused.value.causes]

    tell(story, gates=ON, started=False)


def test_while_the_gate_is_off_nothing_is_served_and_nothing_runs():
    """Rule 6.3: alpha."""

    async def story(here: World) -> None:
        with pytest.raises(errors.NotFound):
            await requests(here).list()
        await here.quiet()
        assert here.wire.requests == []

    tell(story, CONTROLLER)
