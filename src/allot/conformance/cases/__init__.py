"""What the contract asks of a driver, and how each of it is tried.

A case is a coroutine over a `Stage`. Its name is what one looks for in a report, its docstring what
the contract asks. It raises `Broken` with what was seen, or `NotTried` with what it would need.

    registering   how a driver makes itself known
    preparing     one claim: prepared, again, at once, and let go
    refusing      claims that cannot be prepared, alone and in batches
    skew          other versions, nonsense, impatience
    files         CDI devices and their files
    restarts      the driver ends and begins anew
    telling       slices and health
    offering      drivers of numeric parameters: what they have, and who is given some of it
"""

from collections.abc import Awaitable, Callable
from inspect import getdoc
from typing import Final, NamedTuple

from ..stage import Stage
from . import files, offering, preparing, refusing, registering, restarts, skew, telling

Tried = Callable[[Stage], Awaitable[None]]


class Case(NamedTuple):
    name: str
    asks: str
    tried: Tried


def _case(tried: Tried) -> Case:
    return Case(tried.__name__.replace("_", " "), " ".join((getdoc(tried) or "").split()), tried)


CASES: Final = tuple(
    _case(tried)
    for tried in (
        registering.registration_info,
        registering.registration_status,
        registering.versions_are_served,
        preparing.empty_batch,
        preparing.prepares_what_was_allocated,
        preparing.names_requests_without_alternatives,
        preparing.prepare_may_be_repeated,
        preparing.prepare_may_come_at_once,
        preparing.unprepare_may_be_repeated,
        preparing.unprepare_without_prepare,
        preparing.unprepare_of_unknown_claims,
        preparing.unprepare_after_deletion,
        preparing.prepare_again_after_unprepare,
        refusing.refuses_unknown_claims,
        refusing.refuses_other_uids,
        refusing.refuses_unallocated_claims,
        refusing.leaves_devices_of_others,
        refusing.a_bad_claim_spoils_no_other,
        refusing.big_batches,
        refusing.order_does_not_matter,
        skew.versions_agree,
        skew.newer_kubelets_are_understood,
        skew.junk_hurts_nobody,
        skew.an_impatient_kubelet,
        files.cdi_names_are_names,
        files.unprepare_removes_cdi_devices,
        files.lost_cdi_files_come_back,
        restarts.a_restarted_driver_knows_its_claims,
        restarts.a_restart_between_prepare_and_answer,
        restarts.a_reboot_is_survived,
        telling.pools_are_complete,
        telling.deleted_slices_come_back,
        telling.health_reports_can_be_read,
    )
)

NUMERIC: Final = tuple(
    _case(tried)
    for tried in (
        offering.capacity_can_be_published,
        offering.capacity_is_told_to_everybody,
        offering.capacity_is_told_after_a_restart,
        offering.prepares_what_was_reserved,
        offering.refuses_what_it_does_not_have,
    )
)
"""For plugins that take classic and numeric claims, one a call."""
