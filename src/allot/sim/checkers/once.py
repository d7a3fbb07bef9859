"""N3: to prepare a claim again has the effect of once, whoever died in between.

What was answered is kept: the driver's author is not asked again before the claim is given back or the
machine was started anew, and a second answer says what the first one did. For that to hold after any
crash, what is about to be done is on disk before it is done, and what is answered before it is answered:
the agent's word of what it tells drivers, and the driver's own.
"""

from collections.abc import Iterator

from ..recording import Seen
from .on_machines import MACHINES, Machines, OnMachine, checkpoint_claims, state_claims


class Once:
    follows = (MACHINES,)

    def __init__(self) -> None:
        self._machines = Machines()

    def see(self, seen: Seen) -> Iterator[str]:
        machine = self._machines.nodes.get(seen.object.name, OnMachine())
        of = seen.fields
        key = of.get("driver", ""), of.get("claim", "")
        what = f"claim {of.get('named') or of.get('claim', '')} on {seen.object.name}"
        if seen.type == "PREPARE":
            if key in machine.answered:
                yield f"N3: {what} is made ready again by {key[0]}, which had answered for it"
            yield from _kept(seen, what)
        elif seen.type == "ANSWERED" and key in machine.held:  # else it was given back meanwhile
            before = machine.answered.get(key)
            if before is not None and before != of["names"]:
                yield f"N3: {key[0]} answers {of['names']} for {what}, and before that {before}"
            if state_claims(of["state"]).get(key[1]) != machine.boot:
                yield f"N3: {key[0]} answers for {what} before that is on disk"
        self._machines.see(seen)

    def rest(self) -> Iterator[str]:
        yield from ()


def _kept(seen: Seen, what: str) -> Iterator[str]:
    claim = seen.fields["claim"]
    if claim not in checkpoint_claims(seen.fields["checkpoint"]):
        yield f"N6: {what} is made ready before the agent has written down that it is"
    if claim not in state_claims(seen.fields["state"]):
        yield f"N3: {what} is made ready before its driver has written down that it is"
