"""Images by pull policy, from a registry on loopback."""

import asyncio
import time

import pytest

from allot.nodeagent.runtimes import CannotStart, CriRuntime, Login
from allot.nodeagent.runtimes.cri import images
from containerd import Containerd, made, registry

from .cri_stories import end_of, printed, script, tell


def test_images_are_pulled_by_policy(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        with registry(made(Cmd=["sh"], Labels={"pod": pod})) as host:
            name = f"{host}/bb:{pod[:8]}"
            never = script("echo hi", pod, image=name, pull_policy="Never")
            with pytest.raises(CannotStart, match="is not present with pull policy of Never") as no:
                await runtime.start(never)
            assert no.value.reason == "ErrImageNeverPull"
            over = await end_of(runtime, await runtime.start(script("echo hi", pod, image=name)))
            assert printed(over) == ["stdout F hi"]
            await runtime.start(never._replace(name="other"))
        with pytest.raises(CannotStart) as away:
            always = script("echo hi", pod, name="always", image=name, pull_policy="Always")
            await runtime.start(always)
        assert away.value.reason == "ErrImagePull", "its registry is gone, and Always asks it"
        await runtime.start(script("true", pod, name="there", image=name))

    tell(daemon, play)


def test_an_image_that_cannot_be_pulled_waits_longer_each_time(daemon: Containerd, monkeypatch):
    monkeypatch.setattr(images, "FIRST_WAIT_S", 0.5)

    async def play(runtime: CriRuntime, pod: str) -> None:
        with registry(made()) as host:
            wanted = script("true", pod, image=f"{host}/bb:none")
            reasons: list[str] = []
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                with pytest.raises(CannotStart) as no:
                    await runtime.start(wanted)
                reasons.append(no.value.reason)
                await asyncio.sleep(0.05)
            assert reasons[0] == "ErrImagePull"
            assert reasons.count("ErrImagePull") == 3, "at once, after 0.5 s and after another 1 s"
            assert reasons[1] == "ImagePullBackOff"
            assert "Back-off pulling image" in str(no.value)

    tell(daemon, play)


def test_an_image_is_pulled_with_the_first_login_that_may_and_another_pod_is_not_held_back(
    daemon: Containerd,
):
    good, bad = Login("me", "secret"), Login("me", "wrong")

    async def play(runtime: CriRuntime, pod: str) -> None:
        with registry(made(Labels={"pod": pod}), "me:secret") as host:
            name = f"{host}/bb:{pod[:8]}"
            said: list[tuple[str, str]] = []
            for logins in ((), (bad,)):
                asked = script("true", f"{pod}-{len(logins)}", image=name, logins=logins)
                with pytest.raises(CannotStart, match=r"authoriz|401|403") as no:
                    await runtime.start(asked)
                assert no.value.reason == "ErrImagePull" and "secret" not in str(no.value)
            asked = script("true", pod, image=name, logins=(bad, good))
            await end_of(runtime, await runtime.start(asked, lambda *told: said.append(told)))
            assert [reason for reason, _ in said] == ["Pulling", "Pulled"]
            again = asked._replace(name="again", logins=())
            await runtime.start(again, lambda *told: said.append(told))
            assert said[2:] == [("Pulled", f'Container image "{name}" is on this machine')]

    tell(daemon, play)


def test_what_must_not_be_root_is_not_where_its_image_says_nothing_else(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        for user, says in (("", "its image runs as root"), ("root", "may be root"), ("0", "runs as root")):
            with registry(made(User=user, Labels={"pod": pod})) as host:
                asked = script("id -u", pod, image=f"{host}/bb:1", must_not_be_root=True)
                with pytest.raises(CannotStart, match=says) as no:
                    await runtime.start(asked)
                assert no.value.reason == "CreateContainerConfigError"
        with registry(made(User="1000", Labels={"pod": pod})) as host:
            asked = script("id -u", pod, image=f"{host}/bb:1", must_not_be_root=True)
            assert printed(await end_of(runtime, await runtime.start(asked))) == ["stdout F 1000"]

    tell(daemon, play)


@pytest.mark.parametrize("name", ["", "a/UPPER", "a b", "x:", "x@sha256:12"])
def test_what_is_no_name_of_an_image_is_said_to_be_none(daemon: Containerd, name: str):
    async def play(runtime: CriRuntime, pod: str) -> None:
        with pytest.raises(CannotStart) as no:
            await runtime.start(script("true", pod, image=name))
        assert no.value.reason == "InvalidImageName"

    tell(daemon, play)
