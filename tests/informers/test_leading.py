"""One copy acts, the others wait."""

import asyncio

from allot.base import SystemClock
from allot.client import LeaseSettings
from allot.informers import Election, lead_forever
from allot.testing import api_server
from informers.world import NS, soon

QUICK = {"duration_s": 2, "renew_deadline_s": 1.0, "retry_period_s": 0.05}


def test_two_copies_never_work_at_once_and_who_loses_the_lease_stands_again():
    async def story() -> None:
        async with api_server() as server:
            leases = server.client().resource("coordination.k8s.io", "v1", "leases")
            at_work: list[str] = []
            terms: list[str] = []

            async def copy(name: str) -> None:
                async def work() -> None:
                    at_work.append(name)
                    terms.append(name)
                    assert at_work == [name]
                    try:
                        await asyncio.sleep(60)
                    finally:
                        at_work.remove(name)

                settings = LeaseSettings("lock", NS, name, **QUICK)
                await lead_forever(Election(settings, leases, SystemClock()), work)

            copies = [asyncio.ensure_future(copy(name)) for name in ("a", "b")]
            await soon(lambda: len(terms) == 1)
            usurper = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 1}}
            await leases.patch("lock", usurper, NS)
            await soon(lambda: not at_work)
            await soon(lambda: len(terms) == 2)
            assert not any(one.done() for one in copies)

            copies[0 if terms[-1] == "a" else 1].cancel()
            await soon(lambda: len(terms) == 3)
            assert terms[2] != terms[1]
            for one in copies:
                one.cancel()
            await asyncio.wait(copies)

    asyncio.run(asyncio.wait_for(story(), 30))
