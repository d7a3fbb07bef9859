"""The few fields of daemon sets that their controller reads."""

from allot.api import Object, core, meta

from ..workloads import HistoryRules, count_of


class RollingUpdate(meta.View, frozen=True):
    max_unavailable: int | str = 1
    max_surge: int | str = 0


class UpdateStrategy(meta.View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class Template(meta.View, frozen=True):
    spec: core.PodSpec = core.PodSpec()


class DaemonSetSpec(meta.View, frozen=True):
    selector: meta.LabelSelector = meta.LabelSelector()
    template: Template = Template()
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSetStatus(meta.View, frozen=True):
    collision_count: int = 0


class DaemonSet(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()

    def unavailable(self, nodes: int) -> int:
        return count_of(self.spec.update_strategy.rolling_update.max_unavailable, nodes)

    def surge(self, nodes: int) -> int:
        return count_of(self.spec.update_strategy.rolling_update.max_surge, nodes)


def set_of(object: Object) -> DaemonSet:
    return object.view(DaemonSet)


def history_rules(object: Object) -> HistoryRules:
    wish = set_of(object)
    return HistoryRules(wish.spec.selector, wish.spec.revision_history_limit, wish.status.collision_count)
