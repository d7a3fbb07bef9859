"""What a killed agent, a killed containerd and a dead sandbox cost: no container, and no trace."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from allot.nodeagent.runtimes import Attempt, CriRuntime
from allot.wire import CallFailed, Code, cri
from containerd import Containerd

from ..plugins import until
from .cri_stories import end_of, runtime_of, script, tell


def test_containers_go_on_without_their_agent_and_another_one_finds_them(daemon: Containerd):
    """N5: also how they ended meanwhile, and not those of another agent."""

    async def whole() -> None:
        pod, others = str(uuid4()), str(uuid4())
        elsewhere = daemon.home / "other"
        async with runtime_of(daemon).attached() as first, runtime_of(daemon, elsewhere).attached() as other:
            long = await first.start(script("sleep 300", pod, "long", crashes=3))
            short = await first.start(script("sleep 0.3; exit 5", pod, "short"))
            await other.start(script("sleep 300", others))
            assert {one.pod_uid for one in await other.attempts()} == {others}
        await asyncio.sleep(1)
        async with runtime_of(daemon).attached() as second, runtime_of(daemon, elsewhere).attached() as other:
            found = {one.name: one for one in await second.attempts()}
            assert found.keys() == {"long", "short"}
            assert found["long"] == long and found["long"].runs and found["long"].crashes == 3
            assert (await end_of(second, short)).exit_code == 5
            await second.signal(found["long"], signal.SIGKILL)
            assert (await end_of(second, long)).exit_code == 137
            await second.remove(pod)
            await other.remove(others)

    asyncio.run(asyncio.wait_for(whole(), 120))


def test_a_killed_daemon_costs_no_container_and_the_agent_goes_on(daemon: Containerd):
    """N3: ends while nobody listened are heard, and what is asked for meanwhile is done in the end."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        heard: list[Attempt] = []
        runtime.changed(heard.append)
        long = await runtime.start(script("trap 'exit 7' TERM; while :; do sleep 0.1; done", pod, "long"))
        short = await runtime.start(script("sleep 1; exit 5", pod, "short"))
        await asyncio.to_thread(daemon.kill)
        late = asyncio.create_task(runtime.start(script("exit 6", pod, "late")))
        asked = asyncio.create_task(runtime.attempts())
        await runtime.signal(long, signal.SIGTERM)
        await asyncio.sleep(2)
        assert not late.done() and not asked.done(), "it waits"
        await asyncio.to_thread(daemon.start)
        assert {one.name for one in await asked} >= {"long", "short"}
        assert (await end_of(runtime, await late)).exit_code == 6
        assert (await end_of(runtime, long)).exit_code == 7
        # containerd 1.7 throws away what it finds ended when it begins, and knows no better than that.
        assert (await end_of(runtime, short)).exit_code in (5, 255)
        await until(lambda: {one.name for one in heard} == {"long", "short", "late"})

    tell(daemon, play)


def test_what_an_agent_left_half_done_is_done(daemon: Containerd):
    """RUN2: it died between making a container and starting it."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        started = await runtime.start(script("sleep 300", pod, "first"))
        real = runtime._service.call

        async def dies(method: Any, request: Any, **more: Any) -> Any:
            if method is cri.START:
                raise asyncio.CancelledError
            return await real(method, request, **more)

        runtime._service.call = dies  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await runtime.start(script("exit 4", pod, "half"))
        runtime._service.call = real  # type: ignore[method-assign]
        assert [one.name for one in await runtime.attempts() if one.pod_uid == pod] == ["first"]
        over = await end_of(runtime, await runtime.start(script("exit 4", pod, "half")))
        assert over.exit_code == 4
        assert started.runs

    tell(daemon, play)


def test_an_end_that_containerd_stumbles_over_is_tried_again(daemon: Containerd):
    """Seen under load: "ttrpc: closed", where a container was killed and its pod removed at one moment."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        await runtime.start(script("sleep 300", pod))
        real, failed = runtime._service.call, []

        async def stumbles(method: Any, request: Any, **more: Any) -> Any:
            if method is cri.STOP_SANDBOX and len(failed) < 2:
                failed.append(method)
                raise CallFailed(Code.UNKNOWN, "ttrpc: closed")
            return await real(method, request, **more)

        runtime._service.call = stumbles  # type: ignore[method-assign]
        await runtime.remove(pod)
        assert len(failed) == 2
        assert [one for one in await runtime.attempts() if one.pod_uid == pod] == []

    tell(daemon, play)


def test_a_pod_whose_sandbox_died_gets_another_one(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        first = await runtime.start(script("sleep 300", pod))
        (sandbox,) = await runtime._service.sandboxes({"io.kubernetes.pod.uid": pod})
        daemon.ctr("tasks", "kill", "-s", "KILL", sandbox.id)

        async def is_gone() -> bool:
            (found,) = await runtime._service.sandboxes({"io.kubernetes.pod.uid": pod})
            return found.state is cri.SandboxState.NOTREADY

        await until(is_gone)
        over = await end_of(runtime, await runtime.start(script("exit 4", pod, number=1)))
        assert over.exit_code == 4
        assert (await end_of(runtime, first)).exit_code == 137, "what ran in the old one has ended"

    tell(daemon, play)


def has_log(attempt: Attempt) -> bool:
    return os.path.exists(attempt.log)


def test_attempts_before_the_last_two_are_removed_with_their_logs(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        overs = [
            await end_of(runtime, await runtime.start(script(f"echo {number}", pod, number=number)))
            for number in range(4)
        ]
        left = [one.number for one in await runtime.attempts() if one.pod_uid == pod]
        assert left == [2, 3]
        assert [has_log(one) for one in overs] == [False, False, True, True]

    tell(daemon, play)


def test_nothing_of_a_removed_pod_is_left(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        started = await runtime.start(script("sleep 300", pod))
        await runtime.remove(pod)
        assert [one for one in await runtime.attempts() if one.pod_uid == pod] == []
        assert not Path(started.log).parents[1].exists()
        await until(lambda: daemon.left() == [])
        await runtime.remove(pod)

    tell(daemon, play)


def test_logs_are_rotated_and_the_oldest_go(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        text = f"i=0; while :; do echo line-$i-{'x' * 300}; i=$((i+1)); sleep 0.01; done"
        started = await runtime.start(script(text, pod))
        log = Path(started.log)

        async def are_three() -> bool:
            return {one.name for one in log.parent.iterdir()} == {"0.log", "0.log.3", "0.log.4"}

        await until(are_three)
        await runtime.signal(started, signal.SIGKILL)
        await end_of(runtime, started)
        lines = [
            line.split()[-1]
            for name in ("0.log.3", "0.log.4", "0.log")
            for line in (log.parent / name).read_text().splitlines()
        ]
        numbers = [int(line.split("-")[1]) for line in lines]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "no line is lost between files"

    tell(daemon, play, log_bytes_max=8192, log_files_max=3, rotate_s=0.1)


def test_after_a_reboot_what_ran_has_ended_and_runs_again(daemon: Containerd):
    """N5: containerd, shims and containers are killed at one moment, and only what is on disk is left."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        first = await runtime.start(script("sleep 300", pod))
        await asyncio.to_thread(daemon.crash)
        await asyncio.to_thread(daemon.start)
        over = await end_of(runtime, first)
        assert over.exit_code not in (0, None)
        again = await runtime.start(script("exit 4", pod, number=1))
        assert (await end_of(runtime, again)).exit_code == 4

    tell(daemon, play)
