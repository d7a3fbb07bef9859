"""What pods may require of each other and this scheduler does not do.

A pod that requires to be near others, away from them, or spread among them is not placed: it would run
otherwise than its author wrote. It waits, and its condition says what it waits for.
"""

from collections.abc import Hashable

from ..framework import Checks, CycleState, Event, Rejection
from ..snapshot import Snapshot

_OTHER = "this scheduler does not place; name another one in spec.schedulerName, or leave the requirement out"


class InterPodAffinity:
    name = "InterPodAffinity"
    events = frozenset({Event.POD_CHANGED})

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        affinity = state.pod.spec.affinity
        if affinity is None:
            return None
        if affinity.pod_affinity is not None and affinity.pod_affinity.required:
            return Rejection(self.name, f"the pod requires affinity to other pods, which {_OTHER}")
        if affinity.pod_anti_affinity is not None and affinity.pod_anti_affinity.required:
            return Rejection(self.name, f"the pod requires anti-affinity to other pods, which {_OTHER}")
        return None

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        return None


class PodTopologySpread:
    name = "PodTopologySpread"
    events = frozenset({Event.POD_CHANGED})

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        for constraint in state.pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable != "ScheduleAnyway":
                return Rejection(
                    self.name,
                    f"the pod requires to be spread over {constraint.topology_key}, which {_OTHER}",
                )
        return None

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        return None
