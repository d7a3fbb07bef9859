"""How often claims were made from templates, or could not be: under upstream's name of today, and under the
names of KEP-3063."""

from collections.abc import Mapping
from typing import Any

from allot.api import generated
from allot.base import Counter, Metrics


class CreateCounts:
    def __init__(self, metrics: Metrics) -> None:
        self._by_kind = creates_total(metrics)
        self._all = metrics.counter("resource_controller_create_total", "Claims that were to be created.")
        self._failed = metrics.counter(
            "resource_controller_create_failures_total", "Claims that could not be created."
        )

    def count(self, status: str, claim: Mapping[str, Any]) -> None:
        """One attempt, and whether it was a success or a failure."""
        asks = str(generated.asks_for_admin_access(claim.get("spec") or {})).lower()
        self._by_kind.add(1, status, asks, "", "Pod")
        self._all.add(1)
        if status == "failure":
            self._failed.add(1)


def creates_total(metrics: Metrics) -> Counter:
    return metrics.counter(
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "Claims created.",
        "status",
        "admin_access",
        "owner_api_group",
        "owner_api_kind",
    )
