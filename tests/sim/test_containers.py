"""Containers of a made-up machine, and what an agent sees of them in each of its lives."""

import asyncio
import contextvars
import signal

from allot.nodeagent import ContainerSpec, SandboxSpec
from allot.sim.containers import KILLED, Containers, Lasts
from allot.sim.loop import OWNER, VirtualClock, run
from allot.sim.recording import Notes

SPEC = ContainerSpec(
    SandboxSpec("pod"), "main", 0, ("app",), env={"HOSTNAME": "p", "DEVICE_GPU_0": "d/p/gpu-0"}
)


def made(lasts):
    machines = Notes(lambda: 1)
    clock = VirtualClock(asyncio.get_running_loop())
    return Containers("node", clock, lambda spec: lasts, machines), machines


def touched():
    pass


def test_a_container_outlives_the_agent_that_asked_for_it():
    async def story():
        containers, machines = made(Lasts(2.0, 60.0, 5.0, 3))
        agent = containers.process(touched)
        await agent.start(SPEC)
        agent.kill()
        await asyncio.sleep(30)
        (found,) = await containers.process(touched).attempts()
        assert found.runs
        await asyncio.sleep(60)
        (found,) = await containers.process(touched).attempts()
        assert (found.runs, found.exit_code) == (False, 3)
        return [(one.type, one.fields.get("devices")) for one in machines.seen]

    assert run(story()) == [("STARTED", ["d/p/gpu-0"]), ("ENDED", None)]


def test_an_attempt_begins_once_whoever_asks_for_it():
    """RUN2: also an agent that died before it heard the answer."""

    async def story():
        containers, machines = made(Lasts(2.0, None, 5.0, 0))
        agent = containers.process(touched)
        asking = asyncio.ensure_future(agent.start(SPEC))
        await asyncio.sleep(1.5)
        asking.cancel()
        agent.kill()
        assert (await containers.process(touched).start(SPEC)).runs
        return [one.type for one in machines.seen]

    assert run(story()) == ["STARTED"]


def test_a_container_ends_when_it_is_told_to_and_at_once_when_it_is_killed():
    async def ended(number, times):
        containers, _ = made(Lasts(0.0, None, 5.0, 0))
        now_s = asyncio.get_running_loop().time
        agent, heard = containers.process(touched), []
        agent.changed(lambda one: heard.append((round(now_s() - began_s, 1), one.exit_code)))
        attempt = await agent.start(SPEC)
        began_s = now_s()
        for _ in range(times):
            await agent.signal(attempt, number)
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        return heard

    assert run(ended(signal.SIGTERM, 3)) == [(5.0, 128 + signal.SIGTERM)], "to be told again changes nothing"
    assert run(ended(signal.SIGKILL, 1)) == [(0.2, KILLED)]


def test_when_the_power_goes_everything_ends_and_its_records_stay():
    async def story():
        containers, _ = made(Lasts(0.0, 60.0, 5.0, 0))
        await containers.process(touched).start(SPEC)
        containers.power_off()
        await asyncio.sleep(100)
        (found,) = await containers.process(touched).attempts()
        return found.exit_code, containers.running

    assert run(story()) == (KILLED, {})


def test_an_agent_that_does_not_get_to_run_hears_of_an_end_when_it_does():
    async def story():
        loop = asyncio.get_running_loop()
        containers, _ = made(Lasts(0.0, 5.0, 5.0, 0))
        context = contextvars.copy_context()
        context.run(OWNER.set, "agent")
        agent, heard = context.run(containers.process, touched), []
        agent.changed(heard.append)
        await agent.start(SPEC)
        loop.freeze("agent")
        await asyncio.sleep(20)
        assert heard == []
        loop.thaw("agent")
        await asyncio.sleep(0)
        return [one.exit_code for one in heard]

    assert run(story()) == [0]
