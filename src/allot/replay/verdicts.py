"""A decision as a value that can be kept, and compared with another: what was chosen, or why nothing was."""

from collections.abc import Iterator
from typing import assert_never

from allot.scheduler import (
    AllocateClaim,
    AskDrivers,
    AwaitDrivers,
    CreateExtendedClaim,
    Deallocate,
    DeleteClaim,
    EndTalk,
    KeepExtendedClaim,
    LeaveClaims,
    Negotiate,
    Outcome,
    Placed,
    Preempt,
    Remedy,
    ReserveClaim,
    SearchOn,
    TakeCompute,
    Write,
)

from .lines import Flight, Reason, Verdict


def verdict_of(outcome: Outcome | Exception) -> Verdict:
    if isinstance(outcome, Exception):
        return Verdict(error=repr(outcome))
    if isinstance(outcome, Placed):
        given = next((one.given for one in outcome.writes if isinstance(one, TakeCompute)), {})
        deeds = tuple(words for one in outcome.writes if (words := _in_words(one)))
        return Verdict(outcome.node, tuple(_flights(outcome)), given, deeds)
    reasons = [Reason(one.plugin, one.reason, count) for one, count in outcome.reasons.items()]
    ordered = tuple(sorted(reasons, key=lambda one: (-one.nodes, one.plugin, one.words)))
    return Verdict(reasons=ordered, remedy=_remedy(outcome.remedy) if outcome.remedy is not None else "")


def is_same(one: Verdict, other: Verdict) -> bool:
    """Ids of shares are drawn, and say nothing."""
    return _comparable(one) == _comparable(other)


def devices_of(verdict: Verdict) -> dict[str, tuple[str, ...]]:
    """By claim, in words; of one that is made for extended resources the name is empty."""
    return {
        flight.claim: tuple(sorted(_device(flight, at) for at in range(len(flight.devices))))
        for flight in verdict.flights
    }


def _comparable(one: Verdict) -> object:
    return one.node, devices_of(one), one.compute, sorted(one.deeds), one.reasons, one.remedy, one.error


def _device(flight: Flight, at: int) -> str:
    one = flight.devices[at]
    consumed = ", ".join(f"{name} {amount}" for name, amount in sorted(one.consumed_capacity.items()))
    share = f" ({consumed})" if consumed else ""
    admin = " as admin" if one.admin_access else ""
    return f"{one.request}: {one.driver}/{one.pool}/{one.device}{share}{admin}"


def _flights(placed: Placed) -> Iterator[Flight]:
    for write in placed.writes:
        match write:
            case AllocateClaim(claim, allocation):
                yield Flight(claim.uid, claim.key.name, allocation.devices.results)
            case CreateExtendedClaim(uid, _, allocation):
                yield Flight(uid, "", allocation.devices.results)
            case Negotiate(wants):
                for want in wants:
                    yield Flight(want.claim.uid, want.claim.key.name)
            case _:
                pass


def _in_words(write: Write) -> str:
    match write:
        case ReserveClaim(claim):
            return f"reserve claim {claim.key.name}"
        case CreateExtendedClaim():
            return "make a claim for extended resources"
        case KeepExtendedClaim(claim):
            return f"keep claim {claim.key.name}"
        case Negotiate(wants, node, nodes):
            drivers = ", ".join(sorted({want.driver for want in wants}))
            return f"ask {drivers} for {node.name}, of {len(nodes)} nodes"
        case EndTalk():
            return "end the talk with drivers"
        case TakeCompute() | AllocateClaim():
            return ""  # the verdict has them otherwise
        case _:
            assert_never(write)


def _remedy(remedy: Remedy) -> str:
    match remedy:
        case Deallocate(claim):
            return f"take back claim {claim.key.name}"
        case DeleteClaim(claim):
            return f"delete claim {claim.key.name}"
        case LeaveClaims(claims):
            return f"leave claims {', '.join(one.key.name for one in claims)}"
        case AskDrivers(nodes):
            return f"ask drivers about {', '.join(sorted(nodes))}"
        case AwaitDrivers():
            return "wait for drivers"
        case Preempt(node, victims):
            return f"on {node} evict {', '.join(sorted(str(one.key) for one in victims)) or 'nobody'}"
        case SearchOn():
            return "look at more nodes"
        case _:
            assert_never(remedy)
