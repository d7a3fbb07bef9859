"""The objects of a made-up world with numeric claims, as people, drivers and nodes write them."""

from typing import Any

from allot.client import Client

from .things import NUMERIC_TEMPLATES, Fields

GROUP, VERSION = "resource.k8s.io", "v1alpha1"
MODEL = "counter.dra.config.k8s.io/v1beta1"
RBAC = "rbac.authorization.k8s.io"
DRIVER = "frob.example.com"
NODES = ("node-0", "node-1", "node-2")
"""Those that never have an agent: nobody prepares these claims there."""
COUNT = 4
CLASSES = {"frob": False, "frob-shared": True}
"""Whether what is allocated may be shared."""
AMOUNTS = {"frob-1": 1, "frob-2": 2, "frob-3": 3}
"""ConfigMaps with parameters, by what they ask for."""
TEMPLATES = dict(zip(NUMERIC_TEMPLATES, AMOUNTS, strict=False))
"""Of claims for one pod, by their parameters."""
COMMON, INSTANT = "frob-common", "frob-instant"
CLAIMS = {COMMON: "frob-shared", INSTANT: "frob"}
EXPANSION = f"kind: Parameters\napiVersion: {MODEL}\nrequired: {{{{int(object.data.count)}}}}\n"


class NumericThings:
    def __init__(self, client: Client) -> None:
        self.resourceclasses = client.resource(GROUP, VERSION, "resourceclasses", namespaced=False)
        self.resourceclaims = client.resource(GROUP, VERSION, "resourceclaims")
        self.resourceclaimtemplates = client.resource(GROUP, VERSION, "resourceclaimtemplates")
        self.capacities = client.resource(GROUP, VERSION, "noderesourcecapacities", namespaced=False)
        self.configmaps = client.resource("", "v1", "configmaps")
        self.roles = client.resource(RBAC, "v1", "clusterroles", namespaced=False)
        self.bindings = client.resource(RBAC, "v1", "clusterrolebindings", namespaced=False)


def role() -> Fields:
    """The scheduler may read what the classes name."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
    return {"metadata": {"name": DRIVER}, "rules": rules}


def binding() -> Fields:
    user = {"kind": "User", "apiGroup": RBAC, "name": "system:kube-scheduler"}
    of = {"kind": "ClusterRole", "apiGroup": RBAC, "name": DRIVER}
    return {"metadata": {"name": DRIVER}, "subjects": [user], "roleRef": of}


def parameters(name: str) -> Fields:
    return {"metadata": {"name": name}, "data": {"count": str(AMOUNTS[name])}}


def resource_class(name: str) -> Fields:
    entry = {"apiVersion": "v1", "kind": "ConfigMap", "celTemplate": EXPANSION, "shareable": CLASSES[name]}
    return {"metadata": {"name": name}, "driverName": DRIVER, "numericParameters": [entry]}


def claim(name: str) -> Fields:
    mode = "Immediate" if name == INSTANT else "WaitForFirstConsumer"
    return {"metadata": {"name": name}, "spec": {**_asking(CLAIMS[name], "frob-2"), "allocationMode": mode}}


def template(name: str) -> Fields:
    return {"metadata": {"name": name}, "spec": {"spec": _asking("frob", TEMPLATES[name])}}


def _asking(class_name: str, amount: str) -> Fields:
    return {"resourceClassName": class_name, "parametersRef": {"kind": "ConfigMap", "name": amount}}


def capacity(node: str, count: int | None) -> Fields:
    """None: the instance is not there."""
    data = {"kind": "Capacity", "apiVersion": MODEL, "count": count}
    one: dict[str, Any] = {"id": "c0", "apiVersion": MODEL, "kind": "Capacity", "data": data}
    listed = [] if count is None else [one]
    return {"metadata": {"name": f"frob-{node}"}, "nodeName": node, "driverName": DRIVER, "instances": listed}
