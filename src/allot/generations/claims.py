"""One object of resource.k8s.io, of whichever version, as v1 has it. Pure.

    v1alpha1, v1alpha2   a class and parameters that a driver reads: only with a mapping
    v1alpha3             flat requests, plain capacities; a `controller` has no successor
    v1beta1              flat requests, devices wrapped in `basic`
    v1beta2              is v1

What it promises
    MOVE1  What comes out asks for what went in, or there is `Impossible` with a reason: nothing is left out
           in silence, since a selector that is lost would widen what is asked for.
    MOVE2  What is v1 already stays as it is, but for requests that are written in the flat form.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from allot.api import Fields, Kind, Version, names, resource, schema

from .mapping import Mapping

GROUP: Final = resource.limits.GROUP
V1: Final = f"{GROUP}/v1"
REQUEST: Final = "devices"
"""The name of the one request that a classic claim becomes."""

_KINDS: Final = {kind.kind: kind for kind in resource.KINDS}
_SERVED_ONCE: Final = frozenset({"v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1"})
_CLASSIC: Final = frozenset({"v1alpha1", "v1alpha2"})
_FLAT: Final = frozenset({"v1alpha3", "v1beta1"})
_NEGOTIATION: Final = frozenset({"PodScheduling", "PodSchedulingContext"})
_CLAIMS: Final = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
_SUCCESSORS: Final = {"ResourceClass": "DeviceClass"}
_EVERYWHERE: Final = "suitableNodes is left out: devices are where the driver publishes them"
OF_EVERY_OBJECT: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
"""What a server writes into the metadata of whatever it stores."""
_OF_THE_SERVER: Final = (*OF_EVERY_OBJECT, "finalizers", "ownerReferences")


class Impossible(Exception):
    """Why there is no such object in v1, and what to do instead."""


class Moved(NamedTuple):
    """`document` is None where nothing takes its place."""

    document: Fields | None
    notes: tuple[str, ...] = ()


def moved(document: Fields, mapping: Mapping) -> Moved:
    """`document` may be changed. Raises Impossible."""
    version, kind = str(document.get("apiVersion")).rpartition("/")[2], str(document.get("kind"))
    if version not in _SERVED_ONCE:
        raise Impossible(f"{GROUP} never had a version {version}")
    if kind in _NEGOTIATION:
        return Moved(None, ("left out: the scheduler chooses devices itself, and negotiates with nobody",))
    if kind == "ResourcePoolStatusRequest":
        return Moved(document)  # it has no other version
    notes = list(_cleaned(document))
    if version in _CLASSIC:
        kind = _SUCCESSORS.get(kind, kind)
        notes += _from_classic(kind, document, mapping)
    if kind not in _KINDS:
        raise Impossible(f"{GROUP}/v1 has no kind {kind}")
    if version == "v1alpha3":
        notes += _from_v1alpha3(kind, document)
    if version in _FLAT:
        document = _from_v1beta1(_KINDS[kind], document)
    elif kind in _CLAIMS:
        notes += _lifted(_claim_spec(document))
    _fits(_KINDS[kind], document)
    return Moved({**document, "apiVersion": V1, "kind": kind}, tuple(notes))


# -- claims that a driver allocated


def _from_classic(kind: str, document: Fields, mapping: Mapping) -> Iterator[str]:
    """In place."""
    match kind:
        case "ResourceClaim" | "ResourceClaimTemplate":
            yield from _structured(_claim_spec(document), mapping)
        case "DeviceClass":
            yield from _over_devices(document, mapping)
        case "ResourceSlice":
            raise Impossible("its driver publishes slices itself: install a version of it that knows v1")
        case "ResourceClaimParameters" | "ResourceClassParameters":
            raise Impossible(
                "selectors over named resources have no counterpart: say what they stand for in the mapping, "
                f"parameters.{kind}/NAME, and leave this object out"
            )


def _structured(spec: Fields, mapping: Mapping) -> Iterator[str]:
    """Makes the spec of a classic claim one that asks for devices itself."""
    name = spec.pop("resourceClassName", None)
    if not isinstance(name, str) or not name:
        raise Impossible("it names no resourceClassName")
    request = mapping.classes.get(name)
    if request is None:
        raise Impossible(f"say which DeviceClass took the place of class {name}: --class {name}=NAME")
    asked = dict(request)
    reference = spec.pop("parametersRef", None)
    if reference is not None:
        if not isinstance(reference, dict):
            raise Impossible("spec.parametersRef is no reference, with a kind and a name")
        which = f"{reference.get('kind')}/{reference.get('name')}"
        if which not in mapping.parameters:
            raise Impossible(
                f"only a driver can read its parameters {which}: say what they ask for in the mapping, "
                f"parameters.{which}"
            )
        asked |= mapping.parameters[which]
    mode = spec.pop("allocationMode", None)
    if mode not in (None, "", "Immediate", "WaitForFirstConsumer"):
        raise Impossible(f"spec.allocationMode is {mode!r:.40}, which no version had")
    if mode == "Immediate":
        yield "allocated when its first pod is scheduled, not at once: v1 has no immediate allocation"
    unknown = spec.keys() - {"devices"}
    if unknown:
        raise Impossible(f"spec.{min(unknown)} is no member of a classic claim")
    spec["devices"] = {"requests": [{"name": REQUEST, "exactly": asked}]}


def _over_devices(document: Fields, mapping: Mapping) -> Iterator[str]:
    """Makes a class of a driver's own claims one over that driver's devices."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise Impossible("it has no metadata")
    name, driver = metadata.get("name"), document.pop("driverName", None)
    if not isinstance(driver, str) or not driver:
        raise Impossible("it names no driverName")
    if wrong := names.subdomain(driver):
        raise Impossible(f"driverName {driver!r:.100} is no name of a driver: {wrong[0]}")
    if document.pop("structuredParameters", None):
        yield "structuredParameters is left out: every driver publishes its devices in slices"
    if document.pop("parametersRef", None):
        raise Impossible(
            "only its driver can read its parameters: write a DeviceClass with selectors or configuration "
            f"that stand for them, and name it: --class {name}=NAME"
        )
    if document.pop("suitableNodes", None):
        yield _EVERYWHERE
    metadata["name"] = mapping.classes.get(str(name), {}).get("deviceClassName", name)
    document["spec"] = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}


# -- versions of structured claims


def _from_v1alpha3(kind: str, document: Fields) -> Iterator[str]:
    """In place, as v1beta1 has it."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return
    match kind:
        case "ResourceClaim" | "ResourceClaimTemplate":
            inner = _claim_spec(document)
            if inner.pop("controller", ""):
                raise Impossible(
                    "a controller of its driver was to allocate it (spec.controller), which v1 has not: "
                    "remove that member if the driver publishes its devices in slices by now"
                )
        case "DeviceClass":
            if spec.pop("suitableNodes", None):
                yield _EVERYWHERE
        case "ResourceSlice":
            devices = spec.get("devices")
            for device in devices if isinstance(devices, list) else ():
                basic = device.get("basic") if isinstance(device, dict) else None
                capacity = basic.get("capacity") if isinstance(basic, dict) else None
                if isinstance(capacity, dict):
                    capacity.update({name: _amount(one) for name, one in capacity.items()})
        case "DeviceTaintRule":
            selector = spec.get("deviceSelector")
            lost = {"deviceClassName", "selectors"} & (
                selector.keys() if isinstance(selector, dict) else set()
            )
            if lost:
                raise Impossible(
                    f"spec.deviceSelector.{min(lost)} has no counterpart, and without it the rule would "
                    "taint more devices: name driver, pool or device"
                )


def _amount(capacity: Any) -> Any:
    return capacity if isinstance(capacity, dict) else {"value": capacity}


def _from_v1beta1(kind: Kind, document: Fields) -> Fields:
    version = next((one for one in kind.versions if one.name == "v1beta1"), None)
    if version is None:
        return document
    _shaped(kind, document, version)
    return version.to_hub(document)


def _lifted(spec: Fields) -> Iterator[str]:
    """A request that names v1 and is written as in v1beta1: the commonest mistake of all."""
    devices = spec.get("devices")
    requests = devices.get("requests") if isinstance(devices, dict) else None
    if not isinstance(requests, list):
        return
    for at, request in enumerate(requests):
        if isinstance(request, dict) and "deviceClassName" in request and "exactly" not in request:
            flat: Fields = {"spec": {"devices": {"requests": [request]}}}
            (lifted,) = _from_v1beta1(resource.RESOURCE_CLAIM, flat)["spec"]["devices"]["requests"]
            requests[at] = lifted
            yield f"request {request.get('name')}: what it asks for stands under `exactly` since v1beta2"


# -- both


def _claim_spec(document: Fields) -> Fields:
    spec = document.get("spec")
    if document.get("kind") == "ResourceClaimTemplate":
        spec = spec.get("spec") if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        raise Impossible("it has no spec")
    return spec


def _cleaned(document: Fields) -> Iterator[str]:
    """What the server wrote about an object is not part of a manifest."""
    status = document.pop("status", None)
    if isinstance(status, dict) and status.get("allocation"):
        yield "its allocation is left out: what is created from this is another claim, not the one in use"
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        for name in _OF_THE_SERVER:
            metadata.pop(name, None)


def _fits(kind: Kind, document: Fields) -> None:
    """Raises Impossible."""
    _shaped(kind, document, next(one for one in kind.versions if one.name == "v1"))


def _shaped(kind: Kind, document: Fields, version: Version) -> None:
    """Raises Impossible."""
    problems = schema.check(document, version.shape())
    if problems.malformed:
        raise Impossible(f"it is no {kind.kind}: {problems.malformed}")
    if problems.unknown:
        raise Impossible(f"{version.name} has no field {problems.unknown[0]}")
