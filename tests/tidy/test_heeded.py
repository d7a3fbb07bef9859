"""Nothing is accepted and then ignored: a field is acted on, stored for others, or warned about.

Acted on is a field whose name stands in the code that decides (not in schemas, defaults or validation). The
others are in one of two tables: `unheeded.FIELDS`, of which clients are warned, and STORED below, which says
for whom they are kept. A new field that nobody reads fails here until somebody has decided.
"""

import re
from functools import cache

from allot.api import custom, kinds, rbac, resource, schema, unheeded
from allot.api.kinds import stored
from tidy.documents import ROOT

SOURCE = ROOT / "src" / "allot"
NOT_DECIDING = ("api/kinds/", "api/schema/", "api/protobuf/", "apiserver/openapi/", "api/unheeded.py")

STORED: dict[str, tuple[str, ...]] = {
    "nodes and their runtimes": (
        r"core\.v1\.(EmptyDir|Ephemeral|DownwardAPI|Projected|ConfigMap|Secret)"
        r"\w*(Source|File|Projection)\.\w+",
        r"core\.v1\.(ClusterTrustBundle|PodCertificate)Projection\.\w+",
        r"core\.v1\.(Ephemeral)?Container(RestartRule|Status|Image)?\.\w+",
        r"core\.v1\.(Probe|HTTPGetAction|Lifecycle|HostAlias|LinuxContainerUser|VolumeMount\w*)\.\w+",
        r"core\.v1\.(AppArmorProfile|SeccompProfile|SecurityContext|PodSecurityContext)\.\w+",
        r"core\.v1\.(WindowsSecurityContextOptions|PodDNSConfig|PodReadinessGate)\.\w+",
        r"core\.v1\.(EnvVarSource|FileKeySelector|ResourceFieldSelector|ImageVolume\w+)\.\w+",
        r"core\.v1\.ContainerPort\.(containerPort|hostIP)",
        r"core\.v1\.PodSpec\.(automountServiceAccountToken|dnsConfig|dnsPolicy|enableServiceLinks|hostAliases"
        r"|hostUsers|hostnameOverride|readinessGates|setHostnameAsFQDN|shareProcessNamespace)",
        r"core\.v1\.ServiceAccount\.automountServiceAccountToken",
        r"core\.v1\.ConfigMap\.binaryData",
    ),
    "those who provision and attach volumes": (
        r"core\.v1\.\w*Volume\w*(\.\w+)?",
        r"core\.v1\.(AzureDisk|AzureFile|AWSElasticBlockStore|CSI|CephFS|Cinder|FC|Flex|Flocker)\w*\.\w+",
        r"core\.v1\.(GCEPersistentDisk|Glusterfs|ISCSI|PhotonPersistentDisk|Portworx|Quobyte|RBD)\w*\.\w+",
        r"core\.v1\.(ScaleIO|StorageOS|Vsphere)\w*\.\w+",
        r"core\.v1\.TopologySelectorTerm\.\w+",
        r"storage\.v1\.\w+\.\w+",
        r"apps\.v1\.StatefulSetSpec\.persistentVolumeClaimRetentionPolicy",
        r"apps\.v1\.StatefulSetPersistentVolumeClaimRetentionPolicy\.\w+",
    ),
    "those who route traffic": (
        r"core\.v1\.(Service\w*|SessionAffinityConfig|LoadBalancer\w+|Endpoint\w*)\.\w+",
        r"discovery\.v1\.\w+\.\w+",
    ),
    "people who read it": (
        r"core\.v1\.PodStatus\.(hostIPs?|volumeHealth)",
        r"core\.v1\.PodVolumeHealth\.\w+",
        r"core\.v1\.(Node\w+|ConfigMapNodeConfigSource)\.\w+",
        r"(core|events)\.v1\.Event\w*\.\w+",
        r"apps\.v1\.\w+Status\.terminatingReplicas",
        r"batch\.v1\.JobStatus\.failedIndexes",
        r"admissionregistration\.v1\.(ValidatingAdmissionPolicyStatus|TypeChecking)\.\w+",
    ),
    "nobody by itself: see the field that holds it": (
        r"core\.v1\.PodSchedulingGroup\.\w+",
        r"core\.v1\.(TopologySpreadConstraint|WeightedPodAffinityTerm)\.\w+",
        r"batch\.v1\.(JobSchedulingConfiguration|PodFailurePolicy\w*|SuccessPolicy\w*)\.\w+",
        r"scheduling\.v1alpha3\.\w+\.\w+",
        r"node\.v1\.Overhead\.podFixed",
    ),
    "the server, where it defaults and validates": (
        r"core\.v1\.(PodAffinityTerm|TopologySpreadConstraint)\.(mis)?matchLabelKeys",
        r"batch\.v1\.JobSpec\.manualSelector",
        r"apiextensions\.v1\.(CustomResourceConversion|Webhook\w+)\.\w+",
        r"apiextensions\.v1\.CustomResourceDefinitionSpec\.preserveUnknownFields",
        r"apiextensions\.v1\.JSONSchemaProps\.\S+",
        r"apiextensions\.v1\.ValidationRule\.\w+",
    ),
}
"""Who reads a field that is not acted on here, and patterns of such fields."""

PATTERNS = [re.compile(pattern) for patterns in STORED.values() for pattern in patterns]


@cache
def words() -> frozenset[str]:
    """Every name in the code that decides."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if not str(path.relative_to(SOURCE)).startswith(NOT_DECIDING):
            found.update(re.findall(r"[A-Za-z_]\w*", path.read_text()))
    return frozenset(found)


def is_read(field: str) -> bool:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", field).lower()
    return field in words() or snake in words()


def fields() -> dict[str, frozenset[str]]:
    """Type -> its fields, of every kind that is not stored as a whole."""
    found: dict[str, frozenset[str]] = {}

    def walk(shape: schema.Schema | None) -> None:
        if shape is None or shape.type not in (schema.Type.OBJECT, schema.Type.LIST, schema.Type.MAP):
            return
        if shape.type is not schema.Type.OBJECT:
            walk(shape.element)
        elif shape.name not in found:
            found[shape.name] = frozenset(shape.fields)
            for one in shape.fields.values():
                walk(one)

    whole = {kind.storage for kind in stored.KINDS}
    for kind in (*kinds.ALL, *rbac.KINDS, *resource.KINDS, *custom.KINDS):
        if kind.storage not in whole:
            for version in kind.versions:
                walk(version.shape())
    return found


def short(type_name: str) -> str:
    return re.sub(
        r"^io\.k8s\.(api\.|apiextensions-apiserver\.pkg\.apis\.|apimachinery\.pkg\.apis\.)", "", type_name
    )


def test_every_field_is_acted_on_stored_for_others_or_warned_about():
    undecided = [
        f"{short(name)}.{field}"
        for name, members in fields().items()
        for field in sorted(members)
        if not is_read(field)
        and field not in unheeded.FIELDS.get(name, {})
        and not any(pattern.fullmatch(f"{short(name)}.{field}") for pattern in PATTERNS)
    ]
    assert not undecided, undecided


def test_no_row_is_about_what_is_gone():
    known = [f"{short(name)}.{field}" for name, members in fields().items() for field in members]
    for pattern in PATTERNS:
        assert any(pattern.fullmatch(one) for one in known), pattern.pattern
