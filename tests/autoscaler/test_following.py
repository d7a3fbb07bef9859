"""What the autoscaler follows: nothing moves during a decision, and parameters of numeric claims are read."""

import asyncio
import random
from pathlib import Path

import yaml

from allot.api import Gates, Object, compute, errors
from allot.apiserver import identities
from allot.autoscaler.following import Following
from allot.base import Metrics, RandomIds, SystemClock
from allot.informers import Informers, Telemetry
from allot.scheduler import Settings, deciding_plugins
from allot.scheduler.parameters import ParameterKind
from scheduler.cluster import NS, QUICK, Cluster, cluster, tell
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


def test_it_reads_parameters_by_rights_of_its_own_and_for_as_long_as_classes_name_them(monkeypatch):
    """4381-PAR-18: those of the scheduler do not help it. Its rights come later, and its watch goes with the
    class."""
    monkeypatch.setattr("allot.scheduler.parameter_watches.RETRY_S", 0.1)

    async def story(here: Cluster) -> None:
        frob = await Numeric(here).furnish({"a": 4})
        await frob.claim("c", 2)
        clock, rng, metrics = SystemClock(), random.Random(1), Metrics()
        client = here.server.client(identities.AUTOSCALER)
        async with Informers(client, rng, pace=QUICK, metrics=metrics) as informers:
            plugins = deciding_plugins(RandomIds(rng), Settings())
            telemetry = Telemetry(Metrics(), clock)
            following = Following(client, informers, plugins, here.gates, clock, telemetry)
            watching = asyncio.ensure_future(following.run())

            async def found(what: type, words: str = "") -> None:
                async def so() -> bool:
                    parameters = following.view(clock.now()).snapshot.parameters
                    one = parameters.find(KIND, NS, "c")
                    return isinstance(one, what) and words in str(one)

                await here.until(so, words or "the parameters")

            def followed() -> int:
                lines = metrics.text().splitlines()
                return int(next(one.split()[1] for one in lines if one.startswith("allot_informers ")))

            try:
                await following.begin()
                without = followed()
                refused = f'User "{identities.AUTOSCALER.name}" cannot list resource "claimparameters"'
                await found(str, refused)
                await frob.allow("claimparameters", user=identities.AUTOSCALER.name)
                await found(Object)
                assert followed() == without + 1
                await frob.classes.delete("frob")
                await found(str)

                async def ended() -> bool:
                    following.view(clock.now())
                    return followed() == without

                await here.until(ended, "its watch ended")
            finally:
                watching.cancel()
                await asyncio.wait([watching])
                following.end()

    tell(story, started=False)


def test_nodes_are_seen_with_what_is_listed_beside_them():
    """14-OPEN-25, 14-AUTO-07: without the field a node would never be what was promised."""
    gate = {compute.limits.GATE: False}
    definitions = Path(__file__).parents[2] / "examples" / "real-kubernetes" / "compute.yaml"

    async def story() -> None:
        async with cluster(Gates(gate)) as here:
            for fields in yaml.safe_load_all(definitions.read_text()):
                if fields["kind"] == "CustomResourceDefinition":
                    group = here.client.resource(
                        "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
                    )
                    await group.create(fields)
            limits = compute.limits
            lists = here.client.resource(limits.GROUP, limits.VERSION, limits.LISTS, namespaced=False)

            async def served() -> bool:
                try:
                    await lists.list()
                except errors.NotFound:
                    return False
                return True

            await here.until(served, "the kind of lists")
            await here.node("a")
            name = compute.compute_resource_name("example.com/gpu", {})
            entry = {"name": name, "resourceName": "example.com/gpu", "devices": ["0"]}
            await lists.create({"metadata": {"name": "a"}, "computeResources": [entry]})
            clock, rng = SystemClock(), random.Random(1)
            plugins = deciding_plugins(RandomIds(rng), Settings())
            async with Informers(here.client, rng, pace=QUICK) as informers:
                telemetry = Telemetry(Metrics(), clock)
                following = Following(here.client, informers, plugins, Gates(), clock, telemetry)
                await following.begin()
                try:
                    view = following.view(clock.now())
                    assert view.nodes["a"].fields["status"]["computeResources"] == [entry]
                    assert "computeResources" not in following.nodes["a"].fields["status"]
                finally:
                    following.end()

    asyncio.run(story())
