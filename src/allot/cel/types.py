"""Types of the selector language.

A type is a value: a kind, a name and parameters. `dyn` and `any` both mean
"known only when it runs"; `any` is what the value of an attribute has while the
list gate is off, and differs in one thing: no macro may loop over it. A type
parameter (`param`) stands for a type that overload resolution has yet to find.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    PARAM = "param"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    UINT = "uint"


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def is_dynamic(self) -> bool:
        return self.kind in _DYNAMIC

    @property
    def is_open(self) -> bool:
        """Whether a type parameter is left in it."""
        return self.kind is Kind.PARAM or any(part.is_open for part in self.params)


_DYNAMIC = frozenset({Kind.DYN, Kind.ANY, Kind.ERROR})

ANY: Final = Type(Kind.ANY, "any")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "duration")
DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "!error!")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "timestamp")
UINT: Final = Type(Kind.UINT, "uint")

DEVICE: Final = Type(Kind.STRUCT, "kubernetes.DRADevice")
FORMAT: Final = Type(Kind.STRUCT, "kubernetes.NamedFormat")
QUANTITY: Final = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(Kind.STRUCT, "kubernetes.Semver")
URL: Final = Type(Kind.STRUCT, "kubernetes.URL")
IP: Final = Type(Kind.OPAQUE, "net.IP")
CIDR: Final = Type(Kind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(Kind.TYPE, "type", (value,))


def param(name: str) -> Type:
    return Type(Kind.PARAM, name)


def is_optional(type: Type) -> bool:
    return type.kind is Kind.OPAQUE and type.name == "optional_type"


COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

# What a program may call by name as a value: `type(x) == int`.
TYPE_NAMES: Final = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "optional_type": optional_of(DYN),
    "string": STRING,
    "type": type_of(DYN),
    "uint": UINT,
    "kubernetes.Quantity": QUANTITY,
    "kubernetes.Semver": SEMVER,
    "kubernetes.URL": URL,
    "net.CIDR": CIDR,
    "net.IP": IP,
}
