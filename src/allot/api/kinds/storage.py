"""storage.k8s.io/v1: what components that mount volumes watch. Stored from their schema and little more."""

from datetime import datetime

from ..field import FieldError, Path, forbidden, required
from ..kind import Column, Fields, Kind, Rules, Version
from .reading import default, items, obj, text
from .workloads import AGE, NAME

GROUP = "storage.k8s.io"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
CLUSTER_NAME = Column("Name", format="name", description="Name must be unique within a cluster.")


def _schema(kind: str) -> str:
    return f"io.k8s.api.storage.v1.{kind}"


# -- storage classes ----------------------------------------------------------------------------


def _default_class(storage_class: Fields, now: datetime) -> None:
    default(storage_class, "reclaimPolicy", "Delete")
    default(storage_class, "volumeBindingMode", "Immediate")


def _validate_class(storage_class: Fields) -> list[FieldError]:
    return [] if storage_class.get("provisioner") else [required(Path("provisioner"))]


def _validate_class_update(new: Fields, old: Fields) -> list[FieldError]:
    fixed = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return _validate_class(new) + [
        forbidden(Path(name), f"updates to {name} are forbidden.")
        for name in fixed
        if (new.get(name) or None) != (old.get(name) or None)
    ]


def _class_name(storage_class: Fields) -> str:
    is_default = text(storage_class, "metadata", "annotations", DEFAULT_CLASS) == "true"
    name = storage_class["metadata"]["name"]
    return f"{name} (default)" if is_default else name


STORAGE_CLASS = Kind(
    group=GROUP,
    kind="StorageClass",
    plural="storageclasses",
    singular="storageclass",
    short_names=("sc",),
    versions=(Version("v1", _schema("StorageClass"), default=_default_class),),
    hub="v1",
    namespaced=False,
    rules=Rules(
        validate_create=lambda new, context: _validate_class(new),
        validate_update=lambda new, old, context: _validate_class_update(new, old),
    ),
    columns=(
        CLUSTER_NAME,
        Column("Provisioner", description="Who makes volumes of this class."),
        Column("ReclaimPolicy", description="What becomes of a volume when its claim is gone."),
        Column("VolumeBindingMode", description="When a claim gets its volume."),
        Column("AllowVolumeExpansion", description="Whether volumes may grow."),
        AGE,
    ),
    cells=lambda fields, age: [
        _class_name(fields),
        fields.get("provisioner", ""),
        fields.get("reclaimPolicy", ""),
        fields.get("volumeBindingMode", ""),
        bool(fields.get("allowVolumeExpansion")),
        age,
    ],
)

# -- drivers and where they are -----------------------------------------------------------------


def _default_driver(driver: Fields, now: datetime) -> None:
    spec = driver.setdefault("spec", {})
    for name, value in (
        ("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
        ("requiresRepublish", False), ("seLinuxMount", False),
    ):  # fmt: skip
        if spec.get(name) is None:
            spec[name] = value
    default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


CSI_DRIVER = Kind(
    group=GROUP,
    kind="CSIDriver",
    plural="csidrivers",
    singular="csidriver",
    versions=(Version("v1", _schema("CSIDriver"), default=_default_driver),),
    hub="v1",
    namespaced=False,
    columns=(
        CLUSTER_NAME,
        Column(
            "AttachRequired", "boolean", description="Whether volumes are attached before they are mounted."
        ),
        Column("PodInfoOnMount", "boolean", description="Whether it is told about the pod."),
        Column("StorageCapacity", "boolean", description="Whether it says how much is left."),
        Column("TokenRequests", description="For whom it gets tokens."),
        Column("RequiresRepublish", "boolean", description="Whether it is called again and again."),
        Column("Modes", description="What sorts of volumes it makes."),
        AGE,
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"],
        bool(obj(fields, "spec").get("attachRequired")),
        bool(obj(fields, "spec").get("podInfoOnMount")),
        bool(obj(fields, "spec").get("storageCapacity")),
        ",".join(str(t.get("audience", "")) for t in items(fields, "spec", "tokenRequests")) or "<unset>",
        bool(obj(fields, "spec").get("requiresRepublish")),
        ",".join(items(fields, "spec", "volumeLifecycleModes")) or "<none>",
        age,
    ],
)

CSI_NODE = Kind(
    group=GROUP,
    kind="CSINode",
    plural="csinodes",
    singular="csinode",
    versions=(Version("v1", _schema("CSINode")),),
    hub="v1",
    namespaced=False,
    columns=(CLUSTER_NAME, Column("Drivers", "integer", description="How many drivers run there."), AGE),
    cells=lambda fields, age: [fields["metadata"]["name"], len(items(fields, "spec", "drivers")), age],
)

CSI_STORAGE_CAPACITY = Kind(
    group=GROUP,
    kind="CSIStorageCapacity",
    plural="csistoragecapacities",
    singular="csistoragecapacity",
    versions=(Version("v1", _schema("CSIStorageCapacity")),),
    hub="v1",
    columns=(
        NAME,
        Column("StorageClassName", description="The class it speaks of."),
        Column("Capacity", description="How much is left."),
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"], text(fields, "storageClassName"), text(fields, "capacity") or "<unset>",
    ],
)  # fmt: skip

VOLUME_ATTACHMENT = Kind(
    group=GROUP,
    kind="VolumeAttachment",
    plural="volumeattachments",
    singular="volumeattachment",
    versions=(Version("v1", _schema("VolumeAttachment")),),
    hub="v1",
    namespaced=False,
    has_status=True,
    columns=(
        CLUSTER_NAME,
        Column("Attacher", description="Who attaches the volume."),
        Column("PV", description="The volume."),
        Column("Node", description="Where it is attached."),
        Column("Attached", "boolean", description="Whether it is."),
        AGE,
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"],
        text(fields, "spec", "attacher"),
        text(fields, "spec", "source", "persistentVolumeName"),
        text(fields, "spec", "nodeName"),
        bool(obj(fields, "status").get("attached")),
        age,
    ],
)

VOLUME_ATTRIBUTES_CLASS = Kind(
    group=GROUP,
    kind="VolumeAttributesClass",
    plural="volumeattributesclasses",
    singular="volumeattributesclass",
    short_names=("vac",),
    versions=(Version("v1", _schema("VolumeAttributesClass")),),
    hub="v1",
    namespaced=False,
    columns=(CLUSTER_NAME, Column("DriverName", description="Whose attributes they are."), AGE),
    cells=lambda fields, age: [fields["metadata"]["name"], text(fields, "driverName"), age],
)

KINDS = (
    CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, STORAGE_CLASS, VOLUME_ATTACHMENT, VOLUME_ATTRIBUTES_CLASS,
)  # fmt: skip
