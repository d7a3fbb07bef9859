"""SchedulingGates: a pod is not tried before whoever gated it has taken its gates away."""

from ..pod import PodInfo
from ..snapshot import Snapshot


class SchedulingGates:
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> str | None:
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        return f"waiting for scheduling gates: {', '.join(gates)}" if gates else None
