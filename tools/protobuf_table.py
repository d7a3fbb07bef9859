"""Write the table of Kubernetes' protobuf field numbers.

    tools/protobuf_table.py GO_SOURCES

reads the struct declarations below GO_SOURCES/k8s.io (Debian's golang-k8s-api-dev and
golang-k8s-apimachinery-dev, unpacked) and keeps facts alone: for each message its fields,
their numbers and their types. Field numbers never change, so the table only ever grows.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/allot/api/protobuf/numbers.json"

GROUPS = {
    "api/core/v1": "io.k8s.api.core.v1",
    "api/apps/v1": "io.k8s.api.apps.v1",
    "api/authentication/v1": "io.k8s.api.authentication.v1",
    "api/authorization/v1": "io.k8s.api.authorization.v1",
    "api/autoscaling/v1": "io.k8s.api.autoscaling.v1",
    "api/batch/v1": "io.k8s.api.batch.v1",
    "api/coordination/v1": "io.k8s.api.coordination.v1",
    "api/discovery/v1": "io.k8s.api.discovery.v1",
    "api/events/v1": "io.k8s.api.events.v1",
    "api/policy/v1": "io.k8s.api.policy.v1",
    "api/rbac/v1": "io.k8s.api.rbac.v1",
    "api/resource/v1": "io.k8s.api.resource.v1",
    "api/resource/v1beta1": "io.k8s.api.resource.v1beta1",
    "api/resource/v1beta2": "io.k8s.api.resource.v1beta2",
    "api/scheduling/v1": "io.k8s.api.scheduling.v1",
    "api/storage/v1": "io.k8s.api.storage.v1",
    "apimachinery/pkg/apis/meta/v1": "io.k8s.apimachinery.pkg.apis.meta.v1",
}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"

BUILT_IN = {
    "string": "s", "bool": "b", "int": "i", "int32": "i", "int64": "i", "float64": "f", "[]byte": "y",
    "resource.Quantity": "q", "metav1.Time": "t", "metav1.MicroTime": "u", "intstr.IntOrString": "o",
    "runtime.RawExtension": "r", "metav1.FieldsV1": "F", "types.UID": "s", "types.NodeName": "s",
}  # fmt: skip
META_OWN = {"Time": "t", "MicroTime": "u", "FieldsV1": "F"}

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
NAMED = re.compile(r"^type (\w+) ((?:\[\]|map\[\w+\])?[\w.]+)\s*(?://.*)?$", re.M)
FIELD = re.compile(r'^\s+(?:(\w+)\s+)?(\S+)\s+`(?=[^`]*protobuf:"\w+,(\d+),)[^`]*json:"([^",]*)[^`]*`', re.M)


def main(sources: Path) -> None:
    table = {}
    for folder, group in GROUPS.items():
        text = "\n".join(p.read_text() for p in sorted((sources / "k8s.io" / folder).glob("*types*.go")))
        named = dict(NAMED.findall(text))
        structs = [name for name, _ in STRUCT.findall(text)]
        for name, body in STRUCT.findall(text):
            fields = {}
            for _, type_, number, json_name in FIELD.findall(body):
                fields[int(number)] = f"{json_name} {code(type_, group, named, structs)}"
            if fields and name not in META_OWN:
                table[f"{group}.{name}"] = dict(sorted(fields.items()))
    TARGET.write_text(json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n")
    check(table)
    print(f"{len(table)} messages, {sum(map(len, table.values()))} fields: {TARGET}")


def code(type_: str, group: str, named: dict[str, str], structs: list[str]) -> str:
    """s b i f y q t u o r F: scalars and special messages; @NAME: a message; then what is around it:
    * pointer, [ list, { map from strings, ( a list that stands in a message of its own."""
    if type_.startswith("*"):
        return "*" + code(type_[1:], group, named, structs)
    if type_ in BUILT_IN:
        return BUILT_IN[type_]
    if type_.startswith("[]"):
        return "[" + code(type_[2:], group, named, structs)
    if match := re.match(r"map\[[\w.]+\](.+)", type_):
        return "{" + code(match[1], group, named, structs)
    if group == META and type_ in META_OWN:
        return META_OWN[type_]
    prefix, _, name = type_.rpartition(".")
    if not prefix and name in structs:
        return f"@{group}.{name}"
    if not prefix and name in named:
        inner = code(named[name], group, named, structs)
        return f"({inner[1:]}" if inner.startswith("[") else inner
    return foreign(prefix, name)


def foreign(prefix: str, name: str) -> str:
    """A type of another package, by the alias that it is usually imported under."""
    if prefix == "metav1":
        strings = {"LabelSelectorOperator", "DeletionPropagation", "ConditionStatus", "StatusReason"}
        return "s" if name in strings else f"@{META}.{name}"
    if prefix in ("v1", "corev1", "apiv1"):
        strings = {
            "ResourceName", "ConditionStatus", "Protocol", "TaintEffect", "TolerationOperator",
            "PreemptionPolicy", "NodeSelectorOperator", "PersistentVolumeAccessMode",
            "PersistentVolumeReclaimPolicy", "PodConditionType", "UniqueVolumeName",
        }  # fmt: skip
        if name == "ResourceList":
            return "{q"
        return "s" if name in strings else f"@io.k8s.api.core.v1.{name}"
    if prefix == "types":
        return "s"
    raise SystemExit(f"unknown type {prefix}.{name}")


def messages(table: dict[str, dict[int, str]]) -> Iterator[str]:
    for fields in table.values():
        for text in fields.values():
            if "@" in text:
                yield text.partition("@")[2]


def check(table: dict[str, dict[int, str]]) -> None:
    missing = sorted({name for name in messages(table) if name not in table})
    if missing:
        raise SystemExit(f"messages without fields: {missing}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
