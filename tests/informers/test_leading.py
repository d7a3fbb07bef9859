"""One copy acts, the others wait."""

import asyncio
import logging

from allot.apiserver import identities
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


def test_who_may_not_write_the_lease_is_told_so(caplog):
    """The scheduler's rights are to make any lease and to renew its own: under another name it leads once."""

    async def story() -> None:
        async with api_server() as server:
            leases = server.client(identities.SCHEDULER).resource("coordination.k8s.io", "v1", "leases")
            terms: list[str] = []

            async def work() -> None:
                terms.append("begun")
                try:
                    await asyncio.sleep(60)
                finally:
                    terms.append("ended")

            settings = LeaseSettings("mine", "kube-system", "me", **QUICK)
            standing = asyncio.ensure_future(lead_forever(Election(settings, leases, SystemClock()), work))
            await soon(lambda: terms == ["begun", "ended"])
            await asyncio.sleep(3 * QUICK["retry_period_s"])
            standing.cancel()
            await asyncio.wait([standing])

    with caplog.at_level(logging.WARNING, logger="allot.informers.leading"):
        asyncio.run(asyncio.wait_for(story(), 30))
    refused, lost, again = [one.getMessage() for one in caplog.records]
    assert refused.startswith("lease mine: ") and "is forbidden" in refused
    assert "not renewed" in lost and "is forbidden" in lost
    assert again == refused
