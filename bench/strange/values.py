"""Values of the right type, from the edges of it.

`Values.of(schema)` is something that a schema's type allows and that hardly anybody would write:
empty containers, the largest numbers, every spelling of a quantity, text in odd letters. What a
field's name says about it is used, since text that means nothing is refused where a word is wanted.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from allot.api.schema import Schema, Type

_DEPTH_MAX = 5

TEXTS = (
    "", "a", "A", "-", "0", "1.5", "a" * 63, "a" * 64, "a" * 253, "a" * 1000, "ü", "名前", "😀",
    "a b", "\n", "\x00",
    "null", "true", "*", "/", "a/b", "a.b.c", "..", "%2e", "$(X)", "{{ . }}", "-1", "1e9", "example.com/a",
    "http://[::1]/", "\u202e", "'; --",
)  # fmt: skip

QUANTITIES = (
    "0", "-0", "+1", "1", "-1", "1m", "1n", "1u", "100m", "1k", "1Ki", "1M", "1Mi", "1G", "1Gi", "1Ti",
    "1E", "1Ei",
    "1e3", "1E3", "1e-9", "0.1", ".5", "5.", "1.000000001", "0.0000000001", "12345678901234567890",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "7Ei", "8Ei", "1e18", "1e30",
    "999999999999n",
    "00012", "0Ki", "80Gi", 0, 1, 10, -1, 1.5, 2**40,
)  # fmt: skip

TIMES = (
    "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2024-02-29T23:59:59+14:00",
    "2030-01-01T00:00:00.123456Z", "2000-01-01T00:00:00-12:00",
)  # fmt: skip

_INTEGERS = {
    "int32": (0, 1, -1, 2, 3, 7, 100, 2**15, 2**31 - 1, -(2**31)),
    "int64": (0, 1, -1, 2, 60, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
}

_WORDS: Mapping[str, Sequence[Any]] = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", "None", ""),
    "allocationMode": ("ExactCount", "All"),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Active", "Terminating", ""),
    "status": ("True", "False", "Unknown"),
    "imagePullPolicy": ("Always", "Never", "IfNotPresent"),
    "dnsPolicy": ("ClusterFirst", "Default", "None"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "topologyKey": ("kubernetes.io/hostname", "zone", "x"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "concurrencyPolicy": ("Allow", "Forbid", "Replace"),
    "completionMode": ("Indexed", "NonIndexed"),
    "podManagementPolicy": ("OrderedReady", "Parallel"),
    "scopeName": ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass"),
    "schedule": ("* * * * *", "@hourly", "0 0 31 2 *"),
    "schedulerName": ("default-scheduler", "nobody"),
    "priorityClassName": ("", "system-cluster-critical"),
    "resource": ("pods", "resourceclaims", "x"),
    "conditionType": ("Ready", "PodScheduled"),
    "reason": ("", "Because", "a" * 128),
    "blockOwnerDeletion": (True, False),
    "matchAttribute": ("gpu.example.com/model", "dra.example.com/x", "d.example.com/numa"),
    "expression": (
        "true", "false", "device.driver == 'd.example.com'", "device.attributes['d.example.com'].x == 1",
        "device.capacity['d.example.com'].memory.isGreaterThan(quantity('1Gi'))", "1 / 0 == 1",
        "device.attributes['d.example.com'].v.isGreaterThan(semver('1.0.0'))",
    ),
    "driver": ("d.example.com", "gpu.example.com", "D.example.com"),
    "version": ("1.0.0", "0.0.1-alpha.1+b", "v1"),
    "apiGroup": ("", "rbac.authorization.k8s.io", "apps", "resource.k8s.io"),
    "apiVersion": ("v1", "apps/v1", "resource.k8s.io/v1", "example.com/v9", "a/b/c"),
    "kind": ("Pod", "Node", "Namespace", "Deployment", "ReplicaSet", "ResourceClaim", "Thing", "ConfigMap"),
    "extendedResourceName": ("example.com/gpu", "d.example.com/x"),
    "shareID": ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"),
    "verbs": ("get", "*", "associated-node:update"),
}  # fmt: skip
"""What fields of these names usually hold. Only where they are text (or switches)."""


class Values:
    """Draws from `rng`; `names` are objects that may be there, to be pointed at."""

    def __init__(self, rng: random.Random, names: Mapping[str, Sequence[str]]) -> None:
        self.rng = rng
        self._names = names

    def of(self, schema: Schema, field: str = "", depth: int = 0) -> Any:
        rng = self.rng
        if rng.random() < 0.03:
            return None
        match schema.type:
            case Type.OBJECT:
                return self._object(schema, depth)
            case Type.MAP:
                count = 0 if depth > _DEPTH_MAX else rng.choice((0, 1, 1, 2))
                return {self.key(): self._element(schema, field, depth) for _ in range(count)}
            case Type.LIST:
                count = 0 if depth > _DEPTH_MAX else rng.choice((0, 1, 1, 2, 3))
                members = [self._element(schema, field, depth) for _ in range(count)]
                return members * 2 if rng.random() < 0.05 else members
            case Type.ANY:
                return self.junk()
            case _:
                return self._scalar(schema, field)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        if depth > _DEPTH_MAX or self.rng.random() < 0.1:
            return {}
        share = self.rng.choice((0.1, 0.3, 0.6))
        chosen = {
            name: self.of(field, name, depth + 1)
            for name, field in schema.fields.items()
            if name in schema.required or self.rng.random() < share
        }
        if self.rng.random() < 0.08:
            chosen[self.rng.choice(("unknown", "spec", "source", "nodeName", "items"))] = self.junk()
        return chosen

    def _element(self, schema: Schema, field: str, depth: int) -> Any:
        assert schema.element is not None
        return self.of(schema.element, field.removesuffix("s"), depth + 1)

    def _scalar(self, schema: Schema, field: str) -> Any:
        rng = self.rng
        match schema.type:
            case Type.BOOLEAN:
                return rng.random() < 0.5
            case Type.INTEGER:
                return rng.choice(_INTEGERS.get(schema.format, _INTEGERS["int64"]))
            case Type.NUMBER:
                return rng.choice((0, -1, 0.5, 1e300, -1e-300))
            case Type.QUANTITY:
                return rng.choice(QUANTITIES)
            case Type.TIME | Type.MICRO_TIME:
                return rng.choice(TIMES)
            case Type.BYTES:
                return rng.choice(("", "AA==", "AAECAwQ=", "////"))
            case Type.INT_OR_STRING:
                return rng.choice((0, 1, -1, 2**31 - 1, "0%", "50%", "100%", "1000%", "http", ""))
        return self.text(field)

    def text(self, field: str) -> str:
        known, rng = self._names.get(field) or _WORDS.get(field), self.rng
        if known and rng.random() < 0.85:
            return str(rng.choice(known))
        if rng.random() < 0.5:
            return rng.choice(self._names["name"])
        return rng.choice(TEXTS)

    def key(self) -> str:
        rng = self.rng
        usual = (
            "cpu",
            "memory",
            "pods",
            "app",
            "x",
            "d.example.com/x",
            "example.com/gpu",
            "ephemeral-storage",
        )
        return rng.choice(usual) if rng.random() < 0.8 else rng.choice(TEXTS)

    def junk(self, depth: int = 0) -> Any:
        """Anything that JSON can say."""
        rng = self.rng
        kind = rng.randrange(8 if depth < 3 else 5)
        match kind:
            case 0:
                return None
            case 1:
                return rng.choice(TEXTS)
            case 2:
                return rng.choice((0, -1, 2**63 - 1, 2**64, 10**30, 1.5, -1e300))
            case 3:
                return rng.random() < 0.5
            case 4:
                return rng.choice(({}, [], ""))
            case 5:
                return [self.junk(depth + 1) for _ in range(rng.randrange(4))]
            case _:
                return {rng.choice(("a", "kind", "spec", "", "x")): self.junk(depth + 1) for _ in range(2)}
