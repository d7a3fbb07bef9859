"""A pod as the scheduler reads it: once, when it arrives."""

from collections.abc import Collection, Mapping

import msgspec

from allot.api import Object, core, podclaims
from allot.informers import Key

from .amounts import Amounts, pod_requests

DEFAULT_SCHEDULER = "default-scheduler"


class PodInfo(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Pods are told apart by uid: a later one of the same name is another."""

    object: Object
    uid: str
    key: Key
    priority: int
    view: core.Pod
    requests: Amounts

    @classmethod
    def of(cls, object: Object, before: "PodInfo | None" = None) -> "PodInfo":
        """`before` is an earlier state of the same pod, if one is known: its sums are used again."""
        view = object.view(core.Pod)
        if before is not None and _needs(before.view.spec) == _needs(view.spec):
            requests = before.requests
        else:
            requests = pod_requests(view.spec)
        return cls(object, object.uid, Key.of(object), view.spec.priority or 0, view, requests)

    @property
    def spec(self) -> core.PodSpec:
        return self.view.spec

    @property
    def status(self) -> core.PodStatus:
        return self.view.status

    @property
    def scheduler(self) -> str:
        return self.view.spec.scheduler_name or DEFAULT_SCHEDULER

    @property
    def is_deleting(self) -> bool:
        return bool(self.view.metadata.deletion_timestamp)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.view.metadata.labels

    @property
    def may_preempt(self) -> bool:
        return self.view.spec.preemption_policy != "Never"

    def __repr__(self) -> str:
        return f"PodInfo({self.key} {self.uid})"


def _needs(spec: core.PodSpec) -> object:
    """What the requests of a pod are the sum of."""
    return spec.containers, spec.init_containers, spec.resources, spec.overhead


def claims_of(pod: PodInfo) -> Collection[Key]:
    """The claims that a pod uses, as far as their names are known yet."""
    names = podclaims.names(pod.view)
    return [Key(pod.key.namespace, name) for name in names] if names else ()
