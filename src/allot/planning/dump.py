"""A cluster as a file: what decides where pods go, and nothing that is a secret.

    {"kind": "Dump", "apiVersion": "allot.dev/v1", "gates": {...}, "unread": [...], "parameters": [...]}
    {"apiVersion": "v1", "kind": "Node", ...}                    an object a line, JSON

What it promises
    DUMP1  Questions are answered from a dump as they are from the cluster at that moment.
    DUMP2  What no scheduler reads of pods is not in it: no environment, command, image, volume or annotation
           that somebody wrote; nor parameters that are opaque to the cluster, in claims, classes or results.
           Of objects with numeric parameters it has what the templates of classes read.

Labels, names, taints, selectors and device attributes are in it: they decide.
"""

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from allot.api import Fields, Gates, Object, UnknownGate, encode
from allot.base import os_reason
from allot.client import Client
from allot.informers import ResourceId
from allot.scheduler import (
    RESOURCE_CLASSES,
    SOURCES,
    Gathered,
    ParameterKind,
    Standing,
    Unread,
    gather,
)

from .parameters import ReadByTemplates

VERSION: Final = "allot.dev/v1"
GROUP: Final = "resource.k8s.io"
TEMPLATES = ResourceId(GROUP, "v1", "resourceclaimtemplates")
QUOTAS = ResourceId("", "v1", "resourcequotas")
PRIORITIES = ResourceId("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
RESOURCES = (*SOURCES, TEMPLATES, QUOTAS, PRIORITIES)
"""What a scheduler follows, and what pods and claims that are still to come depend on."""


class BadDump(ValueError):
    """The message names the file, and the line where there is one."""


@dataclass(frozen=True, slots=True)
class Dump:
    gathered: Gathered
    gates: Gates = field(default_factory=Gates)


async def take(client: Client, gates: Gates, namespace: str = "") -> Dump:
    return Dump(await gather(client, RESOURCES, namespace), gates)


def written(dump: Dump) -> Iterable[bytes]:
    """The lines of a file."""
    unread = [_told(one) for one in dump.gathered.unread]
    gates = dict(dump.gates.changed)
    parameters = {kind: _kept(standing) for kind, standing in dump.gathered.parameters.items()}
    told = [_Parameters(*kind, *standing) for kind, standing in parameters.items()]
    head = {"kind": "Dump", "apiVersion": VERSION, "gates": gates, "unread": unread, "parameters": told}
    yield encode(msgspec.to_builtins(head)) + b"\n"
    kept = {*RESOURCES, *(one.what for one in parameters.values())}
    templates = ReadByTemplates()
    for one in dump.gathered.objects.get(RESOURCE_CLASSES, ()):
        templates.heed(one)
    for what, objects in dump.gathered.objects.items():
        for one in objects if what in kept else ():
            named = {"apiVersion": _api_version(what), "resource": what.plural}
            kept_of = scrubbed(one.fields, what.plural)
            if what not in RESOURCES:
                kept_of = templates.kept(what, kept_of)
            yield encode({**kept_of, **named}) + b"\n"


def save(dump: Dump, path: Path) -> None:
    """Whole, or not at all: what was there before stays where the disk is full. Raises OSError."""
    known = path.resolve()
    if known.exists() and not known.is_file():
        _write(dump, path, path)  # a pipe, say, which nothing can take the place of
        return
    beside = known.with_name(f"{known.name}.new")
    try:
        _write(dump, beside, path)
        os.replace(beside, known)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _write(dump: Dump, path: Path, named: Path) -> None:
    try:
        with gzip.open(path, "wb") if named.suffix == ".gz" else path.open("wb") as file:
            file.writelines(written(dump))
    except OSError as refused:
        raise OSError(refused.errno, os_reason(refused), str(named)) from None


def load(path: Path) -> Dump:
    """Raises BadDump."""
    try:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines()
    except (gzip.BadGzipFile, zlib.error):
        raise BadDump(f"{path} is damaged") from None
    except OSError as refused:
        raise BadDump(f"{path} cannot be read: {os_reason(refused)}") from None
    except EOFError:
        raise BadDump(f"{path} is cut short") from None
    return _read(str(path), lines)


def _kept(standing: Standing) -> Standing:
    """Built-in kinds hold what no dump may: a class that reads config maps or secrets goes without."""
    if standing.what is None or standing.what.group or standing.what in RESOURCES:
        return standing
    return Standing(None, "is not kept in a dump, where it could hold secrets")


def _read(path: str, lines: list[bytes]) -> Dump:
    known = {(_api_version(what), what.plural): what for what in RESOURCES}
    objects: dict[ResourceId, list[Object]] = {what: [] for what in RESOURCES}
    said = _Head()
    for number, line in enumerate(lines, 1):
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise BadDump(f"{path}:{number}: {wrong}") from None
        if number == 1:
            said = _head(path, fields)
            for named in (one.what for one in said.parameters if one.what is not None):
                known[_api_version(named), named.plural] = named
                objects.setdefault(named, [])
            continue
        what = known.get((str(fields.get("apiVersion")), str(fields.pop("resource", ""))))
        if what is not None:  # else it is of a version that knows more
            objects[what].append(_object(fields, f"{path}:{number}"))
    if not lines:
        raise BadDump(f"{path} is empty")
    try:
        gates = Gates(said.gates)
    except UnknownGate as wrong:
        raise BadDump(f"{path}: {wrong}") from None
    by_name = {what.plural: what for what in objects}
    unread = tuple(
        Unread(by_name[one.what], one.words, one.hidden, one.partly)
        for one in said.unread
        if one.what in by_name
    )
    parameters = {
        ParameterKind(one.group, one.version, one.kind): Standing(one.what, one.why_not)
        for one in said.parameters
    }
    return Dump(Gathered(objects, unread, parameters), gates)


def _head(path: str, fields: Fields) -> "_Head":
    if fields.get("kind") != "Dump" or fields.get("apiVersion") != VERSION:
        raise BadDump(f"{path}: no dump of this version ({VERSION}); `allot dump` writes one")
    try:
        return msgspec.convert(fields, _Head)
    except msgspec.ValidationError as wrong:
        raise BadDump(f"{path}: {wrong}") from None


class _Unread(msgspec.Struct, frozen=True):
    what: str
    words: str
    hidden: bool
    partly: bool


class _Parameters(msgspec.Struct, frozen=True):
    """A kind of objects with parameters, and how it stands."""

    group: str
    version: str
    kind: str
    what: ResourceId | None = None
    why_not: str = ""


class _Head(msgspec.Struct, frozen=True):
    gates: dict[str, bool] = {}
    unread: tuple[_Unread, ...] = ()
    parameters: tuple[_Parameters, ...] = ()


def _object(fields: Fields, where: str) -> Object:
    """Its metadata is read by everybody, so it is read here first."""
    made = Object(encode(fields))
    try:
        if not made.name:
            raise BadDump(f"{where}: an object without a name")
    except msgspec.ValidationError as wrong:
        raise BadDump(f"{where}: {wrong}") from None
    return made


def _told(one: Unread) -> Fields:
    return {"what": one.what.plural, "words": one.words, "hidden": one.is_hidden, "partly": one.is_partly}


def _api_version(what: ResourceId) -> str:
    return f"{what.group}/{what.version}" if what.group else what.version


# -- what is left out -----------------------------------------------------------------------------

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
    "finalizers",
)
_ANNOTATIONS = (
    "resource.kubernetes.io/",
    "compute.allot.dev/",
    "autoscaling.k8s.io/",
    "kubernetes.io/config.mirror",
)
_CHOICES = ("cluster-autoscaler.kubernetes.io/safe-to-evict",)
"""Annotations that are yes or no, and kept where they are: whatever else somebody wrote there is not."""
_POD_SPEC = (
    "nodeName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulingGates",
    "schedulerName",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "resourceClaims",
    "resources",
    "overhead",
    "restartPolicy",
    "hostNetwork",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
)
_CONTAINER = ("name", "resources", "restartPolicy", "ports", "allocatedComputeResources")
_POD_STATUS = (
    "phase",
    "startTime",
    "nominatedNodeName",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
)
_NODE_STATUS_LESS = (
    "addresses",
    "images",
    "nodeInfo",
    "daemonEndpoints",
    "volumesInUse",
    "volumesAttached",
    "config",
)


def scrubbed(fields: Mapping[str, Any], plural: str) -> Fields:
    """What is kept of an object (DUMP2)."""
    kept = {**fields, "metadata": _metadata(fields.get("metadata") or {})}
    scrub = _SCRUBBED.get(plural)
    found: Fields = _without_opaque(scrub(kept) if scrub is not None else kept)
    return found


def _metadata(metadata: Mapping[str, Any]) -> Fields:
    kept = _only(metadata, _METADATA)
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name.startswith(_ANNOTATIONS) or (name in _CHOICES and value in ("true", "false"))
    }
    return {**kept, "annotations": annotations} if annotations else kept


def _pod(pod: Fields) -> Fields:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    kept = _only(spec, _POD_SPEC)
    for name in ("containers", "initContainers"):
        if spec.get(name):
            kept[name] = [_only(one, _CONTAINER) for one in spec[name]]
    told = _only(status, _POD_STATUS)
    told["conditions"] = [
        _only(one, ("type", "status", "reason", "lastTransitionTime"))
        for one in status.get("conditions") or ()
    ]
    return {**pod, "spec": kept, "status": told}


def _node(node: Fields) -> Fields:
    status = {name: one for name, one in (node.get("status") or {}).items() if name not in _NODE_STATUS_LESS}
    if status.get("conditions"):
        status["conditions"] = [_only(one, ("type", "status")) for one in status["conditions"]]
    return {**node, "status": status}


def _claim(claim: Fields) -> Fields:
    status = dict(claim.get("status") or {})
    if status.get("devices"):  # of what drivers report, whether devices can be used decides
        status["devices"] = [
            {
                **_only(one, ("driver", "pool", "device", "shareID")),
                "conditions": [_only(told, ("type", "status")) for told in one.get("conditions") or ()],
            }
            for one in status["devices"]
        ]
    allocation = status.get("allocation")
    if isinstance(allocation, dict) and "resourceHandle" in allocation:
        status["allocation"] = {**allocation, "resourceHandle": ""}
    return {**claim, "status": status}


_SCRUBBED: Mapping[str, Callable[[Fields], Fields]] = {"pods": _pod, "nodes": _node, "resourceclaims": _claim}


def _only(fields: Mapping[str, Any], names: Iterable[str]) -> Fields:
    return {name: fields[name] for name in names if name in fields}


def _without_opaque(value: Any) -> Any:
    """Parameters for a driver say whose they are, and no more."""
    if isinstance(value, dict):
        return {
            name: {"driver": one.get("driver", ""), "parameters": {}}
            if name == "opaque" and isinstance(one, dict)
            else _without_opaque(one)
            for name, one in value.items()
        }
    return [_without_opaque(one) for one in value] if isinstance(value, list) else value
