"""The kit without sockets: calls go from task to task, and a test decides what is lost on the way."""

import pytest

from allot.driver import Driver, Node, Surroundings, running
from allot.wire import CallFailed, Fault, LocalSockets, dra
from driver.world import NAME, NODE, pools, prepare, tell


@pytest.mark.parametrize("fault", [Fault(unanswered=True), Fault(cut=True), Fault(refused=True)])
def test_an_answer_that_got_lost_is_given_again(fault):
    """N3: whatever became of the first call, the second gets the one answer there is."""
    calls, faults = [], [fault]

    def once(claim):
        calls.append(claim.name)
        return prepare(claim)

    async def story(world):
        sockets = LocalSockets(faults=lambda path, method: faults.pop() if faults else Fault())
        claim = await world.claim("a", "gpu-0")
        around = Surroundings(world.server.client(), sockets=sockets)
        async with running(Driver(NAME, pools, once), Node(NODE), world.places, around):
            assert set(sockets.found(str(world.places.registry))) == {f"{NAME}-reg.sock"}
            channel = sockets.dial(str(world.places.service_socket))
            with pytest.raises(CallFailed):
                await dra.prepare(channel, dra.V1, [claim], timeout_s=0.5)
            answer = (await dra.prepare(channel, dra.V1, [claim], timeout_s=20))[claim.uid]
            assert answer.error == "" and world.env(answer) == ("GPU_0=gpu-0",)
        assert sockets.found(str(world.places.registry)) == {}
        assert calls == ["a"]

    tell(story)
