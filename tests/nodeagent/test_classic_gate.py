"""A node whose gate for classic claims is off, and on again (KEP-3063, "Feature Enablement and Rollback")."""

from .plugins import until
from .test_classic_pods import allocate, plugin_of
from .world import NODE, NS, World, tell

WANTS_IT = 'echo "has $GPU"; test -n "$GPU"'


async def bound_by_hand(here: World, script: str, name: str = "p") -> None:
    """As by a scheduler that knows nothing of claims: none is reserved for the pod."""
    await here.pod(script, name, claim="c", schedulerName="nobody")
    await here.pods.bind(name, NS, NODE)


def test_without_the_gate_a_pod_starts_without_its_resources_and_it_is_for_the_application_to_refuse():
    """3063-SKEW-03, and X-30."""

    async def play(here: World) -> None:
        async with here.agent(heeds_classic=False):
            plugin = await plugin_of(here)
            here.inject("a")
            await allocate(here)
            await bound_by_hand(here, WANTS_IT)
            await here.until_phase("Failed")
            assert await here.log() == "has \n"
            assert plugin.asked == []
            assert (await here.pods.get("p", NS)).metadata.deletion_timestamp is None, "it stays"

    tell(play)


def test_turned_off_running_pods_run_and_a_container_that_restarts_comes_up_without():
    """3063-PRR-03, 3063-PRR-04: what was prepared is given back all the same."""
    stop = "stop"

    async def play(here: World) -> None:
        script = f'echo "has $GPU"; while test ! -e {here.folder / stop}; do sleep 0.05; done'
        async with here.agent():
            plugin = await plugin_of(here)
            here.inject("a")
            await allocate(here)
            await here.pod(f"{script}; rm {here.folder / stop}", claim="c", restartPolicy="Always")
            await here.until_phase("Running")
            first = await here.state()
        async with here.agent(heeds_classic=False):
            await until(lambda: len(plugin.statuses) == 2)
            assert (await here.state())["containerID"] == first["containerID"]
            assert await here.first_words() == "has a\n"
            (here.folder / stop).touch()

            async def is_restarted() -> bool:
                now = await here.state()
                return bool(now.get("restartCount") == 1 and "running" in now["state"])

            await until(is_restarted)
            assert await here.first_words() == "has \n"
            assert len(plugin.asked) == 1
            await here.pods.delete("p", NS, grace_period_s=1)
            await here.until_gone()
            assert len(plugin.released) == 1

    tell(play)


def test_turned_on_again_what_was_placed_meanwhile_does_not_start_and_its_replacement_does():
    """3063-PRR-05."""

    async def play(here: World) -> None:
        await allocate(here)
        async with here.agent():
            plugin = await plugin_of(here)
            here.inject("a")
            await bound_by_hand(here, WANTS_IT, "meanwhile")
            await here.until_phase("Failed", "meanwhile")
            assert "not reserved for this pod" in (await here.status("meanwhile"))["message"]
            assert plugin.asked == []
            await here.pods.delete("meanwhile", NS)
            await here.pod(WANTS_IT, "replacement", claim="c")
            await here.until_phase("Succeeded", "replacement")
            assert len(plugin.asked) == 1

    tell(play)
