"""Jobs over the real server; the test plays the kubelet."""

import asyncio
from typing import Any

import pytest

from allot.api import Object, Request, errors
from allot.client import Propagation
from allot.controllers import garbagecollection, jobs
from allot.controllers.jobs import plan
from controllers.world import NS, World, tell


def job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
    metadata = {"name": "sum", "namespace": NS}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


def writing(here: World):
    return here.client.resource("batch", "v1", "jobs")


async def pods(here: World, phase: str = "Pending") -> list[Object]:
    found = (await here.pods.list(NS)).objects
    return [pod for pod in found if (pod.fields.get("status") or {}).get("phase") == phase]


async def pending(here: World, count: int) -> list[Object]:
    async def so() -> Any:
        found = await pods(here)
        return [found] if len(found) == count else None

    return (await here.until(so))[0]


async def finish(
    here: World, pod: Object, phase: str = "Succeeded", at: str = "2020-01-01T00:00:00Z"
) -> None:
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": at}}}
    status = {"phase": phase, "containerStatuses": [{**ended, "image": "", "imageID": "", "ready": False,
                                                     "restartCount": 0}]}  # fmt: skip
    await here.pods.patch(pod.name, {"status": status}, NS, subresource="status")


async def ended(here: World, condition: str) -> Object:
    async def so() -> Any:
        live = await writing(here).get("sum", NS)
        found = (live.fields.get("status") or {}).get("conditions") or []
        return live if any(c["type"] == condition and c["status"] == "True" for c in found) else None

    return await here.until(so)


def test_a_job_is_complete_when_enough_pods_have_succeeded():
    async def story(here: World) -> None:
        await writing(here).create(job(completions=3, parallelism=2))
        for pod in await pending(here, 2):
            assert "batch.kubernetes.io/job-tracking" in pod.metadata.finalizers
            await finish(here, pod)
        (last,) = await pending(here, 1)
        await finish(here, last)
        live = await ended(here, "Complete")
        status = live.fields["status"]
        assert (status["succeeded"], status.get("active", 0), status.get("failed", 0)) == (3, 0, 0)
        assert status["completionTime"] >= status["startTime"]
        assert not (status.get("uncountedTerminatedPods") or {}).get("succeeded")
        for pod in await pods(here, "Succeeded"):
            assert not pod.metadata.finalizers

    tell(story, jobs.CONTROLLER)


def test_a_job_that_fails_too_often_has_failed():
    """The backoff is long over, for the pods say that they ended years ago."""

    async def story(here: World) -> None:
        await writing(here).create(job(backoffLimit=1))
        for _ in range(2):
            (pod,) = await pending(here, 1)
            await finish(here, pod, "Failed")
        live = await ended(here, "Failed")
        assert live.fields["status"]["failed"] == 2
        reasons = {c["type"]: c["reason"] for c in live.fields["status"]["conditions"]}
        assert reasons["Failed"] == "BackoffLimitExceeded"
        assert "Complete" not in reasons
        await here.quiet()
        assert not await pods(here)

    tell(story, jobs.CONTROLLER)


def test_what_is_active_when_a_job_fails_is_ended():
    async def story(here: World) -> None:
        await writing(here).create(job(parallelism=3, completions=3, backoffLimit=0))
        first, *_ = await pending(here, 3)
        await finish(here, first, "Failed")
        await ended(here, "Failed")
        assert not await pods(here)

    tell(story, jobs.CONTROLLER)


def test_indexes_are_given_out_once_each_and_noted_as_done():
    async def story(here: World) -> None:
        await writing(here).create(job(completions=4, parallelism=4, completionMode="Indexed"))
        found = await pending(here, 4)
        label = "batch.kubernetes.io/job-completion-index"
        by_index = {int(pod.metadata.annotations[label]): pod for pod in found}
        assert sorted(by_index) == [0, 1, 2, 3]
        assert by_index[2].fields["spec"]["hostname"] == "sum-2"
        env = by_index[2].fields["spec"]["containers"][0]["env"]
        assert env[0]["name"] == "JOB_COMPLETION_INDEX"
        await finish(here, by_index[1], "Failed")
        await finish(here, by_index[2])
        await finish(here, by_index[3])

        async def again() -> Any:
            return [p for p in await pods(here) if p.metadata.annotations[label] == "1"]

        (second,) = await here.until(again)
        await finish(here, second)
        await finish(here, by_index[0])
        live = await ended(here, "Complete")
        assert live.fields["status"]["completedIndexes"] == "0-3"
        assert (live.fields["status"]["succeeded"], live.fields["status"]["failed"]) == (4, 1)

    tell(story, jobs.CONTROLLER)


def test_a_suspended_job_has_no_pods():
    async def story(here: World) -> None:
        await writing(here).create(job(suspend=True))
        await ended(here, "Suspended")
        assert not await pods(here)
        await writing(here).patch("sum", {"spec": {"suspend": False}}, NS)
        await pending(here, 1)
        await writing(here).patch("sum", {"spec": {"suspend": True}}, NS)
        await pending(here, 0)

    tell(story, jobs.CONTROLLER)


def test_a_job_that_takes_too_long_fails():
    async def story(here: World) -> None:
        await writing(here).create(job(activeDeadlineSeconds=1))
        await pending(here, 1)
        live = await ended(here, "Failed")
        reasons = {c["type"]: c["reason"] for c in live.fields["status"]["conditions"]}
        assert reasons["Failed"] == "DeadlineExceeded"
        assert not await pods(here)

    tell(story, jobs.CONTROLLER)


def test_every_pod_is_counted_once_though_the_controller_dies_again_and_again():
    """JOB1."""

    async def story(here: World) -> None:
        await writing(here).create(job(completions=20, parallelism=5))
        done = 0
        while done < 20:
            for pod in await pending(here, min(5, 20 - done)):
                await finish(here, pod)
                done += 1
                if done % 4 == 0:
                    await here.stop()
                    await here.start()
        live = await ended(here, "Complete")
        assert live.fields["status"]["succeeded"] == 20
        assert len(await pods(here, "Succeeded")) == 20

    tell(story, jobs.CONTROLLER)


async def note(here: World, uids: list[str], succeeded: int = 0) -> None:
    """As another leader would."""
    status = {"uncountedTerminatedPods": {"succeeded": uids}, "succeeded": succeeded}
    await writing(here).patch("sum", {"status": status}, NS, subresource="status")


async def count_elsewhere(here: World, pod: Object) -> None:
    await note(here, [pod.uid])
    await here.pods.patch(pod.name, {"metadata": {"finalizers": None}}, NS)
    await note(here, [], succeeded=1)


class Door:
    """Holds back what the controller is about to say of the job."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/sum/status"):
            self.reached.set()
            await self.opened.wait()


async def counted(here: World) -> int:
    return (await writing(here).get("sum", NS)).fields["status"].get("succeeded", 0)


def test_a_pod_that_another_noted_and_that_is_not_known_here_yet_is_not_counted():
    """JOB1: it looks as if its finalizer were gone, and would be counted again when it is known."""

    async def story(here: World) -> None:
        assert here.ear is not None
        made = await writing(here).create(job(completions=5, parallelism=1))
        (known,) = await pending(here, 1)
        here.ear.hold("pods")
        owner = known.fields["metadata"]["ownerReferences"]
        labels = known.fields["metadata"]["labels"]
        unknown = await here.pods.create(
            {
                "metadata": {
                    "name": "unknown",
                    "namespace": NS,
                    "labels": labels,
                    "ownerReferences": owner,
                    "finalizers": ["batch.kubernetes.io/job-tracking"],
                },
                "spec": made.fields["spec"]["template"]["spec"],
            }
        )
        await finish(here, unknown)
        await note(here, [unknown.uid])
        await here.quiet()
        # Whoever asks the server takes the finalizer away, and may count it then.
        is_counted_already = await counted(here) == 1
        assert not is_counted_already or not (await here.pods.get("unknown", NS)).metadata.finalizers
        here.ear.let_go()

        async def is_counted() -> bool:
            return await counted(here) == 1

        await here.until(is_counted)
        await here.quiet()
        assert await counted(here) == 1

    tell(story, jobs.CONTROLLER)


def test_a_pod_that_another_has_counted_is_not_noted_again():
    """JOB1: as it is known here it is still to be counted."""

    async def story(here: World) -> None:
        assert here.ear is not None
        await writing(here).create(job(completions=5, parallelism=1))
        (pod,) = await pending(here, 1)
        await here.quiet()
        door = here.wire.before = Door()
        await finish(here, pod)
        await door.reached.wait()
        here.ear.hold("pods")
        await count_elsewhere(here, pod)
        door.opened.set()
        await here.quiet()
        here.ear.let_go()
        await here.quiet()
        assert await counted(here) == 1

    tell(story, jobs.CONTROLLER)


async def end(here: World) -> None:
    """As another leader would."""
    conditions = [
        {"type": type, "status": "True", "reason": "CompletionsReached", "message": ""}
        for type in ("SuccessCriteriaMet", "Complete")
    ]
    now = "2020-01-01T00:00:00Z"
    status = {"conditions": conditions, "startTime": now, "completionTime": now, "active": 0}
    await writing(here).patch("sum", {"status": status}, NS, subresource="status")


def test_no_pod_is_made_for_a_job_that_another_has_ended():
    """JOB2: this copy was frozen, and hears of the pod, which is counted, before it hears of the job."""

    async def story(here: World) -> None:
        assert here.ear is not None
        await writing(here).create(job(completions=1))
        (pod,) = await pending(here, 1)
        await here.quiet()
        door = here.wire.before = Door()
        here.ear.hold("jobs")
        await finish(here, pod)
        await door.reached.wait()
        await count_elsewhere(here, pod)
        await end(here)
        door.opened.set()
        await here.quiet()
        here.ear.let_go()
        await here.quiet()
        assert here.wire.count("POST", "/pods") == 1

    tell(story, jobs.CONTROLLER)


def test_a_pod_that_was_refused_is_not_made_once_another_has_ended_the_job():
    """JOB2: also where there is nothing new to say of the job before the pod is made."""

    async def story(here: World) -> None:
        assert here.ear is not None
        may_be_refused = asyncio.Event()

        async def refuse(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods"):
                await may_be_refused.wait()
                raise errors.Forbidden("for now")

        here.wire.before = refuse
        await writing(here).create(job(completions=1))
        await here.quiet()
        assert here.wire.count("POST", "/pods") == 1
        here.ear.hold("jobs")
        await end(here)
        may_be_refused.set()
        await here.quiet()
        here.ear.let_go()
        await here.quiet()
        assert here.wire.count("POST", "/pods") == 1

    tell(story, jobs.CONTROLLER)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_pod_that_failed_by_a_clock_that_is_ahead_is_replaced_in_time(monkeypatch, restarted):
    """Also by a leader who finds it counted already."""
    monkeypatch.setattr(plan, "BACKOFF_S", 1.0)

    async def story(here: World) -> None:
        await writing(here).create(job(completions=1, backoffLimit=3))
        (pod,) = await pending(here, 1)
        await finish(here, pod, "Failed", at="2099-01-01T00:00:00Z")
        if restarted:
            await here.quiet()
            await here.stop()
            await here.start()
        await pending(here, 1)

    tell(story, jobs.CONTROLLER)


def test_pods_of_a_deleted_job_are_let_go():
    """Their finalizer would hold them for ever."""

    async def story(here: World) -> None:
        await writing(here).create(job(parallelism=2, completions=2))
        await pending(here, 2)
        await writing(here).delete("sum", NS, propagation=Propagation.BACKGROUND)
        await pending(here, 0)
        assert not (await here.pods.list(NS)).objects

    tell(story, jobs.CONTROLLER, garbagecollection.CONTROLLER)


def test_a_job_that_somebody_else_manages_is_left_to_them():
    """JOB3: not one pod, not one word in its status. One that names this controller is its own."""

    async def story(here: World) -> None:
        theirs = job(managedBy="example.com/queue")
        await writing(here).create({**theirs, "metadata": {"name": "theirs", "namespace": NS}})
        await writing(here).create(job(managedBy="kubernetes.io/job-controller"))
        (pod,) = await pending(here, 1)
        assert pod.name.startswith("sum-")
        await here.quiet()
        assert len(await pods(here)) == 1
        assert not (await writing(here).get("theirs", NS)).fields.get("status")

    tell(story, jobs.CONTROLLER)
