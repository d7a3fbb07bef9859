"""Pods through the API on a node whose containers are those of a real containerd."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator

import pytest

from allot.wire import cdi
from containerd import IMAGE, Containerd, containerd, made, registry

from .plugins import until
from .world import NS, World, tell


@pytest.fixture(scope="module")
def daemon() -> Iterator[Containerd]:
    with containerd() as running:
        yield running


def story(daemon: Containerd, play: Callable[[World], Awaitable[None]]) -> None:
    async def whole(here: World) -> None:
        here.runtime, here.image, here.cdi = f"cri://{daemon.socket}", IMAGE, daemon.cdi
        await play(here)

    tell(whole, within_s=240)


def test_a_pod_with_a_claim_has_its_device_and_one_without_has_not(daemon: Containerd):
    """3063-GRPC-11, N4: a driver's CDI name reaches containerd, and nothing else does."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.driver()
            await here.publish()
            here.inject("c", device_nodes=(cdi.DeviceNode("/dev/granted", "/dev/fuse"),))
            await here.claim()
            text = "echo GPU=$GPU; head -c 0 < /dev/granted && echo opened; true"
            await here.pod(text, claim="c")
            await here.pod(text, name="plain")
            for name in ("p", "plain"):
                await here.until_phase("Succeeded", name)
            assert await here.log() == "GPU=c\nopened\n"
            plain = await here.log("plain")
            assert "GPU=\n" in plain and "opened" not in plain
            status = await here.state()
            assert status["containerID"].startswith("containerd://")
            for name in ("p", "plain"):
                await here.pods.delete(name, NS)
                await here.until_gone(name)
            await until(lambda: daemon.left() == [])

    story(daemon, play)


def test_a_pod_goes_on_while_its_agent_and_then_containerd_are_away(daemon: Containerd):
    """N3, N5: kill -9 of one and the other during its life, and how it ended is told."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("trap 'exit 0' TERM; while :; do sleep 0.1; done")
            await here.until_phase("Running")
            before = (await here.state())["containerID"]
        async with here.agent():
            await asyncio.to_thread(daemon.kill)
            await here.pod("exit 3", name="late")
            await asyncio.sleep(1)
            assert (await here.status())["phase"] == "Running"
            await asyncio.to_thread(daemon.start)
            await here.until_phase("Failed", "late")
            found = await here.state()
            assert (found["containerID"], found["restartCount"]) == (before, 0)
            for name in ("p", "late"):
                await here.pods.delete(name, NS)
                await here.until_gone(name)
            await until(lambda: daemon.left() == [])

    story(daemon, play)


def test_a_pod_may_have_the_longest_name_that_there_is(daemon: Containerd):
    """No file and no host may be called so."""

    async def play(here: World) -> None:
        name = "n" * 253
        async with here.agent():
            await here.pod("echo fine", name=name)
            await here.until_phase("Succeeded", name)
            assert await here.log(name) == "fine\n"
            await here.pods.delete(name, NS)
            await here.until_gone(name)

    story(daemon, play)


async def heard(here: World, pod: str) -> list[str]:
    """The events of a pod's container, as TYPE REASON MESSAGE, whatever their order."""
    events = (await here.client.resource("", "v1", "events").list(NS)).objects
    of_pod = [one.fields for one in events if one.fields["involvedObject"]["name"] == pod]
    return [f"{one['type']} {one['reason']} {one['message']}" for one in of_pod]


async def until_heard(here: World, pod: str, *beginnings: str) -> None:
    async def is_so() -> bool:
        said = await heard(here, pod)
        return all(any(one.startswith(wanted) for one in said) for wanted in beginnings)

    try:
        await until(is_so)
    except AssertionError:
        raise AssertionError(await heard(here, pod)) from None


def test_an_image_that_is_not_there_is_said_in_the_pods_status(daemon: Containerd):
    async def play(here: World) -> None:
        async with here.agent():
            here.image = "127.0.0.1:1/none:1"
            await here.pod("true")
            await here.until_waiting("ErrImagePull")
            quoted = f'"{here.image}"'
            await until_heard(
                here,
                "p",
                f"Normal Pulling Pulling image {quoted}",
                f"Warning Failed Failed to pull image {quoted}: ",
                "Warning Failed Error: ErrImagePull",
            )
            await here.until_waiting("ImagePullBackOff")
            await until_heard(
                here,
                "p",
                f"Normal BackOff Back-off pulling image {quoted}",
                "Warning Failed Error: ImagePullBackOff",
            )
            here.image = "Not an image"
            await here.pod("true", name="bad")
            await here.until_waiting("InvalidImageName", "bad")
            await until_heard(here, "bad", "Warning InspectFailed ", "Warning Failed Error: InvalidImageName")
            for name in ("p", "bad"):
                await here.pods.delete(name, NS)
                await here.until_gone(name)

    story(daemon, play)


def test_an_image_is_pulled_with_the_secrets_of_the_pod_or_of_its_account(daemon: Containerd):
    """The agent has the rights of its node, which reads a secret while a pod there names it."""

    async def play(here: World) -> None:
        with registry(made(Labels={"of": here.folder.name}), "me:secret") as host:
            auths = {"auths": {host: {"username": "me", "password": "secret"}}}
            secret = {
                "metadata": {"name": "login", "namespace": NS},
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": json.dumps(auths)},
            }
            here.image = f"{host}/bb:1"
            async with here.agent():
                await here.pod("true", name="nobody", imagePullSecrets=[{"name": "missing"}])
                await here.until_waiting("ErrImagePull", "nobody")
                await until_heard(here, "nobody", "Warning FailedToRetrieveImagePullSecret ")
                await here.client.resource("", "v1", "secrets").create(secret)
                account = {
                    "metadata": {"name": "puller", "namespace": NS},
                    "imagePullSecrets": [{"name": "login"}],
                }
                await here.client.resource("", "v1", "serviceaccounts").create(account)
                await here.pod("true", serviceAccountName="puller")
                await here.until_phase("Succeeded")
                await until_heard(
                    here, "p", "Normal Pulling ", f'Normal Pulled Image "{here.image}" was pulled in'
                )
                for name in ("p", "nobody"):
                    await here.pods.delete(name, NS)
                    await here.until_gone(name)

    story(daemon, play)
