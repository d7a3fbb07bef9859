"""counter: a number of equal things, and claims that want some of them from one instance. KEP-4381's example.

    kind: Capacity                               kind: Parameters
    apiVersion: counter.dra.config.k8s.io/v1…    apiVersion: counter.dra.config.k8s.io/v1…
    metadata: {labels: {…}}                      required: 3
    count: 8                                     selector: {matchLabels: {…}}

The specification prints `Count`, `Required` and `Selector`, and two versions: all of that is understood. The
tightest instance is chosen, so that large ones stay whole for large claims.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..model import Choice, Lacking, Offer, Types
from .typed import Count, Strict, Tolerant, read

_GROUP: Final = "counter.dra.config.k8s.io"
_COUNT: Final = f"{_GROUP}/count"


class Capacity(Tolerant, frozen=True):
    count: Count = 0


class Parameters(Strict, frozen=True):
    required: Count = 0


class _Allocation(Tolerant, frozen=True, kw_only=True):
    count: Count


class Counter:
    name = "counter"
    types = Types(_GROUP, ("v1alpha1", "v1beta1"))

    def capacity(self, data: Mapping[str, Any]) -> Capacity:
        return read(Capacity, data, {"Count": "count"})

    def parameters(self, data: Mapping[str, Any]) -> Parameters:
        return read(Parameters, data, {"Required": "required", "Selector": "selector"})

    def amounts(self, capacity: Capacity) -> Mapping[str, int]:
        return {_COUNT: capacity.count}

    def is_flexible(self, want: Parameters) -> bool:
        return False

    def choices(self, want: Parameters, offers: Sequence[Offer]) -> Iterable[Choice]:
        fitting = [one for one in self._matching(want, offers) if one.free[_COUNT] >= want.required]
        fitting.sort(key=lambda one: one.free[_COUNT])  # stable: of equals the first
        return (Choice(one.instance, {_COUNT: want.required}) for one in fitting)

    def lacking(self, want: Parameters, offers: Sequence[Offer]) -> Lacking:
        matching = self._matching(want, offers)
        if not matching:
            return Lacking(
                "node(s) without a counter that the claim selects",
                f"none of {len(offers)} counters is{want.selector_text}",
                by=float("inf"),
            )
        best = max(matching, key=lambda one: one.free[_COUNT])
        free = best.free[_COUNT]
        text = f"needs {want.required} free of a counter{want.selector_text}; {best.instance.id} has {free}"
        return Lacking("node(s) with too little free of a counter", text, want.required - free)

    def allocation(self, choice: Choice) -> dict[str, Any]:
        return {"instance": choice.instance.id, "count": choice.takes[_COUNT]}

    def taken(self, allocation: Mapping[str, Any]) -> Mapping[str, int]:
        return {_COUNT: read(_Allocation, allocation).count}

    def _matching(self, want: Parameters, offers: Sequence[Offer]) -> list[Offer]:
        return [one for one in offers if want.selects(one.instance.capacity.labels)]


COUNTER: Final = Counter()
