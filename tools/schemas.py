"""Writes src/allot/api/schema/kubernetes-1.37.json: which fields each Kubernetes type has.

    .venv/bin/python tools/schemas.py          # rewrite the file
    .venv/bin/python tools/schemas.py --check  # exit 1 if it is out of date

The facts come from the installed `lightkube-models`, which is parsed and never
imported. It knows names, nesting and what is required; it does not know integer
widths or what the values of a map are: those are the two tables below. List
types, merge keys and defaults are not here but in `allot.api.schema.traits`.

A type is written as `{field: expression}`; an expression is

    !            required, in front of the rest
    s b i l n    string, boolean, int32, int64, number
    q t u y      quantity, time, time with microseconds, base64 bytes
    x *          integer or string, any JSON
    [T {T #N     list of T, map from string to T, the type named N
"""

import ast
import importlib.metadata
import json
import sys
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/allot/api/schema/kubernetes-1.37.json"

MODULES = (
    "core_v1", "apps_v1", "batch_v1", "policy_v1", "coordination_v1", "events_v1", "scheduling_v1", "rbac_v1",
    "authentication_v1", "authorization_v1", "apiextensions_v1", "storage_v1", "discovery_v1", "node_v1",
    "autoscaling_v1", "autoscaling_v2", "networking_v1", "certificates_v1", "admissionregistration_v1",
    "flowcontrol_v1", "scheduling_v1beta1", "storagemigration_v1", "resource_v1", "resource_v1beta2",
    "resource_v1beta1", "meta_v1",
)  # fmt: skip
"""Every type of these is kept, and whatever those refer to."""

UNUSED = ("meta_v1.Patch", "meta_v1.WatchEvent")

ALIASES = {
    "util_intstr.IntOrString": "x",
    "resource.Quantity": "q",
    "runtime.RawExtension": "*",
    "meta_v1.Time": "t",
    "meta_v1.MicroTime": "u",
    "meta_v1.FieldsV1": "{*",
    "apiextensions_v1.JSON": "*",
    "apiextensions_v1.JSONSchemaPropsOrArray": "*",
    "apiextensions_v1.JSONSchemaPropsOrBool": "*",
    "apiextensions_v1.JSONSchemaPropsOrStringArray": "*",
}

INT64 = frozenset({
    "generation", "observedGeneration", "deletionGracePeriodSeconds", "gracePeriodSeconds",
    "remainingItemCount", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "runAsUser",
    "runAsGroup", "fsGroup", "supplementalGroups", "uid", "gid", "user", "defaultUser", "tolerationSeconds",
    "expirationSeconds", "startingDeadlineSeconds", "resourceSliceCount", "int", "ints", "maxItems",
    "maxLength", "maxProperties", "minItems", "minLength", "minProperties", "revision", "seconds",
    "sizeBytes", "nodeAllocatableUpdatePeriodSeconds",
})  # fmt: skip
"""Integer fields of 64 bits, wherever they occur. `count` and `capacity` depend on the type."""

INT64_OF_TYPE = frozenset(
    f"{module}.{field}"
    for module in ("resource_v1", "resource_v1beta1", "resource_v1beta2")
    for field in ("DeviceSubRequest.count", "ExactDeviceRequest.count", "DeviceRequest.count")
) | {"core_v1.NodeSwapStatus.capacity"}

BYTES = frozenset({
    "core_v1.ConfigMap.binaryData", "core_v1.Secret.data", "apiextensions_v1.WebhookClientConfig.caBundle",
    "admissionregistration_v1.WebhookClientConfig.caBundle",
    "certificates_v1.CertificateSigningRequestSpec.request",
    "certificates_v1.CertificateSigningRequestStatus.certificate",
    "certificates_v1.PodCertificateRequestSpec.stubPKCS10Request",
})  # fmt: skip

QUANTITY_MAPS = frozenset({
    "allocatedResources", "default", "defaultRequest", "max", "maxLimitRequestRatio", "min", "allocatable",
    "capacity", "overhead", "hard", "used", "limits", "requests", "podFixed", "consumedCapacity",
})  # fmt: skip
"""Maps of these names hold quantities, unless MAP_VALUES knows better."""

_RESOURCE_MAPS = {
    "CounterSet.counters": "#{m}.Counter",
    "DeviceCounterConsumption.counters": "#{m}.Counter",
    "Device.attributes": "#{m}.DeviceAttribute",
    "BasicDevice.attributes": "#{m}.DeviceAttribute",
    "Device.capacity": "#{m}.DeviceCapacity",
    "BasicDevice.capacity": "#{m}.DeviceCapacity",
    "Device.nodeAllocatableResources": "#{m}.NodeAllocatableResource",
    "BasicDevice.nodeAllocatableResources": "#{m}.NodeAllocatableResource",
}

MAP_VALUES = {
    "core_v1.ConfigMap.binaryData": "y",
    "core_v1.Secret.data": "y",
    "apiextensions_v1.JSONSchemaProps.definitions": "#apiextensions_v1.JSONSchemaProps",
    "apiextensions_v1.JSONSchemaProps.patternProperties": "#apiextensions_v1.JSONSchemaProps",
    "apiextensions_v1.JSONSchemaProps.properties": "#apiextensions_v1.JSONSchemaProps",
    "apiextensions_v1.JSONSchemaProps.dependencies": "*",
    "authentication_v1.UserInfo.extra": "[s",
    "certificates_v1.CertificateSigningRequestSpec.extra": "[s",
    "authorization_v1.SubjectAccessReviewSpec.extra": "[s",
    "policy_v1.PodDisruptionBudgetStatus.disruptedPods": "t",
} | {
    f"{module}.{field}": value.format(m=module)
    for module in ("resource_v1", "resource_v1beta1", "resource_v1beta2")
    for field, value in _RESOURCE_MAPS.items()
}
"""What the values of a map are, where they are neither strings nor quantities."""


class Models:
    """The classes of lightkube-models, parsed on demand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[str, dict[str, ast.ClassDef]] = {}

    def module(self, name: str) -> dict[str, ast.ClassDef]:
        if name not in self._modules:
            tree = ast.parse((self._folder / f"{name}.py").read_text())
            self._modules[name] = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        return self._modules[name]

    def fields(self, module: str, name: str) -> Iterator[tuple[str, str, bool]]:
        """(field, annotation, required) in the order of the class, JSON names restored."""
        for node in self.module(module)[name].body:
            if not isinstance(node, ast.AnnAssign):
                continue
            assert isinstance(node.target, ast.Name) and isinstance(node.annotation, ast.Constant)
            field, default = node.target.id, node.value
            if isinstance(default, ast.Call):
                keywords = {keyword.arg: keyword.value for keyword in default.keywords}
                field = ast.literal_eval(keywords["metadata"])["json"]
                default = keywords.get("default")
            yield field, str(node.annotation.value), default is None


class Writer:
    def __init__(self, models: Models) -> None:
        self._models = models
        self.types: dict[str, dict[str, str]] = {}

    def add(self, module: str, name: str) -> None:
        shown = f"{module}.{name}"
        if shown in self.types:
            return
        fields = self.types[shown] = {}
        for field, annotation, required in self._models.fields(module, name):
            expression = self._expression(module, name, field, ast.parse(annotation, mode="eval").body)
            fields[field] = ("!" if required else "") + expression

    def _expression(self, module: str, name: str, field: str, annotation: ast.expr) -> str:
        match annotation:
            case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
                return self._expression(module, name, field, inner)
            case ast.Subscript(value=ast.Name(id="List"), slice=inner):
                return "[" + self._expression(module, name, field, inner)
            case ast.Name(id="dict"):
                return "{" + self._map_value(f"{module}.{name}.{field}", field)
            case ast.Name(id="str"):
                return "y" if f"{module}.{name}.{field}" in BYTES else "s"
            case ast.Name(id="bool"):
                return "b"
            case ast.Name(id="float"):
                return "n"
            case ast.Name(id="int"):
                wide = field in INT64 or f"{module}.{name}.{field}" in INT64_OF_TYPE
                return "l" if wide else "i"
            case ast.Name(id=other):
                return self._reference(module, other)
            case ast.Attribute(value=ast.Name(id=other_module), attr=other):
                return self._reference(other_module, other)
        raise ValueError(f"{module}.{name}.{field}: cannot read {ast.unparse(annotation)}")

    def _map_value(self, qualified: str, field: str) -> str:
        known = MAP_VALUES.get(qualified)
        if known is None:
            return "q" if field in QUANTITY_MAPS else "s"
        if known.startswith("#"):
            self.add(*known[1:].split("."))
        return known

    def _reference(self, module: str, name: str) -> str:
        shown = f"{module}.{name}"
        if shown in ALIASES:
            return ALIASES[shown]
        if name not in self._models.module(module):
            return "{*"  # an object type without fields, which the models spell `Dict`
        self.add(module, name)
        return f"#{shown}"


def facts() -> str:
    distribution = importlib.metadata.distribution("lightkube-models")
    models = Models(Path(str(distribution.locate_file("lightkube/models"))))
    writer = Writer(models)
    for module in MODULES:
        for name in models.module(module):
            if f"{module}.{name}" not in UNUSED and f"{module}.{name}" not in ALIASES:
                writer.add(module, name)
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}"
        for name, fields in sorted(writer.types.items())
    )
    return "{\n" + lines + "\n}\n"


def main() -> int:
    wanted = facts()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text() == wanted else 1
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
