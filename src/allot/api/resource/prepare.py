"""What the server does to an object between reading and judging it.

Gated fields go, and members that upstream always shows are put in, so that the
stored form is what v1 shows and needs no work on the way out.
"""

from collections.abc import Iterator

from ..kind import Fields, WriteContext
from . import claimstatus, gated, taintrules
from .reading import objects


def _member(holder: Fields, name: str) -> Fields:
    if holder.get(name) is None:
        holder[name] = {}
    inner: Fields = holder[name]
    return inner


def _complete_spec(holder: Fields) -> None:
    _member(_member(holder, "spec"), "devices").setdefault("requests", None)


def _complete_claim(claim: Fields) -> None:
    _complete_spec(claim)
    for device in _member(claim, "status").get("devices") or ():
        _complete_conditions(device)
        device.setdefault("conditions", None)


def _complete_conditions(holder: Fields) -> None:
    for condition in objects(holder, "conditions"):
        condition.setdefault("message", "")


def create_claim(new: Fields, context: WriteContext) -> None:
    new["status"] = {}
    gated.drop(new, None, context.gates, gated.CLAIM)
    _complete_claim(new)


def update_claim(new: Fields, old: Fields, context: WriteContext) -> None:
    gated.drop(new, old, context.gates, gated.CLAIM)
    _complete_claim(new)


def update_claim_status(new: Fields, old: Fields, context: WriteContext) -> None:
    claimstatus.drop_deallocated_devices(new, old)
    update_claim(new, old, context)


def create_template(new: Fields, context: WriteContext) -> None:
    gated.drop(new, None, context.gates, gated.TEMPLATE)
    _complete_template(new)


def update_template(new: Fields, old: Fields, context: WriteContext) -> None:
    gated.drop(new, old, context.gates, gated.TEMPLATE)
    _complete_template(new)


def _complete_template(new: Fields) -> None:
    spec = _member(new, "spec")
    _member(spec, "metadata")
    _complete_spec(spec)


def create_class(new: Fields, context: WriteContext) -> None:
    gated.drop(new, None, context.gates, gated.CLASS)
    _member(new, "spec")


def update_class(new: Fields, old: Fields, context: WriteContext) -> None:
    gated.drop(new, old, context.gates, gated.CLASS)
    _member(new, "spec")


def create_slice(new: Fields, context: WriteContext) -> None:
    gated.drop(new, None, context.gates, gated.SLICE)
    _complete_slice(new)


def update_slice(new: Fields, old: Fields, context: WriteContext) -> None:
    gated.drop(new, old, context.gates, gated.SLICE)
    _complete_slice(new)


def _complete_slice(new: Fields) -> None:
    """Numbers that typed clients insist on: what is not said is zero."""
    spec = _member(new, "spec")
    for name in ("generation", "resourceSliceCount"):
        _member(spec, "pool").setdefault(name, 0)
    for device in objects(spec, "devices"):
        for amount in (*objects(device, "capacity"), *_counters(objects(device, "consumesCounters"))):
            amount.setdefault("value", "0")
    for counter in _counters(objects(spec, "sharedCounters")):
        counter.setdefault("value", "0")


def _counters(holders: Iterator[Fields]) -> Iterator[Fields]:
    for holder in holders:
        yield from objects(holder, "counters")


def create_rule(new: Fields, context: WriteContext) -> None:
    new["status"] = {}


def update_rule(new: Fields, old: Fields, context: WriteContext) -> None:
    taintrules.restamp(new, old, context.now)
    _member(new, "status")


def update_rule_status(new: Fields, old: Fields, context: WriteContext) -> None:
    _complete_conditions(_member(new, "status"))
