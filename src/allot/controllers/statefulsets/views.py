"""The few fields of stateful sets that their controller reads."""

from allot.api import Object, meta

from ..workloads import HistoryRules, count_of


class RollingUpdate(meta.View, frozen=True):
    partition: int = 0
    max_unavailable: int | str = 1


class UpdateStrategy(meta.View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class Ordinals(meta.View, frozen=True):
    start: int = 0


class StatefulSetSpec(meta.View, frozen=True):
    replicas: int = 1
    service_name: str = ""
    selector: meta.LabelSelector = meta.LabelSelector()
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    ordinals: Ordinals = Ordinals()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class StatefulSetStatus(meta.View, frozen=True):
    current_revision: str = ""
    collision_count: int = 0


class StatefulSet(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def ordinals(self) -> range:
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)

    @property
    def is_ordered(self) -> bool:
        return self.spec.pod_management_policy == "OrderedReady"

    @property
    def is_rolling(self) -> bool:
        return self.spec.update_strategy.type == "RollingUpdate"

    @property
    def first_updated(self) -> int:
        """The lowest ordinal that gets the new template."""
        rolling = self.spec.update_strategy.rolling_update
        return self.spec.ordinals.start + (rolling.partition if self.is_rolling else 0)

    @property
    def unavailable(self) -> int:
        """How many may be away during an update: one at least, or nothing would ever move."""
        written = self.spec.update_strategy.rolling_update.max_unavailable
        return max(1, count_of(written, self.spec.replicas))


def set_of(object: Object) -> StatefulSet:
    return object.view(StatefulSet)


def history_rules(object: Object) -> HistoryRules:
    wish = set_of(object)
    return HistoryRules(wish.spec.selector, wish.spec.revision_history_limit, wish.status.collision_count)
