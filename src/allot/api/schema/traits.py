"""What the table of types does not say: how lists and maps merge, and what is assumed.

One entry a type, one trait a field. A list that is not named here is atomic: it
has one owner and is replaced as a whole. `by(...)` names the keys that tell the
elements of a list apart; a strategic merge patch matches by `merge`, which is
the first key unless the trait says otherwise.

Keys of the tables are the short names of `kubernetes-1.37.json` and of `extras`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .node import ATOMIC, BY_KEY, MISSING, SET


@dataclass(frozen=True, slots=True)
class Trait:
    list_type: str = ATOMIC
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    strategies: frozenset[str] = frozenset()
    atomic: bool | None = None  # None: as the type itself says
    default: Any = MISSING
    choices: tuple[str, ...] = ()  # expressions of the table, where any JSON is in truth one of a few shapes
    is_bare: bool = False  # an object that says all by being there: it has no fields


_MERGE = frozenset({"merge"})
_MERGE_RETAIN = frozenset({"merge", "retainKeys"})


def by(*keys: str, merge: str | None = None) -> Trait:
    """A list whose elements are known by `keys`. merge="" keeps strategic patches replacing it."""
    merge_key = keys[0] if merge is None else merge
    return Trait(BY_KEY, keys, merge_key, _MERGE if merge_key else frozenset())


def retaining(trait: Trait) -> Trait:
    """As `trait`, and a patch lists the keys that an element keeps: its members exclude each other."""
    return replace(trait, strategies=_MERGE_RETAIN)


def default(value: Any) -> Trait:
    return Trait(default=value)


_SCHEMA = "#apiextensions_v1.JSONSchemaProps"
_BARE = Trait(is_bare=True)

_SET = Trait(SET)
_MERGED_SET = Trait(SET, strategies=_MERGE)
_ATOMIC_MAP = Trait(atomic=True)
_GRANULAR = Trait(atomic=False)
_CONDITIONS = by("type")
_ATOMIC_CONDITIONS = Trait(merge_key="type", strategies=_MERGE)
_PLAIN_CONDITIONS = by("type", merge="")

ATOMIC_TYPES = frozenset({
    "core_v1.ConfigMapKeySelector", "core_v1.EndpointAddress", "core_v1.EndpointPort",
    "core_v1.FileKeySelector", "core_v1.LocalObjectReference", "core_v1.NodeSelector",
    "core_v1.NodeSelectorTerm", "core_v1.ObjectFieldSelector", "core_v1.ObjectReference",
    "core_v1.ResourceFieldSelector", "core_v1.ScopeSelector", "core_v1.SecretKeySelector",
    "core_v1.SecretReference", "core_v1.TopologySelectorTerm", "core_v1.TypedLocalObjectReference",
    "discovery_v1.EndpointPort", "meta_v1.LabelSelector", "meta_v1.OwnerReference", "rbac_v1.RoleRef",
    "rbac_v1.Subject",
})  # fmt: skip
"""Objects that have one owner and are replaced as a whole."""

_CONTAINER = {
    "env": by("name"),
    "ports": by("containerPort", "protocol"),
    "volumeDevices": by("devicePath"),
    "volumeMounts": by("mountPath"),
}

_NAMED_REFERENCE = {"name": default("")}

_VOLUME_DEFAULTS: Mapping[str, Mapping[str, Trait]] = {
    "core_v1.AzureDiskVolumeSource": {
        "cachingMode": default("ReadWrite"),
        "fsType": default("ext4"),
        "kind": default("Shared"),
        "readOnly": default(False),
    },
    "core_v1.ISCSIPersistentVolumeSource": {"iscsiInterface": default("default")},
    "core_v1.ISCSIVolumeSource": {"iscsiInterface": default("default")},
    "core_v1.RBDPersistentVolumeSource": {
        "keyring": default("/etc/ceph/keyring"),
        "pool": default("rbd"),
        "user": default("admin"),
    },
    "core_v1.RBDVolumeSource": {
        "keyring": default("/etc/ceph/keyring"),
        "pool": default("rbd"),
        "user": default("admin"),
    },
    "core_v1.ScaleIOPersistentVolumeSource": {
        "fsType": default("xfs"),
        "storageMode": default("ThinProvisioned"),
    },
    "core_v1.ScaleIOVolumeSource": {"fsType": default("xfs"), "storageMode": default("ThinProvisioned")},
}

_CORE: Mapping[str, Mapping[str, Trait]] = {
    "core_v1.ConfigMapEnvSource": _NAMED_REFERENCE,
    "core_v1.ConfigMapKeySelector": _NAMED_REFERENCE,
    "core_v1.ConfigMapProjection": _NAMED_REFERENCE,
    "core_v1.ConfigMapVolumeSource": _NAMED_REFERENCE,
    "core_v1.Container": _CONTAINER,
    "core_v1.ContainerPort": {"protocol": default("TCP")},
    "core_v1.ContainerRestartRuleOnExitCodes": {"values": _SET},
    "core_v1.ContainerStatus": {"allocatedResourcesStatus": by("name"), "volumeMounts": by("mountPath")},
    "core_v1.EphemeralContainer": _CONTAINER,
    "core_v1.FileKeySelector": {"optional": default(False)},
    "core_v1.GRPCAction": {"service": default("")},
    "core_v1.LocalObjectReference": _NAMED_REFERENCE,
    "core_v1.NamespaceStatus": {"conditions": _CONDITIONS},
    "core_v1.NodeSpec": {"podCIDRs": _MERGED_SET},
    "core_v1.NodeStatus": {"addresses": by("type"), "conditions": _CONDITIONS},
    "core_v1.PersistentVolumeClaimStatus": {"conditions": _CONDITIONS},
    "core_v1.PersistentVolumeSpec": {"claimRef": _GRANULAR},
    "core_v1.PodSpec": {
        "containers": by("name"),
        "ephemeralContainers": by("name"),
        "evictionResponders": by("name"),
        "hostAliases": by("ip"),
        "imagePullSecrets": by("name"),
        "initContainers": by("name"),
        "nodeSelector": _ATOMIC_MAP,
        "resourceClaims": retaining(by("name")),
        "schedulingGates": by("name"),
        "topologySpreadConstraints": by("topologyKey", "whenUnsatisfiable"),
        "volumes": retaining(by("name")),
    },
    "core_v1.PodStatus": {
        "conditions": _CONDITIONS,
        "hostIPs": Trait(merge_key="ip", strategies=_MERGE),
        "nodeAllocatableResourceClaimStatuses": by("resourceClaimName"),
        "podIPs": by("ip"),
        "resourceClaimStatuses": retaining(by("name")),
    },
    "core_v1.ReplicationControllerSpec": {"selector": _ATOMIC_MAP},
    "core_v1.ReplicationControllerStatus": {"conditions": _CONDITIONS},
    "core_v1.ResourceRequirements": {"claims": by("name", merge="")},
    "core_v1.ResourceStatus": {"resources": by("resourceID", merge="")},
    "core_v1.SecretEnvSource": _NAMED_REFERENCE,
    "core_v1.SecretKeySelector": _NAMED_REFERENCE,
    "core_v1.SecretProjection": _NAMED_REFERENCE,
    "core_v1.ServiceAccount": {"secrets": by("name")},
    "core_v1.ServicePort": {"protocol": default("TCP")},
    "core_v1.ServiceSpec": {"ports": by("port", "protocol"), "selector": _ATOMIC_MAP},
    "core_v1.ServiceStatus": {"conditions": _CONDITIONS},
}

_WORKLOADS: Mapping[str, Mapping[str, Trait]] = {
    "apps_v1.DaemonSetStatus": {"conditions": _CONDITIONS},
    "apps_v1.DeploymentSpec": {"strategy": Trait(strategies=frozenset({"retainKeys"}))},
    "apps_v1.DeploymentStatus": {"conditions": _CONDITIONS},
    "apps_v1.ReplicaSetStatus": {"conditions": _CONDITIONS},
    "apps_v1.StatefulSetStatus": {"conditions": _CONDITIONS},
    "batch_v1.JobStatus": {"conditions": _ATOMIC_CONDITIONS},
    "batch_v1.PodFailurePolicyOnExitCodesRequirement": {"values": _SET},
    "batch_v1.UncountedTerminatedPods": {"failed": _SET, "succeeded": _SET},
    "policy_v1.PodDisruptionBudgetSpec": {"selector": Trait(strategies=frozenset({"replace"}))},
    "policy_v1.PodDisruptionBudgetStatus": {"conditions": _CONDITIONS},
}

_STORED: Mapping[str, Mapping[str, Trait]] = {
    **{
        f"admissionregistration_v1.{kind}WebhookConfiguration": {"webhooks": by("name")}
        for kind in ("Validating", "Mutating")
    },
    **{
        f"admissionregistration_v1.{kind}Webhook": {"matchConditions": by("name")}
        for kind in ("Validating", "Mutating")
    },
    **{
        f"admissionregistration_v1.{kind}AdmissionPolicySpec": {
            "matchConditions": by("name"),
            "variables": by("name"),
        }
        for kind in ("Validating", "Mutating")
    },
    "admissionregistration_v1.ValidatingAdmissionPolicyStatus": {"conditions": _PLAIN_CONDITIONS},
    "autoscaling_v2.HorizontalPodAutoscalerStatus": {"conditions": _CONDITIONS},
    "certificates_v1.CertificateSigningRequestStatus": {"conditions": _PLAIN_CONDITIONS},
    "certificates_v1.PodCertificateRequestStatus": {"conditions": _CONDITIONS},
    "flowcontrol_v1.FlowSchemaStatus": {"conditions": _CONDITIONS},
    "flowcontrol_v1.PriorityLevelConfigurationStatus": {"conditions": _CONDITIONS},
    "networking_v1.ServiceCIDRStatus": {"conditions": _CONDITIONS},
    "scheduling_v1beta1.PodGroupStatus": {"conditions": _CONDITIONS},
    "storagemigration_v1.StorageVersionMigrationStatus": {"conditions": _CONDITIONS},
}

_MACHINERY: Mapping[str, Mapping[str, Trait]] = {
    "apiextensions_v1.CustomResourceDefinitionStatus": {"conditions": _PLAIN_CONDITIONS},
    "apiextensions_v1.CustomResourceSubresources": {"status": _BARE},
    "apiextensions_v1.JSONSchemaProps": {
        "additionalItems": Trait(choices=(_SCHEMA, "b")),
        "additionalProperties": Trait(choices=(_SCHEMA, "b")),
        "dependencies": Trait(choices=(_SCHEMA, "[s")),
        "items": Trait(choices=(_SCHEMA, f"[{_SCHEMA}")),
        "x-kubernetes-validations": by("rule"),
    },
    "discovery_v1.Endpoint": {"addresses": _SET},
    "meta_v1.ObjectMeta": {"finalizers": _MERGED_SET, "ownerReferences": by("uid")},
    "scheduling_v1alpha3.WorkloadPodGroupDisruptionMode": {"all": _BARE, "single": _BARE},
    "scheduling_v1alpha3.WorkloadPodGroupSchedulingPolicy": {"basic": _BARE},
    "scheduling_v1beta1.CompositeDisruptionMode": {"all": _BARE, "single": _BARE},
    "scheduling_v1beta1.CompositePodGroupSchedulingPolicy": {"basic": _BARE},
    "scheduling_v1beta1.DisruptionMode": {"all": _BARE, "single": _BARE},
    "scheduling_v1beta1.PodGroupSchedulingPolicy": {"basic": _BARE},
    "storage_v1.CSIDriverSpec": {"volumeLifecycleModes": _SET},
    "storage_v1.CSINodeSpec": {"drivers": by("name")},
}


def _resource(version: str) -> Mapping[str, Mapping[str, Trait]]:
    """resource.k8s.io: the requests and devices of a claim or slice are atomic, status is not."""
    device = {"skipNodeOperations": _SET}
    return {
        f"{version}.AllocatedDeviceStatus": {"conditions": _PLAIN_CONDITIONS},
        f"{version}.DeviceRequestAllocationResult": device,
        f"{version}.DeviceToleration": {"operator": default("Equal")},
        f"{version}.ResourceClaimStatus": {
            "devices": by("driver", "device", "pool", "shareID", merge=""),
            "reservedFor": by("uid"),
        },
        f"{version}.ResourceSliceSpec": device,
    }


_CLASSIC: Mapping[str, Mapping[str, Trait]] = {
    "resource_v1alpha1.PodSchedulingSpec": {"potentialNodes": _SET},
    "resource_v1alpha1.PodSchedulingStatus": {"resourceClaims": by("name")},
    "resource_v1alpha1.ResourceClaimSchedulingStatus": {"unsuitableNodes": _SET},
    "resource_v1alpha1.ResourceClaimStatus": {
        "devices": by("driver", "device", "pool", "shareID", merge=""),
        "reservedFor": by("uid"),
    },
}

FIELD_TRAITS: Mapping[str, Mapping[str, Trait]] = {
    **_VOLUME_DEFAULTS,
    **_CORE,
    **_WORKLOADS,
    **_MACHINERY,
    **_STORED,
    "resource_v1.DeviceTaintRuleStatus": {"conditions": _CONDITIONS},
    "resource_v1beta2.DeviceTaintRuleStatus": {"conditions": _CONDITIONS},
    **_resource("resource_v1"),
    **_resource("resource_v1beta2"),
    **_resource("resource_v1beta1"),
    **_CLASSIC,
}

NO_TRAIT = Trait()
