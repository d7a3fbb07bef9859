"""What services and volume claims use."""

from allot.api import Fields, Quantity

from .amounts import Usage
from .names import STORAGE_CLASS

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def service_usage(service: Fields) -> Usage:
    """Ports on every node, and load balancers."""
    spec = service.get("spec") or {}
    kind, ports = spec.get("type"), spec.get("ports") or ()
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    else:
        node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    return {
        "services.nodeports": Quantity.of(node_ports),
        "services.loadbalancers": Quantity.of(int(kind == "LoadBalancer")),
    }


def volume_claim_usage(claim: Fields) -> Usage:
    """Space, also by storage class."""
    spec = claim.get("spec") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    found: Usage = {} if asked is None else {"requests.storage": Quantity.parse(asked)}
    annotations = claim["metadata"].get("annotations") or {}
    name = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    if name:
        found |= {f"{name}{STORAGE_CLASS}{key}": amount for key, amount in found.items()}
        found[f"{name}{STORAGE_CLASS}persistentvolumeclaims"] = Quantity.of(1)
    return found
