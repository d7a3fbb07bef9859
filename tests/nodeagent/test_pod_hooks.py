"""Hooks, messages and deadlines of real containers."""

from typing import Any

from .plugins import until
from .test_pod_probes import events, main, ready
from .world import NS, World, tell


def test_a_container_has_started_when_its_hook_is_done():
    async def play(here: World) -> None:
        async with here.agent():
            go, done = here.folder / "go", here.folder / "done"
            script = f"while [ ! -e {go} ]; do sleep 0.05; done; touch {done}"
            hook = {"postStart": {"exec": {"command": ["sh", "-c", script]}}}
            await here.pod("", containers=[main("sleep 300", lifecycle=hook)])
            await here.until_phase("Running")
            state = await here.state()
            assert (state["started"], state["ready"]) == (False, False)
            go.touch()

            async def is_ready() -> bool:
                return await ready(here) == "True"

            await until(is_ready)
            assert done.exists()

    tell(play)


def test_a_container_whose_first_hook_fails_is_ended():
    async def play(here: World) -> None:
        async with here.agent():
            hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no luck; exit 3"]}}}
            await here.pod("", containers=[main("sleep 300", lifecycle=hook)])
            await here.until_phase("Failed")
            (said,) = await events(here, "FailedPostStartHook")
            assert "no luck" in said["message"]

    tell(play)


def test_the_last_hook_runs_before_the_container_is_told_to_end():
    async def play(here: World) -> None:
        async with here.agent():
            order = here.folder / "order"
            script = f"trap 'echo term >> {order}; exit 0' TERM; while :; do sleep 0.05; done"
            hook = {"preStop": {"exec": {"command": ["sh", "-c", f"sleep 1; echo hook >> {order}"]}}}
            await here.pod("", containers=[main(script, lifecycle=hook)])
            await here.until_phase("Running")
            await here.pods.delete("p", NS)
            await here.until_gone()
            assert order.read_text() == "hook\nterm\n"
            (said,) = await events(here, "Killing")
            assert said["message"] == "Stopping container main"

    tell(play)


def test_a_last_hook_that_takes_too_long_is_not_waited_for():
    async def play(here: World) -> None:
        async with here.agent():
            order = here.folder / "order"
            script = f"trap 'echo term >> {order}; exit 0' TERM; while :; do sleep 0.05; done"
            hook = {"preStop": {"sleep": {"seconds": 2}}}
            container = main(script, lifecycle=hook)
            await here.pod("", containers=[container], terminationGracePeriodSeconds=2)
            await here.until_phase("Running")
            await here.pods.delete("p", NS)
            await here.until_gone()
            assert order.read_text() == "term\n"

    tell(play)


def test_a_container_may_choose_its_signal():
    async def play(here: World) -> None:
        async with here.agent():
            order = here.folder / "order"
            script = f"trap 'echo usr1 >> {order}; exit 0' USR1; while :; do sleep 0.05; done"
            container = main(script, lifecycle={"stopSignal": "SIGUSR1"})
            await here.pod("", containers=[container], os={"name": "linux"})
            await here.until_phase("Running")
            await here.pods.delete("p", NS)
            await here.until_gone()
            assert order.read_text() == "usr1\n"

    tell(play)


def test_what_a_container_leaves_is_in_its_status():
    async def play(here: World) -> None:
        async with here.agent():
            container = main("echo the disk is full > /dev/termination-log; exit 4")
            await here.pod("", containers=[container])
            await here.until_phase("Failed")
            end = (await here.state())["state"]["terminated"]
            assert (end["exitCode"], end["message"]) == (4, "the disk is full\n")

    tell(play)


def test_the_end_of_its_output_stands_in_for_a_message():
    async def play(here: World) -> None:
        async with here.agent():
            container = main(
                "echo one; echo two >&2; exit 4", terminationMessagePolicy="FallbackToLogsOnError"
            )
            await here.pod("", containers=[container])
            await here.until_phase("Failed")
            message = (await here.state())["state"]["terminated"]["message"]
            assert sorted(message.splitlines()) == ["one", "two"]

    tell(play)


def test_a_pod_that_is_here_for_too_long_fails_and_says_so():
    async def play(here: World) -> None:
        async with here.agent():
            script = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
            await here.pod(script, activeDeadlineSeconds=2, restartPolicy="Always")
            await here.until_phase("Failed")
            status = await here.status()
            assert status["reason"] == "DeadlineExceeded"
            assert status["message"] == "Pod was active on the node longer than the specified deadline"
            assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    tell(play)


def test_a_pod_whose_containers_cannot_begin_does_not_outlive_its_deadline():
    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("", containers=[main("", command=["/no/such/program"])], activeDeadlineSeconds=2)
            await here.until_phase("Failed")
            assert (await here.status())["reason"] == "DeadlineExceeded"

    tell(play)


def test_a_container_may_have_a_restart_policy_of_its_own():
    async def play(here: World) -> None:
        async with here.agent():
            tries = here.folder / "tries"
            script = f"echo try >> {tries}; [ $(wc -l < {tries}) -ge 2 ]"
            again: dict[str, Any] = {**main(script, restartPolicy="OnFailure"), "name": "again"}
            never = main("exit 3")
            await here.pod("", containers=[never, again], restartPolicy="Never")
            await here.until_phase("Failed")
            assert (await here.state(container="again"))["restartCount"] == 1
            assert (await here.state())["restartCount"] == 0

    tell(play)
