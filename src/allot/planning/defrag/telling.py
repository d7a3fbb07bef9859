"""How fragmented devices are, and how to make room, for people."""

from collections.abc import Iterator, Sequence

from .fragmentation import Fragmentation, Make, Measure
from .layout import Rung
from .search import NoPlan, Plan

POOLS_SHOWN_MAX = 20
"""The most fragmented ones: whoever wants them all asks for JSON."""


def report(found: Fragmentation) -> str:
    lines = [line for make in found.makes for line in _make(make)]
    worse = [one for one in found.pools if one.measure.lost > 0]
    if worse:
        lines.append(f"pools that are fragmented by themselves: {len(worse)} of {len(found.pools)}")
        rows = [("POOL", "DEVICES", "LARGEST THAT FITS", "FREE WOULD ALLOW", "FRAGMENTED")]
        rows += [
            (str(one.pool), one.measure.title, *_measure(one.measure)) for one in worse[:POOLS_SHOWN_MAX]
        ]
        lines += _table(rows)
        if len(worse) > POOLS_SHOWN_MAX:
            lines.append(f"  and {len(worse) - POOLS_SHOWN_MAX} more")
    if found.closed:
        lines.append(f"not counted, since nothing is placed there: {', '.join(sorted(found.closed)[:20])}")
    return "\n".join(lines or ["no devices are published in slices"])


def _amount(devices: float) -> str:
    return f"{devices:.2f}".rstrip("0").rstrip(".")


def _make(make: Make) -> Iterator[str]:
    fits, allows, lost = _measure(make.measure)
    where = f" (on {make.where})" if make.measure.fits is not None else ""
    pools = "1 pool" if make.pools == 1 else f"{make.pools} pools"
    free, of = _amount(make.measure.free), _amount(make.measure.of)
    yield f"{make.driver}, {make.measure.title}: {pools}, {free} of {of} free"
    if make.measure.lost:
        yield f"  the largest that fits is {fits}{where}; as much free capacity would allow {allows}"
        yield f"  fragmented: {lost}"
    else:
        yield f"  the largest that fits is {fits}{where}: nothing is lost to fragmentation"
    rows = [("SIZE", "FIT NOW", "FREE WOULD HOLD")]
    rows += [(rung.name, str(fit), str(would)) for rung, fit, would in _telling(make)]
    if len(rows) > 1:
        yield from _table(rows)
    yield ""


def _telling(make: Make) -> Iterator[tuple[Rung, int, int]]:
    """Every size of one device, and of several those that are powers of two, or the most there are."""
    for rung, fit, would in make.sizes:
        several = round(rung.size) if rung.size > 1 else 1
        if several & (several - 1) == 0 or rung == make.sizes[-1][0]:
            yield rung, fit, would


def _measure(measure: Measure) -> tuple[str, str, str]:
    return _rung(measure.fits), _rung(measure.allows), f"{measure.lost:.0%}"


def _rung(rung: Rung | None) -> str:
    return rung.name if rung is not None else "nothing"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def planned(plan: Plan | NoPlan) -> str:
    return "\n".join(_plan(plan) if isinstance(plan, Plan) else _no_plan(plan))


def _plan(plan: Plan) -> Iterator[str]:
    if not plan.steps:
        yield "nothing has to move"
    for number, step in enumerate(plan.steps, 1):
        then = f"another goes to {step.to}" if step.to else "nobody makes it anew"
        yield f"{number}. evict {step.pod.key} from {step.node}: {then}"
        for pod, node in step.beside.items():
            yield f"   then {pod}, which waited, goes to {node}"
    for pod, node in plan.places.items():
        yield f"fits: {pod} on {node}"
    if plan.steps:
        moves = "1 move" if len(plan.steps) == 1 else f"{len(plan.steps)} moves"
        yield f"{moves}: " + ("no fewer would do" if plan.is_certain else "fewer may do, not all were tried")


def _no_plan(plan: NoPlan) -> Iterator[str]:
    yield f"does not fit: {plan.why}"
    moves = "no move" if not plan.moves_max else f"no plan of up to {plan.moves_max} moves"
    yield f"{moves} makes room" + ("" if plan.is_certain else ", as far as was looked")
    for pod, why in plan.stays.items():
        yield f"stays    {pod}: {why}"
