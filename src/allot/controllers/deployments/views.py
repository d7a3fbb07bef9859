"""The few fields of deployments, and of the replica sets they own, that decide a rollout."""

from allot.api import Object, meta

from ..replicasets.views import ReplicaSet
from ..workloads import count_of

NO_DEADLINE_S = 2**31 - 1
"""Upstream's way to write that there is no deadline."""


class RollingUpdate(meta.View, frozen=True):
    max_unavailable: int | str = "25%"
    max_surge: int | str = "25%"


class Strategy(meta.View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(meta.View, frozen=True):
    replicas: int = 1
    selector: meta.LabelSelector = meta.LabelSelector()
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    progress_deadline_seconds: int | None = None
    paused: bool = False


class DeploymentCondition(meta.View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: str = ""
    last_transition_time: str = ""


class DeploymentStatus(meta.View, frozen=True):
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    observed_generation: int = 0
    collision_count: int = 0
    conditions: tuple[DeploymentCondition, ...] = ()


class Deployment(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def surge(self) -> int:
        """How many pods there may be beyond the wanted ones."""
        return 0 if self.is_recreated else self._bounds()[0]

    @property
    def unavailable(self) -> int:
        """How many of the wanted pods may be missing."""
        return 0 if self.is_recreated else min(self._bounds()[1], self.spec.replicas)

    @property
    def is_recreated(self) -> bool:
        return self.spec.strategy.type == "Recreate"

    @property
    def deadline_s(self) -> int | None:
        written = self.spec.progress_deadline_seconds
        return None if written is None or written >= NO_DEADLINE_S else written

    def _bounds(self) -> tuple[int, int]:
        """Shares of few replicas may both come down to nothing; then one may be missing."""
        rolling = self.spec.strategy.rolling_update
        surge = count_of(rolling.max_surge, self.spec.replicas)
        unavailable = count_of(rolling.max_unavailable, self.spec.replicas, up=False)
        return surge, unavailable if surge or unavailable else 1


def deployment_of(object: Object) -> Deployment:
    return object.view(Deployment)


def set_of(object: Object) -> ReplicaSet:
    return object.view(ReplicaSet)
