"""KEP-4381 beside classic claims: how both are counted, what each costs, and who should choose which."""

import asyncio
import time
from typing import Any

import pytest

from allot.api import Request, Response, errors
from allot.apiserver import identities
from allot.client import Client, InProcessTransport
from allot.controllers.quota import CONTROLLER, loop
from scheduler.classic_driver import Driver
from scheduler.cluster import CLAIM_CONTROLLERS, NS, Cluster, tell
from scheduler.numeric import Numeric
from scheduler.test_classic import Classic
from scheduler.wire import is_write
from tidy.documents import ROOT

BY_CLASS = "resourceclass.node.k8s.io/resourceclaims"
LINE_S = 0.02
PODS = 3


def test_a_quota_counts_numeric_claims_as_it_counts_opaque_ones(monkeypatch):
    """4381-GEN-14: each once, by number and by the name of its class, whatever it holds."""
    monkeypatch.setattr(loop, "MOMENT_S", 0.02)
    monkeypatch.setattr(loop, "SETTLED_S", 0.1)

    async def story(place: Cluster) -> None:
        await place.start_controllers((*CLAIM_CONTROLLERS, CONTROLLER))
        await place.start_scheduler()
        here, classic = await Numeric(place).furnish({"a": 4}), Classic(place)
        await classic.resource_class("opaque")
        quotas = place.client.resource("", "v1", "resourcequotas")
        hard = {"resourceclaims": "9", f"frob.{BY_CLASS}": "2", f"opaque.{BY_CLASS}": "2"}
        await quotas.create({"metadata": {"name": "q"}, "spec": {"hard": hard}}, NS)

        async def used(**counts: int) -> None:
            wanted = {"resourceclaims": sum(counts.values())}
            wanted |= {f"{name}.{BY_CLASS}": count for name, count in counts.items()}
            texts = {name: str(count) for name, count in wanted.items()}

            async def so() -> bool:
                return (await quotas.get("q", NS)).fields.get("status", {}).get("used") == texts

            await place.until(so, f"{texts} used")

        await used(frob=0, opaque=0)
        await here.asks("p", 3)
        await place.bound("p")
        await used(frob=1, opaque=0)
        await here.claim("second", 1)
        await used(frob=2, opaque=0)
        await classic.claim("o", resource_class="opaque")
        await classic.claim("o2", resource_class="opaque")
        await used(frob=2, opaque=2)
        for claim in (here.claim("third", 1), classic.claim("o3", resource_class="opaque")):
            with pytest.raises(errors.Forbidden, match="exceeded quota"):
                await claim
        await here.claims.delete("second", NS)
        await used(frob=1, opaque=2)

    tell(story, started=False)


class Slow:
    """A line to the server that takes a while for each request, and counts what it writes."""

    def __init__(self, place: Cluster, user: Any) -> None:
        self._transport = InProcessTransport(place.server.api.handle, user)
        self.writes = 0

    async def send(self, request: Request) -> Response:
        self.writes += is_write(request)
        await asyncio.sleep(LINE_S)
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()


@pytest.mark.parametrize("transactions", [True, False], ids=["together", "one-by-one"])
def test_a_pod_is_placed_sooner_and_with_fewer_calls_than_when_its_driver_is_asked(transactions: bool):
    """4381-SCL-01: the same pods one after the other in one cluster, all at the end of the same line."""

    async def story(place: Cluster) -> None:
        await place.start_controllers()
        here, classic = await Numeric(place).furnish({"a": 4, "b": 4}), Classic(place)
        await classic.resource_class("opaque")
        scheduler, drivers = Slow(place, identities.SCHEDULER), Slow(place, identities.ADMIN)
        await place.start_scheduler(transport=scheduler)
        driver = Driver(Client(drivers), {"a": 4, "b": 4})
        task = asyncio.ensure_future(driver.run())

        def calls() -> int:
            """The driver's looks at what there is, which a watch would spare it, are not counted."""
            return scheduler.writes + drivers.writes

        async def placed(kind: str) -> tuple[float, int]:
            await place.quiet()
            seconds, before = 0.0, calls()
            for at in range(PODS):
                name = f"{kind}-{at}"
                if kind == "numeric":
                    await here.claim(name, 1)
                else:
                    await classic.claim(name, resource_class="opaque")
                await place.quiet()
                begun = time.monotonic()
                await here.pod(name, name)
                await place.bound(name)
                seconds += time.monotonic() - begun
                await place.quiet()
            return seconds, calls() - before

        try:
            numeric_s, numeric_calls = await placed("numeric")
            classic_s, classic_calls = await placed("classic")
        finally:
            task.cancel()
        assert numeric_calls < classic_calls, (numeric_calls, classic_calls)
        assert numeric_s < classic_s, (numeric_s, classic_s)

    tell(story, started=False, transactions=transactions)


@pytest.mark.parametrize(
    "said",
    [
        "Choose *classic* (opaque to everybody but its driver) where the driver must decide",
        "*numeric* where a number of something on a node is all that matters",
        "*structured* (`resource.k8s.io/v1`) where devices differ and claims choose among them",
        "A driver of numeric parameters gives up flexibility",
    ],
)
def test_the_page_says_when_to_choose_which_and_what_a_driver_gives_up(said: str):
    """4381-ALT-05."""
    assert said in " ".join((ROOT / "docs" / "numeric.md").read_text().split())
