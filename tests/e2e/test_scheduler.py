"""`allot scheduler` as a process: killed, replaced, in company, and cut off from the server.

Over HTTPS, on the SQLite store, with the rights of the scheduler and no more. After every
story: each pod was bound once, no device is held twice, and when the pods go everything
comes back.
"""

import asyncio
import re
import signal
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from allot.api import Object
from allot.store.sqlite.file import LogFile
from e2e.process import Component, Controllers, Lease, ServerProcess
from e2e.scheduling import DEVICES, GPU, NODES, World, furnish, is_allocated, is_protected

Story = Callable[[World], Awaitable[None]]
LEASE = Lease(duration_s=2, renew_deadline_s=1.5, retry_period_s=0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[ServerProcess]:
    """For all stories: each gives everything back."""
    server = ServerProcess(tmp_path_factory.mktemp("scheduler") / "data")
    controllers = Controllers(server, "controllers", None, "--no-leader-elect")
    try:
        asyncio.run(furnish(server))
        controllers.await_ready()
        yield server
    finally:
        controllers.end(signal.SIGKILL)
        server.kill()


def tell(server: ServerProcess, story: Story) -> None:
    async def whole() -> None:
        async with World(server) as world:
            await world.check_given_back()  # also what a story that failed has left
            await asyncio.wait_for(story(world), 100)
            await world.check_given_back()
            assert not world.seen.moved

    asyncio.run(whole())


def is_extended(claim: Object) -> bool:
    return "extended-resources" in claim.name


MOMENTS = {  # of a burst of fifteen pods, which ask for ten devices
    "the first claim is protected": (1, is_protected),
    "some have their devices": (4, is_allocated),
    "the first claim for extended resources is made": (1, is_extended),
    "most have their devices": (8, is_allocated),
}


def test_a_scheduler_that_is_killed_again_and_again_leaves_nothing_half_done(cluster):
    """kill -9 in the middle of each burst; the next one finds what was written and goes on."""

    async def story(world: World) -> None:
        interrupted = 0
        while interrupted < 2:  # a machine with other work may be slow to kill it
            await world.check_given_back()
            for number, (count, is_so) in enumerate(MOMENTS.values()):
                before = sum(map(is_so, (await world.claims.list("default")).objects))
                pods = await world.burst(f"r{number}-", 15)
                scheduler = world.scheduler(f"scheduler-{number}")
                await world.becomes(before + count, is_so)
                scheduler.end(signal.SIGKILL)
                interrupted += len(set(pods) - set(await world.bound())) > 0
            last = world.scheduler("the last")
            await world.until(world.all_bound, "every pod placed")
            await world.check()
            last.end(signal.SIGKILL)

    tell(cluster, story)


def test_the_server_is_killed_while_pods_are_being_bound(cluster):
    """Writes have unknown outcomes, watches break off; the scheduler stays and finds out."""

    async def story(world: World) -> None:
        scheduler = world.scheduler("scheduler")
        await asyncio.to_thread(scheduler.await_ready)
        for number in range(2):
            before = sum(map(is_allocated, (await world.claims.list("default")).objects))
            await world.burst(f"r{number}-", 24)
            await world.becomes(before + 3, is_allocated)
            await asyncio.to_thread(world.server.kill)
            await asyncio.to_thread(world.server.start)
        await world.until(world.all_bound, "every pod placed")
        await world.check()
        assert scheduler.process.poll() is None

    tell(cluster, story)


def test_watches_that_the_server_has_forgotten_are_begun_anew(cluster):
    """While the scheduler sleeps, all that it knew goes, and the history in which it could read that."""

    async def story(world: World) -> None:
        scheduler = world.scheduler("forgetful")
        await asyncio.to_thread(scheduler.await_ready)
        await world.burst("a", 12)
        await world.until(world.all_bound, "every pod placed")
        scheduler.pause()
        await asyncio.to_thread(world.server.kill)
        await asyncio.to_thread(world.server.start)
        await world.delete_pods()
        await world.burst("b", 24)
        await asyncio.to_thread(world.server.kill)
        compact(world.server.data_dir)
        await asyncio.to_thread(world.server.start)
        scheduler.resume()
        await world.until(world.all_bound, "every pod placed")
        await world.check()
        assert "too old" in scheduler.log_text(), "no watch was answered 410"

    tell(cluster, story)


def compact(data_dir: Path) -> None:
    (path,) = data_dir.glob("*.db")
    file = LogFile(path)
    file.compact(file.written_up_to())
    file.close()


def test_a_second_copy_takes_over_from_a_leader_that_is_killed(cluster):
    async def story(world: World) -> None:
        copies = {name: world.scheduler(name, lease=LEASE) for name in ("first", "second")}
        for copy in copies.values():
            await asyncio.to_thread(copy.await_ready)
        leader = await world.until(world.leader, "one of them leads")
        await world.burst("a", 30)
        await world.becomes(3, is_allocated)
        copies[leader].end(signal.SIGKILL)
        await world.until(world.all_bound, "every pod placed")
        await world.check()
        assert await world.leader() not in ("", leader)

    tell(cluster, story)


def test_a_leader_that_slept_through_its_term_does_no_harm_when_it_wakes(cluster):
    """It is stopped in the middle of its writes; another takes over; then it goes on where it stood."""

    async def story(world: World) -> None:
        copies = {name: world.scheduler(name, lease=LEASE) for name in ("first", "second")}
        for copy in copies.values():
            await asyncio.to_thread(copy.await_ready)
        leader = await world.until(world.leader, "one of them leads")
        await world.burst("a", 30)
        await world.becomes(3, is_allocated)
        copies[leader].pause()
        await world.until(world.all_bound, "every pod placed")
        copies[leader].resume()
        await world.burst("b", 6)
        await world.until(world.all_bound, "every pod placed")
        await asyncio.sleep(0.5)
        await world.check()

    tell(cluster, story)


def test_schedulers_that_know_nothing_of_each_other_cannot_give_one_device_away_twice(cluster):
    """All devices but one are asked for, half by each; whoever loses one looks again."""

    async def story(world: World) -> None:
        for name in ("red", "blue"):
            scheduler = world.scheduler(name, "--name", name)
            await asyncio.to_thread(scheduler.await_ready)
        await asyncio.gather(*(world.burst(name, 34, schedulerName=name) for name in ("red", "blue")))
        await world.until(world.all_bound, "every pod placed")
        await world.check()
        assert len(await world.held()) == 2 * 23 + 1 == NODES * DEVICES - 1  # and the shared claim

    tell(cluster, story)


def test_what_pods_request_is_shown_pod_by_pod(cluster):
    """5004-MON-04: by resource, with its unit; a pod that has ended is not shown."""

    async def story(world: World) -> None:
        scheduler = world.scheduler("shown", "--metrics-port", "0")
        container = {"name": "main", "image": "example/app:1"}
        asked = {"requests": {"cpu": "250m", GPU: "1"}, "limits": {"memory": "1Gi", GPU: "1"}}
        pods = {"asks": asked, "ended": asked}
        for name, resources in pods.items():
            spec = {"containers": [{**container, "resources": resources}], "tolerations": ANYWHERE}
            await world.pods.create({"metadata": {"name": name}, "spec": spec}, "default")
        await world.until(world.all_bound, "every pod placed")
        await world.pods.patch("ended", {"status": {"phase": "Failed"}}, "default", subresource="status")
        url = await world.until(partial(metrics_url, scheduler), "where metrics are shown")

        async def shown() -> str:
            text = await asyncio.to_thread(page, f"{url}/resources")
            return text if 'pod="asks"' in text and 'pod="ended"' not in text else ""

        lines = (await world.until(shown, "the pod that runs, and no other")).splitlines()
        node = (await world.pods.get("asks", "default")).fields["spec"]["nodeName"]
        pod = f'namespace="default",pod="asks",node="{node}",scheduler="default-scheduler",priority="0"'
        assert {line for line in lines if not line.startswith("#")} == {
            f'kube_pod_resource_request{{{pod},resource="cpu",unit="cores"}} 0.25',
            f'kube_pod_resource_request{{{pod},resource="memory",unit="bytes"}} 1073741824',
            f'kube_pod_resource_request{{{pod},resource="{GPU}",unit="integer"}} 1',
            f'kube_pod_resource_limit{{{pod},resource="memory",unit="bytes"}} 1073741824',
            f'kube_pod_resource_limit{{{pod},resource="{GPU}",unit="integer"}} 1',
        }

    tell(cluster, story)


ANYWHERE = [{"operator": "Exists"}]


async def metrics_url(scheduler: Component) -> str:
    found = re.search(r"^metrics (\S+)$", scheduler.log_text(), re.M)
    return found[1] if found else ""


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
