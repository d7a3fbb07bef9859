"""What the server must know about a kind of object, as one table entry.

A kind is data: names, versions, columns, and a handful of functions for what
data cannot say. The functions work on the *hub form*: the dictionary of the
stored version, decoded from JSON. They are called in this order:

    create         default -> prepare_create -> validate_create
    update, patch  default -> prepare_update -> validate_update
    .../status     default -> prepare_status -> validate_status
    .../PART       default -> prepare -> validate (`Part`)

`prepare_*` may change `new`; `validate_*` only reads and returns every error it
finds. None of them reads the clock, the network or another object except
through the `WriteContext` they are handed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from .age import since
from .field import FieldError, Path
from .gates import Gates
from .schema import Schema
from .schema import get as builtin_schema
from .user import Action, Decision, User

Fields = dict[str, Any]
"""A decoded JSON object: the mutable form that exists only inside the write path."""


@dataclass(frozen=True, slots=True)
class FieldErrorText:
    """A field error whose path only the caller knows."""

    wrong: str  # "invalid", "forbidden" or "too_long"
    detail: str


class WriteContext(Protocol):
    """One write request, as the rules of a kind may see it."""

    @property
    def user(self) -> User: ...

    @property
    def verb(self) -> str:
        """create, update or patch, as authorization names it."""
        ...

    @property
    def now(self) -> datetime: ...

    @property
    def gates(self) -> Gates: ...

    @property
    def version(self) -> str:
        """The API version that the request came in, e.g. v1beta1. Error paths depend on it."""
        ...

    def namespace(self) -> Fields | None:
        """The namespace of the object. Reading it joins the write's transaction: if the
        namespace changes before the write commits, the write is done anew."""
        ...

    def resource_class(self, name: str) -> Fields | None:
        """The resource class of that name, where one is known. Reading it joins the transaction as well."""
        ...

    def warn(self, text: str) -> None:
        """Tell the client, whatever becomes of the write."""
        ...

    def authorize(self, action: Action) -> Decision:
        """May the caller also do this?"""
        ...

    def check_selector(self, expression: str) -> FieldErrorText | None:
        """What is wrong with a new device selector, or None."""
        ...

    def check_template(self, text: str) -> FieldErrorText | None:
        """What is wrong with a new template of parameters (`{{ expression }}` in YAML), or None."""
        ...

    def check_rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        """What is wrong with the rules in the schema of a custom resource."""
        ...

    def judge(self, shape: Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        """Which rules of its schema a custom resource breaks, replacing `old`."""
        ...

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        """What is wrong with the expression of a derived attribute, or the most it can cost."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. Priority 0 is always shown, 1 only with -o wide."""

    name: str
    type: str = "string"  # string, integer, number, boolean, date
    format: str = ""
    description: str = ""
    priority: int = 0


def _keep(fields: Fields) -> Fields:
    return fields


@dataclass(frozen=True, slots=True)
class Version:
    """One served version. A conversion may change and return its argument."""

    name: str
    schema: str  # in the schema table, e.g. "io.k8s.api.core.v1.Pod"
    to_hub: Callable[[Fields], Fields] = _keep
    from_hub: Callable[[Fields], Fields] = _keep
    default: Callable[[Fields, datetime], None] = lambda fields, now: None  # on this version's form
    defaults_by_part: bool = False  # what `default` fills in below spec, or status, follows from that alone
    converts_by_part: bool = False  # as each looks in the hub form, too; metadata looks the same
    deprecated: str = ""  # the Warning header of every answer in this version
    custom: Schema | None = None  # in place of `schema`, for kinds that are defined at run time
    returns_deleted: bool = True  # DELETE answers with the object, not with a Status
    unconditional_update: bool = True  # PUT without resourceVersion is allowed
    respell: Callable[[Fields], None] | None = None
    """Puts older spellings in a body into those of this version, in place, before anything else reads it."""

    def shape(self) -> Schema:
        """The schema that objects of this version are checked against."""
        return self.custom if self.custom is not None else builtin_schema(self.schema)


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers, as dotted paths."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "status.selector"  # a label selector object or a string


def _nothing(new: Fields, context: WriteContext) -> None:
    """By default a create is stored as it came."""


def _nothing_from_old(new: Fields, old: Fields, context: WriteContext) -> None:
    """By default an update is stored as it came."""


def _fine(new: Fields, context: WriteContext) -> list[FieldError]:
    return []


def _fine_from_old(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return []


def _no_warnings(new: Fields, old: Fields | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Part:
    """What a subresource writes of an object."""

    prepare: Callable[[Fields, Fields, WriteContext], None]  # keeps the rest as it is
    validate: Callable[[Fields, Fields, WriteContext], list[FieldError]]


@dataclass(frozen=True, slots=True)
class Rules:
    prepare_create: Callable[[Fields, WriteContext], None] = _nothing
    prepare_update: Callable[[Fields, Fields, WriteContext], None] = _nothing_from_old
    prepare_status: Callable[[Fields, Fields, WriteContext], None] = _nothing_from_old
    validate_create: Callable[[Fields, WriteContext], list[FieldError]] = _fine
    validate_update: Callable[[Fields, Fields, WriteContext], list[FieldError]] = _fine_from_old
    validate_status: Callable[[Fields, Fields, WriteContext], list[FieldError]] = _fine_from_old
    warnings: Callable[[Fields, Fields | None], list[str]] = _no_warnings
    parts: Mapping[str, Part] = field(default_factory=dict, hash=False)  # by subresource, besides status


NAME_AND_AGE = (
    Column("Name", format="name", description="Name must be unique within a namespace."),
    Column("Age", description="How long ago the object was created."),
)


def _name_and_age(fields: Fields, age: str) -> list[Any]:
    return [fields["metadata"]["name"], age]


class Guard(Enum):
    """What a write must keep true about other objects; `apiserver.writing.guard` has a row for each."""

    DEVICES_HELD = "devices held"  # by claims: none is held twice
    COMPUTE_HELD = "compute resources held"  # by pods: no more than their node has
    DEVICES_OFFERED = "devices offered"  # by slices: who holds devices counts on them
    CAPACITY_OFFERED = "capacity offered"  # by nodes, to numeric models: likewise


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    kind: str
    plural: str
    versions: tuple[Version, ...]  # preferred first
    hub: str  # the version whose form is stored
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False  # /status is served, and plain writes leave status alone
    status_on_create: bool = False  # a create may bring a status all the same, as nodes do
    scale: Scale | None = None
    other_subresources: tuple[str, ...] = ()  # binding, eviction, token, log
    refused_subresources: tuple[str, ...] = ()  # known, and answered with why not
    verbs: tuple[str, ...] = (
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    )  # fmt: skip
    counts_generation: bool = False  # metadata.generation starts at 1 and grows with spec
    name_rule: str = "subdomain"  # subdomain, label, path (for RBAC) or none
    rules: Rules = Rules()
    guard: Guard | None = None
    columns: Sequence[Column] = NAME_AND_AGE
    cells: Callable[[Fields, str], Sequence[Any]] = _name_and_age  # (object, age) -> one cell a column
    cells_at: Callable[[Fields, datetime], Sequence[Any]] | None = None
    """In place of `cells`, for kinds whose cells tell other times than the age."""
    selectable: Mapping[str, Callable[[Fields], str]] = field(default_factory=dict, hash=False)
    """Field selectors beyond metadata.name and metadata.namespace."""
    selects_namespace: bool = True  # whether metadata.namespace is one, too
    stored_as: tuple[str, str] | None = None
    """(group, plural) of the kind whose objects and hub form this one shares; see `storage`."""
    stored_version: Version | None = None
    """The version of the hub form, where it is none of `versions`."""
    is_custom: bool = False  # defined at run time, so that its shape may change under its objects

    @property
    def storage(self) -> tuple[str, str]:
        """(group, plural) that the objects are stored under. Two kinds may be two views of
        the same objects, as the Events of the core group and of events.k8s.io are."""
        return self.stored_as or (self.group, self.plural)

    @property
    def stored_kind(self) -> str:
        """The `kind` that stored objects carry. Kinds that share objects share their name."""
        return self.kind

    def stored_shape(self) -> Schema:
        """The schema of the hub form: what is stored has no other fields (S3)."""
        version = self.stored_version or self.version(self.hub)
        assert version is not None, f"{self.resource} is stored in {self.hub}, which is no version of it"
        return version.shape()

    def row(self, fields: Fields, now: datetime) -> Sequence[Any]:
        """The cells of one object in `kubectl get`."""
        if self.cells_at is not None:
            return self.cells_at(fields, now)
        return self.cells(fields, since(fields["metadata"].get("creationTimestamp"), now))

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def resource(self) -> str:
        """plural.group, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def version(self, name: str) -> Version | None:
        return next((v for v in self.versions if v.name == name), None)
