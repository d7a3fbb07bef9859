"""A pod as the scheduler reads it: once, when it arrives."""

from collections.abc import Mapping

import msgspec

from allot.api import Object, compute, core, podclaims
from allot.informers import Key

from .amounts import Amounts, pod_requests, with_given

DEFAULT_SCHEDULER = "default-scheduler"


class PodInfo(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Pods are told apart by uid: a later one of the same name is another."""

    object: Object
    uid: str
    key: Key
    priority: int
    view: core.Pod
    requests: Amounts
    claims: tuple[Key, ...]  # that it uses, as far as their names are known yet

    @classmethod
    def of(cls, object: Object, before: "PodInfo | None" = None) -> "PodInfo":
        """`before` is an earlier state of the same pod, if one is known: what was read then is used again."""
        view, key = object.view(core.Pod), Key.of(object)
        if before is not None and _needs(before.view) == _needs(view):
            requests = before.requests
        else:
            requests = with_given(pod_requests(view.spec), view, compute.records.given(view))
        if before is not None and _uses(before.view) == _uses(view):
            claims = before.claims
        else:
            claims = tuple([Key(key.namespace, name) for name in podclaims.names(view)])
        return cls(object, object.uid, key, view.spec.priority or 0, view, requests, claims)

    def taking(self, given: Mapping[str, compute.records.Given]) -> "PodInfo":
        """The pod once these compute resources are its own."""
        return msgspec.structs.replace(
            self, requests=with_given(pod_requests(self.view.spec), self.view, given)
        )

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


def _needs(pod: core.Pod) -> object:
    """What the requests of a pod are the sum of."""
    spec, annotations = pod.spec, pod.metadata.annotations
    record = annotations.get(compute.limits.RECORD_ANNOTATION) if annotations else None
    return spec.containers, spec.init_containers, spec.resources, spec.overhead, record


def _uses(pod: core.Pod) -> object:
    """What says which claims a pod uses."""
    status = pod.status
    return pod.spec.resource_claims, status.resource_claim_statuses, status.extended_resource_claim_status
