"""What the autoscaler follows: nothing moves during a decision, and parameters of numeric claims are read."""

import asyncio
import random

from allot.api import Object
from allot.autoscaler.following import Following
from allot.base import Metrics, RandomIds, SystemClock
from allot.informers import Informers, Telemetry
from allot.scheduler import Settings, deciding_plugins
from allot.scheduler.parameters import ParameterKind
from scheduler.cluster import NS, QUICK, Cluster, tell
from scheduler.numeric import VENDOR, Numeric

KIND = ParameterKind(VENDOR, "v1alpha1", "ClaimParameters")


def test_a_view_stays_as_it_is_until_the_next_one_and_has_the_parameters_of_claims():
    """4381-SIM-06, AUTO-05: live caches; what happens after the start of a decision shows in the next."""

    async def story(here: Cluster) -> None:
        frob = await Numeric(here).furnish({"a": 4})
        await frob.claim("c", 2)
        clock, rng = SystemClock(), random.Random(1)
        plugins = deciding_plugins(RandomIds(rng), Settings())
        async with Informers(here.client, rng, pace=QUICK) as informers:
            telemetry = Telemetry(Metrics(), clock)
            following = Following(here.client, informers, plugins, here.gates, clock, telemetry)
            watching = asyncio.ensure_future(following.run())
            try:
                await following.begin()

                async def read() -> bool:
                    parameters = following.view(clock.now()).snapshot.parameters
                    return isinstance(parameters.find(KIND, NS, "c"), Object)

                await here.until(read, "the parameters of the claim")
                view = following.view(clock.now())
                following.stirred.clear()
                await here.node("b")
                await following.stirred.wait()
                assert view.snapshot.node("b") is None and [*view.nodes] == ["a"]

                async def seen() -> bool:
                    return "b" in following.view(clock.now()).nodes

                await here.until(seen, "the new node in the next view")
            finally:
                watching.cancel()
                await asyncio.wait([watching])
                following.end()

    tell(story, started=False)
