"""Roles of upstream's components that do not run here, for those who run them on our server.

A real kube-controller-manager has more loops than ours, and each needs the role of its service account. What
such a rule names and we do not serve does no harm.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ..identities import CONTROLLER_MANAGER_NAME, SCHEDULER_NAME, SERVICE_ACCOUNTS
from ..rbac import Subject
from ..rules import Rule
from .notation import (
    EVENTS,
    READ,
    STORAGE,
    may,
)

GUEST_CONTROLLERS: Mapping[str, tuple[Rule, ...]] = {
    "attachdetach-controller": (
        may("list watch", "persistentvolumeclaims persistentvolumes pods"),
        may(READ, "nodes"),
        may("patch update", "nodes/status"),
        EVENTS,
        may(f"create delete {READ}", "volumeattachments", STORAGE),
        may(READ, "csidrivers csinodes", STORAGE),
    ),
    "certificate-controller": (
        may(f"delete {READ}", "certificatesigningrequests", "certificates.k8s.io"),
        may(
            "update",
            "certificatesigningrequests/approval certificatesigningrequests/status",
            "certificates.k8s.io",
        ),
        may("approve", "signers", "certificates.k8s.io", names="kubernetes.io/kube-apiserver-client-kubelet"),
        may(
            "sign",
            "signers",
            "certificates.k8s.io",
            names="kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet"
            " kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        ),
        may("create", "subjectaccessreviews", "authorization.k8s.io"),
        EVENTS,
    ),
    "endpoint-controller": (
        may(READ, "pods services"),
        may(f"create delete update {READ}", "endpoints"),
        may("create", "endpoints/restricted"),
        EVENTS,
    ),
    "endpointslice-controller": (
        may(READ, "nodes pods services"),
        may("update", "services/finalizers"),
        may(f"create delete update {READ}", "endpointslices", "discovery.k8s.io"),
        EVENTS,
    ),
    "endpointslicemirroring-controller": (
        may(READ, "endpoints services"),
        may("update", "services/finalizers endpoints/finalizers"),
        may(f"create delete update {READ}", "endpointslices", "discovery.k8s.io"),
        EVENTS,
    ),
    "ephemeral-volume-controller": (
        may(READ, "pods"),
        may("update", "pods/finalizers"),
        may(f"create {READ}", "persistentvolumeclaims"),
        EVENTS,
    ),
    "expand-controller": (
        may(f"patch update {READ}", "persistentvolumes"),
        may("patch update", "persistentvolumeclaims/status"),
        may(READ, "persistentvolumeclaims"),
        EVENTS,
    ),
    "horizontal-pod-autoscaler": (
        may(READ, "horizontalpodautoscalers", "autoscaling"),
        may("update", "horizontalpodautoscalers/status", "autoscaling"),
        may("get update", "*/scale", "*"),
        may("list watch", "pods"),
        may("list watch", "pods", "metrics.k8s.io"),
        may(READ, "*", "custom.metrics.k8s.io"),
        may(READ, "*", "external.metrics.k8s.io"),
        EVENTS,
    ),
    "kube-apiserver-serving-clustertrustbundle-publisher": (
        may("attest", "signers", "certificates.k8s.io", names="kubernetes.io/kube-apiserver-serving"),
        may("create delete list update watch", "clustertrustbundles", "certificates.k8s.io"),
        EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        may("get", "configmaps", names="kube-apiserver-legacy-service-account-token-tracking"),
        may("delete patch", "secrets"),
    ),
    "persistent-volume-binder": (
        may(f"create delete update {READ}", "persistentvolumes"),
        may("update", "persistentvolumes/status persistentvolumeclaims/status"),
        may(f"update {READ}", "persistentvolumeclaims"),
        may(f"create delete {READ}", "pods"),
        may(READ, "storageclasses", STORAGE),
        may("list watch", "nodes"),
        EVENTS,
        may("watch", "events"),
    ),
    "podcertificaterequestcleaner": (may(f"delete {READ}", "podcertificaterequests", "certificates.k8s.io"),),
    "pv-protection-controller": (
        may(f"update {READ}", "persistentvolumes"),
        EVENTS,
    ),
    "pvc-protection-controller": (
        may(f"update {READ}", "persistentvolumeclaims"),
        may("update", "persistentvolumeclaims/status"),
        may(READ, "pods"),
        EVENTS,
    ),
    "replication-controller": (
        may(f"update {READ}", "replicationcontrollers"),
        may("update", "replicationcontrollers/status replicationcontrollers/finalizers"),
        may("create delete list patch watch", "pods"),
        EVENTS,
    ),
    "route-controller": (
        may("list watch", "nodes"),
        may("patch", "nodes/status"),
        EVENTS,
    ),
    "selinux-warning-controller": (
        EVENTS,
        may(READ, "persistentvolumes persistentvolumeclaims pods"),
        may(READ, "csidrivers", STORAGE),
    ),
    "service-cidrs-controller": (
        may(f"patch update {READ}", "servicecidrs", "networking.k8s.io"),
        may("patch update", "servicecidrs/finalizers servicecidrs/status", "networking.k8s.io"),
        may(READ, "ipaddresses", "networking.k8s.io"),
        EVENTS,
    ),
    "service-controller": (
        may(READ, "services"),
        may("patch update", "services/status"),
        may("list watch", "nodes"),
        EVENTS,
    ),
    "storage-version-migrator-controller": (
        may("list patch", "*", "*"),
        may("get", "customresourcedefinitions", "apiextensions.k8s.io"),
        may("patch", "customresourcedefinitions/status", "apiextensions.k8s.io"),
        may("update", "storageversionmigrations/status", "storagemigration.k8s.io"),
    ),
    "ttl-controller": (
        may("list patch update watch", "nodes"),
        EVENTS,
    ),
    "validatingadmissionpolicy-status-controller": (
        may(READ, "validatingadmissionpolicies", "admissionregistration.k8s.io"),
        may("get patch update", "validatingadmissionpolicies/status", "admissionregistration.k8s.io"),
        EVENTS,
    ),
    "volumeattributesclass-protection-controller": (
        may(READ, "persistentvolumeclaims persistentvolumes"),
        may(f"update {READ}", "volumeattributesclasses", STORAGE),
        EVENTS,
    ),
}
"""Control loop -> what it may do."""

GUEST_ROLES: Mapping[str, tuple[Rule, ...]] = {
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        may("create", "certificatesigningrequests/nodeclient", "certificates.k8s.io"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        may("create", "certificatesigningrequests/selfnodeclient", "certificates.k8s.io"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        may("approve", "signers", "certificates.k8s.io", names="kubernetes.io/kube-apiserver-client"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        may("approve", "signers", "certificates.k8s.io", names="kubernetes.io/kube-apiserver-client-kubelet"),
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        may("approve", "signers", "certificates.k8s.io", names="kubernetes.io/kubelet-serving"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        may("approve", "signers", "certificates.k8s.io", names="kubernetes.io/legacy-unknown"),
    ),
    "system:cluster-trust-bundle-discovery": (may(READ, "clustertrustbundles", "certificates.k8s.io"),),
    "system:heapster": (
        may(READ, "events namespaces nodes pods"),
        may(READ, "deployments", "extensions"),
    ),
    "system:kube-aggregator": (may(READ, "endpoints services"),),
    "system:kube-dns": (may("list watch", "endpoints services"),),
    "system:node-bootstrapper": (may(f"create {READ}", "certificatesigningrequests", "certificates.k8s.io"),),
    "system:node-problem-detector": (
        may("get", "nodes"),
        may("patch", "nodes/status"),
        EVENTS,
    ),
    "system:persistent-volume-provisioner": (
        may(f"create delete {READ}", "persistentvolumes"),
        may(f"update {READ}", "persistentvolumeclaims"),
        may(READ, "storageclasses", STORAGE),
        may("watch", "events"),
        EVENTS,
    ),
}
"""For whoever binds them by name."""

GUEST_BINDINGS: Mapping[str, tuple[str, tuple[Subject, ...]]] = {
    "system:cluster-trust-bundle-discovery": (
        "system:cluster-trust-bundle-discovery",
        (Subject("Group", SERVICE_ACCOUNTS),),
    ),
    "system:kube-dns": ("system:kube-dns", (Subject("ServiceAccount", "kube-dns", "kube-system"),)),
}
"""Binding -> the cluster role it binds, and to whom."""


class Local(NamedTuple):
    """A role in one namespace, bound there."""

    namespace: str
    name: str
    binding: str
    subjects: tuple[Subject, ...]
    rules: tuple[Rule, ...]


def _of_loop(namespace: str, loop: str, *rules: Rule) -> Local:
    name = f"system:controller:{loop}"
    return Local(namespace, name, name, (Subject("ServiceAccount", loop, "kube-system"),), rules)


GUEST_LOCALS = (
    _of_loop(
        "kube-public",
        "bootstrap-signer",
        may(READ, "configmaps"),
        may("update", "configmaps", names="cluster-info"),
        EVENTS,
    ),
    _of_loop("kube-system", "bootstrap-signer", may(READ, "secrets")),
    _of_loop("kube-system", "cloud-provider", may(f"create {READ}", "configmaps")),
    _of_loop("kube-system", "token-cleaner", may(f"delete {READ}", "secrets"), EVENTS),
    Local(
        "kube-system",
        "extension-apiserver-authentication-reader",
        "system::extension-apiserver-authentication-reader",
        (Subject("User", CONTROLLER_MANAGER_NAME), Subject("User", SCHEDULER_NAME)),
        (may(READ, "configmaps", names="extension-apiserver-authentication"),),
    ),
)
