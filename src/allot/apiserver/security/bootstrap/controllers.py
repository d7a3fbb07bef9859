"""One role a control loop, bound to the service account of the loop in kube-system.

The role of the loop X is `system:controller:X`. Every loop also takes part in
watching its informers, so what it reads, it may list and watch.
"""

from collections.abc import Mapping

from ..rules import Rule
from .notation import (
    APPS,
    BATCH,
    EVENTS,
    NODE,
    POLICY,
    RBAC,
    READ,
    RESOURCE,
    SCHEDULING,
    may,
)

_REVISIONS = may(f"create delete patch update {READ}", "controllerrevisions", APPS)

_WORKLOADS: Mapping[str, tuple[Rule, ...]] = {
    "cronjob-controller": (
        may(f"update {READ}", "cronjobs", BATCH),
        may(f"create delete patch update {READ}", "jobs", BATCH),
        may("update", "cronjobs/status cronjobs/finalizers", BATCH),
        may("delete list watch", "pods"),
        EVENTS,
    ),
    "daemon-set-controller": (
        may(READ, "daemonsets", APPS),
        may("patch update", "daemonsets/status", APPS),
        may("update", "daemonsets/finalizers", APPS),
        may("list watch", "nodes"),
        may("create delete get list patch watch", "pods"),
        may("create", "pods/binding"),
        _REVISIONS,
        EVENTS,
    ),
    "deployment-controller": (
        may(f"update patch {READ}", "deployments", APPS),
        may("patch update", "deployments/status", APPS),
        may("update", "deployments/finalizers", APPS),
        may(f"create delete patch update {READ}", "replicasets", APPS),
        may(f"update {READ}", "pods"),
        EVENTS,
    ),
    "job-controller": (
        may(f"patch update {READ}", "jobs", BATCH),
        may("patch update", "jobs/status", BATCH),
        may("update", "jobs/finalizers", BATCH),
        may("create delete get list patch watch", "pods"),
        EVENTS,
    ),
    "replicaset-controller": (
        may(f"update {READ}", "replicasets", APPS),
        may("patch update", "replicasets/status", APPS),
        may("update", "replicasets/finalizers", APPS),
        may("create delete get list patch watch", "pods"),
        EVENTS,
    ),
    "statefulset-controller": (
        may(READ, "statefulsets", APPS),
        may("patch update", "statefulsets/status", APPS),
        may("update", "statefulsets/finalizers", APPS),
        may(f"create delete patch update {READ}", "pods"),
        may("update", "pods/finalizers"),
        may(f"create delete update {READ}", "persistentvolumeclaims"),
        _REVISIONS,
        EVENTS,
    ),
    "ttl-after-finished-controller": (may(f"delete {READ}", "jobs", BATCH), EVENTS),
}

_DEVICES: Mapping[str, tuple[Rule, ...]] = {
    "resource-claim-controller": (
        may(READ, "pods"),
        may("update", "pods/finalizers"),
        may(f"create delete patch update {READ}", "resourceclaims", RESOURCE),
        may("patch update", "resourceclaims/status resourceclaims/binding", RESOURCE),
        may(READ, "resourceclaimtemplates resourceclasses", RESOURCE),
        may(READ, "podschedulings", RESOURCE),
        may("patch update", "pods/status"),
        may(READ, "podgroups", SCHEDULING),
        may("patch update", "podgroups/status", SCHEDULING),
        may("get", "nodes"),
        may(READ, "preparedclaims", NODE),
        EVENTS,
    ),
    "device-taint-eviction-controller": (
        may(f"delete {READ}", "pods"),
        may("patch update", "pods/status"),
        may(READ, "resourceclaims resourceslices deviceclasses devicetaintrules", RESOURCE),
        may("patch update", "devicetaintrules/status", RESOURCE),
        EVENTS,
    ),
    "resourcepoolstatusrequest-controller": (
        may(f"delete {READ}", "resourcepoolstatusrequests", RESOURCE),
        may("patch update", "resourcepoolstatusrequests/status", RESOURCE),
        may(READ, "resourceclaims resourceslices devicetaintrules", RESOURCE),
        EVENTS,
    ),
}

_HOUSEKEEPING: Mapping[str, tuple[Rule, ...]] = {
    "clusterrole-aggregation-controller": (may(f"escalate patch update {READ}", "clusterroles", RBAC),),
    "disruption-controller": (
        may(READ, "deployments replicasets statefulsets", APPS),
        may(READ, "replicationcontrollers"),
        may(READ, "jobs", BATCH),
        may(READ, "poddisruptionbudgets", POLICY),
        may("patch update", "poddisruptionbudgets/status", POLICY),
        may(READ, "pods"),
        may("patch update", "pods/status"),
        may("get", "*/scale", "*"),
        EVENTS,
    ),
    "generic-garbage-collector": (may(f"delete patch update {READ}", "*", "*"), EVENTS),
    "namespace-controller": (
        may(f"delete {READ}", "namespaces"),
        may("patch update", "namespaces/finalize namespaces/status"),
        may(f"delete deletecollection {READ}", "*", "*"),
    ),
    "node-controller": (
        may(f"delete patch update {READ}", "nodes"),
        may("patch update", "nodes/status"),
        may("patch update", "pods/status"),
        may(f"delete {READ}", "pods"),
        may(READ, "leases", "coordination.k8s.io"),
        may(READ, "daemonsets", APPS),
        EVENTS,
    ),
    "pod-garbage-collector": (
        may("delete get list watch", "pods"),
        may(READ, "nodes"),
        may("patch update", "pods/status"),
    ),
    "resourcequota-controller": (
        may("list watch", "*", "*"),
        may("patch update", "resourcequotas/status"),
        EVENTS,
    ),
    "root-ca-cert-publisher": (may("create update", "configmaps"), may(READ, "namespaces"), EVENTS),
    "service-account-controller": (
        may(f"create {READ}", "serviceaccounts"),
        may(READ, "namespaces"),
        EVENTS,
    ),
}

CONTROLLERS: Mapping[str, tuple[Rule, ...]] = {**_WORKLOADS, **_DEVICES, **_HOUSEKEEPING}
"""Control loop -> what it may do."""
