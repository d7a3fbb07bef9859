"""The few fields of a replica set that its controller reads."""

from allot.api import Object, meta


class ReplicaSetSpec(meta.View, frozen=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: meta.LabelSelector = meta.LabelSelector()


class ReplicaSetStatus(meta.View, frozen=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[meta.Condition, ...] = ()


class ReplicaSet(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


def set_of(object: Object) -> ReplicaSet:
    return object.view(ReplicaSet)
