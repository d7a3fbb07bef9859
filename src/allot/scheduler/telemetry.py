"""What dashboards read: upstream's names, as far as they mean the same here."""

from allot.base import Metrics

from .cycle import Outcome, Placed
from .queue import Queue

_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192)


class SchedulerMetrics:
    def __init__(self, metrics: Metrics, queue: Queue, profile: str) -> None:
        self._profile = profile
        self._attempts = metrics.counter(
            "scheduler_schedule_attempts_total", "Attempts to place a pod.", "result", "profile"
        )
        self._waited = metrics.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the first look at a pod to the decision.",
            "attempts",
            bounds=_SECONDS,
        )
        metrics.readings(
            "scheduler_pending_pods",
            "Pods that wait, by queue.",
            "queue",
            read=lambda: {(name,): float(count) for name, count in queue.pending().items()},
        )

    def decided(self, outcome: Outcome, waited_s: float, attempts: int) -> None:
        placed = isinstance(outcome, Placed)
        self._attempts.add(1, "scheduled" if placed else "unschedulable", self._profile)
        if placed:
            self._waited.observe(waited_s, str(min(attempts, 16)))
