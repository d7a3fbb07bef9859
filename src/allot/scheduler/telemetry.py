"""What dashboards read: upstream's names, as far as they mean the same here."""

from collections.abc import Callable, Mapping

from allot.base import Metrics
from allot.informers import SetAside

from .binding import Waited
from .cycle import Outcome, Placed
from .negotiation import Negotiated
from .queue import Queue
from .readiness import Readiness
from .snapshot import Snapshot
from .timing import Observe

_READY_S = tuple(0.1 * 2**at for at in range(14))
_STATUS = {Readiness.READY: "success", Readiness.FAILED: "failure", Readiness.LATE: "timeout"}
_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192)


_PLUGIN_S = tuple(0.00001 * 1.5**at for at in range(20))


def plugin_times(metrics: Metrics) -> Observe:
    """Where a stopwatch puts what it measures."""
    times = metrics.histogram(
        "scheduler_plugin_execution_duration_seconds",
        "How long a plugin took at an extension point, in one cycle of ten.",
        "plugin",
        "extension_point",
        "status",
        bounds=_PLUGIN_S,
    )

    def observe(plugin: str, point: str, status: str, seconds: float) -> None:
        times.observe(seconds, plugin, point, status)

    return observe


class NumericMetrics:
    """How numeric parameters are used (KEP-4381), as it is at the moment: read from what is known."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot, failures: Callable[[], int]) -> None:
        """`failures` says how many expansions of templates have failed."""
        readings: tuple[tuple[str, str, Callable[[], float]], ...] = (
            (
                "scheduler_numeric_classes",
                "Resource classes with numeric parameters.",
                lambda: sum(1 for one in snapshot.resource_classes.values() if one.numeric_parameters),
            ),
            (
                "scheduler_numeric_parameter_types",
                "Kinds of parameter objects that such classes name for claims.",
                lambda: snapshot.parameters.counts()[0],
            ),
            (
                "scheduler_numeric_parameter_types_resolved",
                "Those of them that the server serves: all, where drivers are installed completely.",
                lambda: snapshot.parameters.counts()[1],
            ),
            (
                "scheduler_numeric_claims_allocated",
                "Claims that are allocated with numeric parameters.",
                lambda: sum(1 for one in snapshot.claims() if one.is_held_numerically),
            ),
            (
                "scheduler_numeric_instances_unreadable",
                "Instances that nodes publish for a model that is here, and that it cannot read.",
                lambda: snapshot.capacity.unreadable(),
            ),
            (
                "scheduler_numeric_parameter_types_forbidden",
                "Kinds of parameter objects that the server serves and the scheduler may not read.",
                lambda: snapshot.parameters.forbidden(),
            ),
            (
                "scheduler_numeric_template_failures",
                "Templates of classes that failed, once a version of the object that they were given.",
                failures,
            ),
        )
        for name, text, read in readings:
            metrics.readings(name, text, read=_alone(read))


def _alone(read: Callable[[], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): float(read())}


class SchedulerMetrics:
    def __init__(self, metrics: Metrics, queue: Queue, aside: SetAside, profile: str) -> None:
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
        self._claims = metrics.counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Claims created.",
            "status",
            "admin_access",
            "owner_api_group",
            "owner_api_kind",
        )
        self._made_ready = metrics.counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Claims whose devices had to be made ready.",
            "profile",
            "driver",
            "status",
        )
        self._ready_after = metrics.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long devices took to be made ready.",
            "profile",
            "driver",
            "status",
            bounds=_READY_S,
        )
        self._negotiated = metrics.counter(
            "allot_scheduler_negotiations_total",
            "Classic claims that a driver was to allocate on a chosen node: allocated, refused or late.",
            "profile",
            "driver",
            "result",
        )
        self._negotiated_after = metrics.histogram(
            "allot_scheduler_negotiation_duration_seconds",
            "How long drivers took to allocate classic claims, or not to.",
            "profile",
            "driver",
            "result",
            bounds=_READY_S,
        )
        metrics.readings(
            "scheduler_pending_pods",
            "Pods that wait, by queue.",
            "queue",
            read=lambda: {(name,): float(count) for name, count in queue.pending().items()},
        )
        metrics.readings(
            "allot_scheduler_objects_set_aside",
            "Objects that the scheduler cannot read, by resource.",
            "resource",
            read=lambda: {(name,): float(count) for name, count in aside.counts().items()},
        )

    def extended_claim(self, created: bool) -> None:
        self._claims.add(1, "success" if created else "failure", "false", "", "Pod")

    def waited(self, waited: Waited) -> None:
        status = _STATUS[waited.state]
        for driver in waited.drivers:
            self._made_ready.add(1, self._profile, driver, status)
            self._ready_after.observe(waited.seconds, self._profile, driver, status)

    def negotiated(self, one: Negotiated) -> None:
        self._negotiated.add(1, self._profile, one.driver, one.ending)
        self._negotiated_after.observe(one.seconds, self._profile, one.driver, one.ending)

    def decided(self, outcome: Outcome, waited_s: float, attempts: int) -> None:
        placed = isinstance(outcome, Placed)
        self._attempts.add(1, "scheduled" if placed else "unschedulable", self._profile)
        if placed:
            self._waited.observe(waited_s, str(min(attempts, 16)))
