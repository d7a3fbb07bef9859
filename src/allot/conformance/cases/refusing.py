"""Claims that cannot be prepared, alone and in batches with others."""

from typing import Final

from msgspec.structs import replace

from allot.wire import dra

from ..stage import Broken, Stage, shown

BATCH: Final = 200


async def _refused(stage: Stage, claim: dra.Claim, what: str) -> None:
    answer = (await stage.prepare(claim))[claim.uid]
    if not answer.error:
        raise Broken(f"{what} was prepared, {shown(answer)}")


async def refuses_unknown_claims(stage: Stage) -> None:
    """Prepare of a claim that is not in the API is an error of that claim."""
    await _refused(stage, stage.unknown(), "a claim that is not there")


async def refuses_other_uids(stage: Stage) -> None:
    """A claim of that name with another uid is another claim: an error."""
    made = await stage.claim()
    other = replace(made.claim, uid=stage.unknown().uid)
    await _refused(stage, other, f"claim {made.claim.name} under another uid")


async def refuses_unallocated_claims(stage: Stage) -> None:
    """A claim without an allocation has no devices: an error."""
    await _refused(stage, await stage.open_claim(), "a claim without an allocation")


async def leaves_devices_of_others(stage: Stage) -> None:
    """Of a claim with devices of several drivers, and of one with another driver's alone, the driver
    prepares its own devices and answers with no other."""
    mixed = await stage.claim(foreign=True)
    await stage.ready(mixed)
    answer = (await stage.prepare(claim := await stage.foreign_claim()))[claim.uid]
    if answer.devices:
        raise Broken(f"a claim with no device of {stage.driver} was prepared, {shown(answer)}")


async def a_bad_claim_spoils_no_other(stage: Stage) -> None:
    """In a batch, an error of one claim is that claim's: the others are prepared and answered."""
    made = await stage.claim()
    unknown = stage.unknown()
    for batch in ((unknown, made.claim), (made.claim, unknown)):
        answers = await stage.prepare(*batch)
        if answers[made.claim.uid].error:
            raise Broken(f"a claim beside a bad one was not prepared: {answers[made.claim.uid].error}")
        if not answers[unknown.uid].error:
            raise Broken("a claim that is not there was prepared beside a good one")


async def big_batches(stage: Stage) -> None:
    """A batch of hundreds of claims is answered, each claim for itself."""
    made = await stage.claim()
    many = [stage.unknown() for _ in range(BATCH)]
    answers = await stage.prepare(*many, made.claim)
    if answers[made.claim.uid].error:
        raise Broken(f"beside {BATCH} bad claims: {answers[made.claim.uid].error}")
    await stage.released(*many, made.claim)


async def order_does_not_matter(stage: Stage) -> None:
    """Claims may come in any order and grouping, and are unprepared in another."""
    one, two = await stage.claims([1, 1])
    both = await stage.prepare(one.claim, two.claim)
    again = await stage.prepare(two.claim, one.claim)
    if both != again:
        raise Broken("two claims in another order were answered otherwise")
    await stage.ready(two)
    await stage.released(two.claim)
    await stage.ready(one)
    await stage.released(one.claim)
