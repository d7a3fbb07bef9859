"""Services and endpoints. Nothing here routes traffic or hands out addresses; components watch them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..labels import validate_labels
from ..podspec.probes import validate_port
from ..reading import default, items, obj, section, text
from ..workloads import AGE, NAME

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_SPEC = Path("spec")


def _default(service: Fields, now: datetime) -> None:
    spec = section(service, "spec")
    default(spec, "sessionAffinity", "None")
    default(spec, "type", "ClusterIP")
    for port in items(spec, "ports"):
        default(port, "protocol", "TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        default(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        default(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def _prepare_create(service: Fields, context: WriteContext) -> None:
    service["status"] = {"loadBalancer": {}}


def _validate(service: Fields) -> list[FieldError]:
    spec = obj(service, "spec")
    found: list[FieldError] = []
    headless = spec.get("clusterIP") == "None"
    if not items(spec, "ports") and not headless and spec.get("type") != "ExternalName":
        found.append(required(_SPEC / "ports"))
    if spec.get("type") not in TYPES:
        found.append(unsupported(_SPEC / "type", spec.get("type"), TYPES))
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        found.append(required(_SPEC / "externalName"))
    if spec.get("sessionAffinity") not in AFFINITIES:
        found.append(unsupported(_SPEC / "sessionAffinity", spec.get("sessionAffinity"), AFFINITIES))
    found += validate_labels(obj(spec, "selector"), _SPEC / "selector")
    return found + _validate_ports(items(spec, "ports"))


def _validate_ports(ports: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    found: list[FieldError] = []
    seen_names: set[str] = set()
    seen_ports = set()
    for index, port in enumerate(ports):
        at, name, number = (_SPEC / "ports")[index], port.get("name") or "", port.get("port") or 0
        if not name and len(ports) > 1:
            found.append(required(at / "name"))
        elif name:
            found += [invalid(at / "name", name, wrong) for wrong in names.label_name(name)]
            if name in seen_names:
                found.append(duplicate(at / "name", name))
            seen_names.add(name)
        found += [invalid(at / "port", number, wrong) for wrong in names.port_number(number)]
        if port.get("protocol") not in PROTOCOLS:
            found.append(unsupported(at / "protocol", port.get("protocol"), PROTOCOLS))
        found += validate_port(port.get("targetPort"), at / "targetPort")
        if (port.get("protocol"), number) in seen_ports:
            found.append(duplicate(at, {"port": number, "protocol": port.get("protocol")}))
        seen_ports.add((port.get("protocol"), number))
    return found


def _cells(service: Fields, age: str) -> Sequence[Any]:
    spec = obj(service, "spec")
    selector = obj(spec, "selector")
    return [
        service["metadata"]["name"],
        spec.get("type", ""),
        spec.get("clusterIP") or "<none>",
        _external(service),
        ",".join(_port(port) for port in items(spec, "ports")) or "<none>",
        age,
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>",
    ]


def _external(service: Fields) -> str:
    spec = obj(service, "spec")
    addresses = list(items(spec, "externalIPs"))
    if spec.get("type") == "ExternalName":
        return text(spec, "externalName")
    if spec.get("type") == "LoadBalancer":
        given = items(service, "status", "loadBalancer", "ingress")
        addresses = [str(entry.get("ip") or entry.get("hostname")) for entry in given] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or "<none>"


def _port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol')}"


SERVICE = Kind(
    group="",
    kind="Service",
    plural="services",
    singular="service",
    short_names=("svc",),
    categories=("all",),
    versions=(Version("v1", "io.k8s.api.core.v1.Service", default=_default),),
    hub="v1",
    has_status=True,
    name_rule="label1035",
    rules=Rules(
        prepare_create=_prepare_create,
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: _validate(new),
    ),
    columns=(
        NAME,
        Column("Type", description="How it can be reached."),
        Column("Cluster-IP", description="Its address inside the cluster."),
        Column("External-IP", description="Its addresses outside the cluster."),
        Column("Port(s)", description="Its ports."),
        AGE,
        Column("Selector", priority=1, description="Which pods stand behind it."),
    ),
    cells=_cells,
    selectable={
        "spec.clusterIP": lambda service: text(service, "spec", "clusterIP"),
        "spec.type": lambda service: text(service, "spec", "type"),
    },
)

ENDPOINTS_SHOWN = 3


def _default_endpoints(endpoints: Fields, now: datetime) -> None:
    for subset in items(endpoints, "subsets"):
        for port in items(subset, "ports"):
            default(port, "protocol", "TCP")


def _addresses(endpoints: Fields) -> str:
    listed = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in items(endpoints, "subsets")
        for port in items(subset, "ports")
        for address in items(subset, "addresses")
    ]
    shown = ",".join(listed[:ENDPOINTS_SHOWN])
    more = len(listed) - ENDPOINTS_SHOWN
    return (f"{shown} + {more} more..." if more > 0 else shown) or "<none>"


ENDPOINTS = Kind(
    group="",
    kind="Endpoints",
    plural="endpoints",
    singular="endpoints",
    short_names=("ep",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.core.v1.Endpoints",
            default=_default_endpoints,
            deprecated="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
    ),
    hub="v1",
    columns=(NAME, Column("Endpoints", description="Where it can be reached."), AGE),
    cells=lambda fields, age: [fields["metadata"]["name"], _addresses(fields), age],
)
