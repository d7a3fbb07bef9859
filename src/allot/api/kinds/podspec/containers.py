"""Containers of every sort: names, images, ports, environment, mounts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, forbidden, invalid, not_found, required, unsupported
from ..reading import items, obj
from .environment import validate_env, validate_env_from
from .probes import validate_lifecycle, validate_probe
from .resources import validate_requirements, validate_resize_policy
from .security import validate_container_security

PROTOCOLS = ("TCP", "UDP", "SCTP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
PROPAGATIONS = ("None", "HostToContainer", "Bidirectional")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"


@dataclass(frozen=True, slots=True)
class RestOfPod:
    """What the rest of the pod means for a container."""

    volumes: Mapping[str, Mapping[str, Any]]
    host_network: bool = False

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "RestOfPod":
        volumes = {volume.get("name") or "": volume for volume in items(spec, "volumes")}
        return cls(volumes, bool(spec.get("hostNetwork")))


def validate_all(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Containers and init containers of a spec. Names are unique among all of them."""
    around = RestOfPod.of(spec)
    found: list[FieldError] = []
    if not items(spec, "containers"):
        found.append(required(path / "containers"))
    seen: set[str] = set()
    for sort in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, sort)):
            at = (path / sort)[index]
            found += _validate_name(container, at, seen)
            found += validate_container(container, at, around)
            if sort == "initContainers":
                found += _validate_init(container, at)
        found += _validate_host_ports(items(spec, sort), path / sort) if sort == "containers" else []
    return found


def _validate_name(container: Mapping[str, Any], path: Path, seen: set[str]) -> list[FieldError]:
    name = container.get("name") or ""
    if not name:
        return [required(path / "name")]
    if name in seen:
        return [duplicate(path / "name", name)]
    seen.add(name)
    return [invalid(path / "name", name, wrong) for wrong in names.label_name(name)]


def validate_container(container: Mapping[str, Any], path: Path, around: RestOfPod) -> list[FieldError]:
    found = validate_image(container.get("image") or "", path / "image")
    for name, known in (
        ("imagePullPolicy", PULL_POLICIES),
        ("terminationMessagePolicy", MESSAGE_POLICIES),
    ):
        value = container.get(name) or ""
        if value not in known:
            found.append(unsupported(path / name, value, known) if value else required(path / name))
    for name, check in _CHECKS.items():
        if container.get(name) is not None:
            found += check(container[name], path / name, around)
    if container.get("volumeMounts") or container.get("volumeDevices"):
        found += _validate_mounts(container, path, around)
    return found


def validate_image(image: str, path: Path) -> list[FieldError]:
    if not image:
        return [required(path)]
    if image.strip() != image:
        return [invalid(path, image, "must not have leading or trailing whitespace")]
    return []


def _validate_init(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    if container.get("restartPolicy") == "Always":
        return []
    return [
        forbidden(path / name, _SIDECARS_ONLY)
        for name in ("lifecycle", *_PROBES)
        if container.get(name) is not None
    ]


def _validate_ports(ports: Sequence[Mapping[str, Any]], path: Path, around: RestOfPod) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name, number = path[index], port.get("name") or "", port.get("containerPort") or 0
        if name:
            found += [invalid(at / "name", name, wrong) for wrong in names.port_name(name)]
            if name in seen:
                found.append(duplicate(at / "name", name))
            seen.add(name)
        if not number:
            found.append(required(at / "containerPort"))
        else:
            found += [invalid(at / "containerPort", number, wrong) for wrong in names.port_number(number)]
        host_port = port.get("hostPort") or 0
        if host_port:
            found += [invalid(at / "hostPort", host_port, wrong) for wrong in names.port_number(host_port)]
            if around.host_network and host_port != number:
                text = "must match `containerPort` when `hostNetwork` is true"
                found.append(invalid(at / "hostPort", host_port, text))
        if not port.get("protocol"):
            found.append(required(at / "protocol"))
        elif port["protocol"] not in PROTOCOLS:
            found.append(unsupported(at / "protocol", port["protocol"], PROTOCOLS))
    return found


def _validate_host_ports(containers: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """A port of the machine can be given away once."""
    found: list[FieldError] = []
    seen = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(items(container, "ports")):
            number = port.get("hostPort") or 0
            key = (port.get("protocol"), port.get("hostIP") or "", number)
            if number and key in seen:
                shown = f"{key[0]}/{key[1]}/{number}"
                found.append(duplicate((path[index] / "ports")[at] / "hostPort", shown))
            seen.add(key)
    return found


def _validate_mounts(container: Mapping[str, Any], path: Path, around: RestOfPod) -> list[FieldError]:
    found: list[FieldError] = []
    places: set[str] = set()
    for index, mount in enumerate(items(container, "volumeMounts")):
        at = (path / "volumeMounts")[index]
        found += _validate_volume_name(mount, at, around)
        place = mount.get("mountPath") or ""
        if not place:
            found.append(required(at / "mountPath"))
        elif place in places:
            found.append(invalid(at / "mountPath", place, "must be unique"))
        places.add(place)
        found += _validate_sub_path(mount, at)
        propagation = mount.get("mountPropagation")
        if propagation is not None and propagation not in PROPAGATIONS:
            found.append(unsupported(at / "mountPropagation", propagation, PROPAGATIONS))
        elif propagation == "Bidirectional" and not obj(container, "securityContext").get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            found.append(forbidden(at / "mountPropagation", text))
    for index, device in enumerate(items(container, "volumeDevices")):
        at = (path / "volumeDevices")[index]
        found += _validate_volume_name(device, at, around)
        if not device.get("devicePath"):
            found.append(required(at / "devicePath"))
        elif device["devicePath"] in places:
            found.append(
                invalid(at / "devicePath", device["devicePath"], "must not already exist in volumeMounts")
            )
    return found


def _validate_volume_name(use: Mapping[str, Any], path: Path, around: RestOfPod) -> list[FieldError]:
    name = use.get("name") or ""
    if not name:
        return [required(path / "name")]
    return [] if name in around.volumes else [not_found(path / "name", name)]


def _validate_sub_path(mount: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("subPath", "subPathExpr"):
        value = mount.get(name) or ""
        if value.startswith("/"):
            found.append(invalid(path / name, value, "must be a relative path"))
        elif ".." in value.split("/"):
            found.append(invalid(path / name, value, "must not contain '..'"))
    if mount.get("subPath") and mount.get("subPathExpr"):
        found.append(
            invalid(
                path / "subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )
        )
    return found


_CHECKS: Mapping[str, Callable[[Any, Path, RestOfPod], list[FieldError]]] = {
    "restartPolicy": lambda value, path, around: (
        [] if value in RESTART_POLICIES else [unsupported(path, value, RESTART_POLICIES)]
    ),
    "livenessProbe": lambda probe, path, around: validate_probe(probe, path, liveness=True),
    "readinessProbe": lambda probe, path, around: validate_probe(probe, path),
    "startupProbe": lambda probe, path, around: validate_probe(probe, path, liveness=True),
    "lifecycle": lambda lifecycle, path, around: validate_lifecycle(lifecycle, path),
    "ports": _validate_ports,
    "env": lambda variables, path, around: validate_env(variables, path),
    "envFrom": lambda sources, path, around: validate_env_from(sources, path),
    "resources": lambda resources, path, around: validate_requirements(resources, path),
    "resizePolicy": lambda policies, path, around: validate_resize_policy(policies, path),
    "securityContext": lambda context, path, around: validate_container_security(context, path),
}
"""What is checked where it is said. Most containers say little, and pay for no more."""
