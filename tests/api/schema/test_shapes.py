"""The table of Kubernetes types, our traits on it, and shapes made from CRDs."""

import subprocess
import sys
from pathlib import Path

import pytest

from allot.api.schema import (
    ATOMIC,
    BY_KEY,
    SET,
    Type,
    UnknownType,
    apply_defaults,
    check,
    from_structural,
    get,
    names,
)
from allot.api.schema.builtin import full_name
from allot.api.schema.traits import ATOMIC_TYPES, FIELD_TRAITS

ROOT = Path(__file__).parents[3]


def at(kind, *path):
    """The shape at a path; a list or map is entered with '*'."""
    schema = get(kind)
    for step in path:
        schema = schema.element if step == "*" else schema.fields[step]
    return schema


POD = "io.k8s.api.core.v1.Pod"
CLAIM = "io.k8s.api.resource.v1.ResourceClaim"


@pytest.mark.parametrize(
    "kind, path, list_type, keys, merge_key",
    [
        (POD, ["spec", "containers"], BY_KEY, ("name",), "name"),
        (POD, ["spec", "containers", "*", "ports"], BY_KEY, ("containerPort", "protocol"), "containerPort"),
        (POD, ["spec", "containers", "*", "resources", "claims"], BY_KEY, ("name",), ""),
        (POD, ["spec", "containers", "*", "args"], ATOMIC, (), ""),
        (POD, ["spec", "tolerations"], ATOMIC, (), ""),
        (POD, ["metadata", "finalizers"], SET, (), ""),
        (POD, ["metadata", "ownerReferences"], BY_KEY, ("uid",), "uid"),
        (POD, ["status", "conditions"], BY_KEY, ("type",), "type"),
        (CLAIM, ["spec", "devices", "requests"], ATOMIC, (), ""),
        (CLAIM, ["spec", "devices", "constraints"], ATOMIC, (), ""),
        (CLAIM, ["status", "reservedFor"], BY_KEY, ("uid",), "uid"),
        (CLAIM, ["status", "devices"], BY_KEY, ("driver", "device", "pool", "shareID"), ""),
        (CLAIM, ["status", "devices", "*", "conditions"], BY_KEY, ("type",), ""),
        ("io.k8s.api.resource.v1.ResourceSlice", ["spec", "devices"], ATOMIC, (), ""),
    ],
)
def test_lists_merge_as_kubernetes_merges_them(kind, path, list_type, keys, merge_key):
    schema = at(kind, *path)
    assert (schema.list_type, schema.keys, schema.merge_key) == (list_type, keys, merge_key)


def test_every_trait_belongs_to_a_field_that_exists():
    for short, traits in FIELD_TRAITS.items():
        schema = get(full_name(short))
        for field, trait in traits.items():
            shape = schema.fields[field]
            if trait.list_type != ATOMIC or trait.merge_key:
                assert shape.type is Type.LIST, (short, field)
            for key in {*trait.keys, trait.merge_key} - {""}:
                assert shape.element.fields[key].type not in (Type.LIST, Type.MAP, Type.OBJECT), (
                    short,
                    field,
                )
    for short in ATOMIC_TYPES:
        assert get(full_name(short)).atomic


def test_values_of_maps_are_known():
    assert at(POD, "spec", "overhead", "*").type is Type.QUANTITY
    assert at("io.k8s.api.core.v1.Secret", "data", "*").type is Type.BYTES
    assert (
        at("io.k8s.api.resource.v1.ResourceSlice", "spec", "devices", "*", "attributes", "*", "int").format
        == "int64"
    )
    assert at("io.k8s.api.policy.v1.PodDisruptionBudget", "status", "disruptedPods", "*").type is Type.TIME


def test_an_unknown_type_is_an_error():
    with pytest.raises(UnknownType):
        get("io.k8s.api.core.v1.Pot")


def test_the_table_is_what_the_models_say():
    pytest.importorskip("lightkube")
    assert subprocess.run([sys.executable, ROOT / "tools/schemas.py", "--check"]).returncode == 0


def test_all_schemas_load_quickly():
    """The server must be ready in well under a second; every shape, fields and all, in a fresh process."""
    script = (
        "import time; from allot.api.schema import get, names; t = time.process_time();"
        "[get(name).fields for name in names()]; print(time.process_time() - t)"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT / "src").stdout)
        for _ in range(3)
    )
    assert seconds < 0.03, f"{seconds * 1000:.0f} ms"
    assert len(names()) > 500


# --- custom resources -------------------------------------------------------------------------

WIDGET = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "default": 3},
                "port": {"x-kubernetes-int-or-string": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string", "default": ""}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
                "ref": {"type": "object", "x-kubernetes-map-type": "atomic",
                        "properties": {"a": {"type": "string"}}},
                "pod": {"type": "object", "x-kubernetes-embedded-resource": True,
                        "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}  # fmt: skip


def test_a_structural_schema_is_a_shape_like_any_other():
    widget = from_structural(WIDGET)
    spec = widget.fields["spec"].fields

    assert widget.fields.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert (spec["size"].type, spec["size"].format, spec["size"].default) == (Type.INTEGER, "int32", 3)
    assert spec["size"].validation == {"minimum": 1}
    assert spec["port"].type is Type.INT_OR_STRING
    assert (spec["parts"].list_type, spec["parts"].keys) == (BY_KEY, ("name",))
    assert spec["free"].preserves_unknown
    assert spec["tags"].type is Type.MAP
    assert spec["ref"].atomic
    assert spec["pod"].embedded
    assert spec["any"].type is Type.ANY


def test_custom_resources_are_checked_like_built_in_ones():
    widget = from_structural(WIDGET)
    fields = {
        "metadata": {"name": "w", "nmae": "x"},
        "spec": {
            "free": {"a": {"b": 1}},
            "tags": {"a": None},
            "parts": [{}, {"nmae": 1}],
            "pod": {"metadata": {"labels": {}}, "spec": 1},
            "any": [1, "x"],
            "colour": "red",
        },
    }
    problems = check(fields, widget)
    apply_defaults(fields, widget)
    assert problems.unknown == ("metadata.nmae", "spec.parts[1].nmae", "spec.colour")
    assert fields["spec"]["size"] == 3
    assert fields["spec"]["parts"] == [{"name": ""}, {"name": ""}]
    assert fields["spec"]["tags"] == {"a": None}


def test_wrong_types_in_custom_resources_are_errors_of_their_fields():
    """A body that can be read, but breaks a rule of its author: 422 and not 400."""
    widget = from_structural(WIDGET)
    problems = check(
        {"spec": {"size": "big", "tags": {"a": 1}, "parts": [{"name": True}], "free": []}}, widget
    )
    assert not problems.malformed
    assert [tuple(one) for one in problems.mistyped] == [
        ("spec.size", "integer", "string"),
        ("spec.tags.a", "string", "integer"),
        ("spec.parts[0].name", "string", "boolean"),
        ("spec.free", "object", "array"),
    ]


def test_metadata_of_a_custom_resource_is_read_like_any_other():
    widget = from_structural(WIDGET)
    assert "of type string" in check({"metadata": {"name": 1}}, widget).malformed
    assert check({"spec": {"pod": {"metadata": {"name": 1}}}}, widget).malformed
    assert check([], widget).malformed


def test_nulls_in_a_custom_resource_make_room_for_defaults_only():
    widget = from_structural(WIDGET)
    fields = {"metadata": {"creationTimestamp": None}, "spec": {"size": None, "port": None, "parts": [None]}}
    check(fields, widget)
    apply_defaults(fields, widget)
    assert fields == {"metadata": {}, "spec": {"size": 3, "port": None, "parts": [None]}}


OPAQUE = {
    "ControllerRevision.data", "AllocatedDeviceStatus.data", "OpaqueDeviceConfiguration.parameters",
    "ManagedFieldsEntry.fieldsV1", "NodeResourceInstance.data",
    "JSONSchemaProps.default", "JSONSchemaProps.enum", "JSONSchemaProps.example",
}  # fmt: skip
"""What is any JSON by definition; nobody here reads it as anything else."""


def test_nothing_is_untyped_but_what_is_opaque_by_definition():
    """S3. A type that says all by being there has no fields, and takes none."""
    found = {
        f"{name.rpartition('.')[2]}.{field}"
        for name in names()
        for field, shape in get(name).fields.items()
        if any(one.takes_null for one in (shape, shape.element) if one is not None)
    }
    assert found == OPAQUE
