"""What is judged when the load is over."""

import asyncio
from dataclasses import dataclass

from allot.bench.judging import judge
from allot.sim.recording import Seen
from allot.testing import api_server
from sim.test_checkers import FINISHED, HELD, claim, gone, history


@dataclass
class Heard:
    """As a `Follower`, when it has heard everything."""

    events: list[Seen]
    lost: str = ""

    def seen(self):
        return iter(self.events)


def judged(*followers: Heard) -> list[str]:
    async def story() -> list[str]:
        async with api_server() as server:
            return await judge(server.client(), followers)

    return asyncio.run(story())


def test_a_claim_that_is_given_back_and_goes_at_once_is_as_it_should_be():
    """The claim controller of the bench has transactions: those who watch hear of a claim that goes with what
    it had."""
    told = history(*FINISHED, gone(HELD))
    assert judged(Heard(told[1::2]), Heard(told[::2])) == []


def test_a_claim_that_goes_with_what_it_has_and_was_not_protected_is_wrong():
    told = judged(
        Heard(history(claim(finalizer=False), gone(claim(finalizer=False)))), Heard([], lost="ended")
    )
    assert told[0] == "ended"
    assert told[-1].endswith("C1: claim c went while it was allocated: nothing protected it")
