"""discovery.k8s.io/v1 and node.k8s.io/v1: kinds that components only watch."""

from datetime import datetime

from ..kind import Column, Fields, Kind, Version
from .reading import default, items, text
from .workloads import AGE, NAME

SHOWN = 3


def _default(slice_: Fields, now: datetime) -> None:
    for port in items(slice_, "ports"):
        default(port, "protocol", "TCP")
        if port.get("name") is None:
            port["name"] = ""


def _ports(slice_: Fields) -> str:
    return _shortened([str(port.get("port") or "*") for port in items(slice_, "ports")])


def _addresses(slice_: Fields) -> str:
    return _shortened([a for endpoint in items(slice_, "endpoints") for a in items(endpoint, "addresses")])


def _shortened(parts: list[str]) -> str:
    if not parts:
        return "<unset>"
    more = len(parts) - SHOWN
    shown = ",".join(parts[:SHOWN])
    return f"{shown} + {more} more..." if more > 0 else shown


ENDPOINT_SLICE = Kind(
    group="discovery.k8s.io",
    kind="EndpointSlice",
    plural="endpointslices",
    singular="endpointslice",
    versions=(Version("v1", "io.k8s.api.discovery.v1.EndpointSlice", default=_default),),
    hub="v1",
    counts_generation=True,
    columns=(
        NAME,
        Column("AddressType", description="What its addresses are."),
        Column("Ports", description="Its ports."),
        Column("Endpoints", description="Its addresses."),
        AGE,
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"], text(fields, "addressType"), _ports(fields), _addresses(fields), age,
    ],
)  # fmt: skip

RUNTIME_CLASS = Kind(
    group="node.k8s.io",
    kind="RuntimeClass",
    plural="runtimeclasses",
    singular="runtimeclass",
    versions=(Version("v1", "io.k8s.api.node.v1.RuntimeClass"),),
    hub="v1",
    namespaced=False,
    columns=(
        Column("Name", format="name", description="Name must be unique within a cluster."),
        Column("Handler", description="What runs the containers."),
        AGE,
    ),
    cells=lambda fields, age: [fields["metadata"]["name"], text(fields, "handler"), age],
)

KINDS = (ENDPOINT_SLICE, RUNTIME_CLASS)
