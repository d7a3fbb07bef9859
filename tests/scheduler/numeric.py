"""A cluster with numeric classes: a vendor's kind, its rights, capacity of nodes, claims and pods."""

import json
from typing import Any

from allot.api import Object, errors
from api.numeric.objects import DRIVER, GROUP

from .cluster import NS, Cluster, pod

VENDOR = "dra.e2e.example.com"
API = "resource.k8s.io"
TEMPLATE = f"""kind: Parameters
apiVersion: {GROUP}/v1alpha1
Required: {{{{object.spec.numberOfFrobnicators}}}}
"""
PARAMETERS = {"apiGroup": VENDOR, "kind": "ClaimParameters"}
Fields = dict[str, Any]


def definition(kind: str = "ClaimParameters") -> Fields:
    """The vendor's kind, as KEP-4381 prints it."""
    number = {"type": "integer", "format": "int64", "default": 1, "minimum": 1, "maximum": 16}
    env = {"type": "object", "additionalProperties": {"type": "string"}}
    spec = {"type": "object", "default": {}, "properties": {"numberOfFrobnicators": number, "env": env}}
    schema = {"type": "object", "properties": {"spec": spec}}
    plural = kind.lower()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{VENDOR}"},
        "spec": {
            "group": VENDOR,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": f"{plural}one"},
            "versions": [
                {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


class Numeric:
    def __init__(self, here: Cluster) -> None:
        self.here = here
        client = here.client
        self.classes = client.resource(API, "v1alpha1", "resourceclasses", namespaced=False)
        self.claims = client.resource(API, "v1alpha1", "resourceclaims")
        self.templates = client.resource(API, "v1alpha1", "resourceclaimtemplates")
        self.capacities = client.resource(API, "v1alpha1", "noderesourcecapacities", namespaced=False)
        self.talks = client.resource(API, "v1alpha1", "podschedulings")
        self.parameters = client.resource(VENDOR, "v1alpha1", "claimparameters")

    async def furnish(self, counts: dict[str, int] | None = None) -> "Numeric":
        """Nodes with so many frobnicators, the vendor's kind, its rights, and a class."""
        for node, count in (counts or {"a": 4, "b": 2}).items():
            await self.here.node(node)
            await self.publish(node, count)
        await self.define()
        await self.allow()
        await self.resource_class()
        return self

    async def define(self, kind: str = "ClaimParameters") -> None:
        group = "apiextensions.k8s.io"
        made = self.here.client.resource(group, "v1", "customresourcedefinitions", namespaced=False)
        await made.create(definition(kind))
        listing = self.here.client.resource(VENDOR, "v1alpha1", kind.lower())

        async def served() -> bool:
            try:
                await listing.list(NS)
            except errors.NotFound:
                return False
            return True

        await self.here.until(served, "the vendor's kind served")

    async def allow(
        self,
        *plurals: str,
        verbs: tuple[str, ...] = ("get", "list", "watch"),
        user: str = "system:kube-scheduler",
    ) -> None:
        """What a driver's deployment brings: the scheduler may read the vendor's kind."""
        group, name = "rbac.authorization.k8s.io", f"frob-{'-'.join(plurals)}"
        rules = [{"apiGroups": [VENDOR], "resources": [*plurals] or ["*"], "verbs": [*verbs]}]
        client = self.here.client
        await client.resource(group, "v1", "clusterroles", namespaced=False).create(
            {"metadata": {"name": name}, "rules": rules}
        )
        subject = {"kind": "User", "apiGroup": group, "name": user}
        role = {"kind": "ClusterRole", "apiGroup": group, "name": name}
        await client.resource(group, "v1", "clusterrolebindings", namespaced=False).create(
            {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
        )

    async def allow_core(self) -> None:
        """The scheduler may read ConfigMaps, which a class may name."""
        group, meta = "rbac.authorization.k8s.io", {"metadata": {"name": "frob-configmaps"}}
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        client = self.here.client
        await client.resource(group, "v1", "clusterroles", namespaced=False).create({**meta, "rules": rules})
        user = {"kind": "User", "apiGroup": group, "name": "system:kube-scheduler"}
        role = {"kind": "ClusterRole", "apiGroup": group, "name": "frob-configmaps"}
        await client.resource(group, "v1", "clusterrolebindings", namespaced=False).create(
            {**meta, "subjects": [user], "roleRef": role}
        )

    async def publish(
        self, node: str, *counts: int, driver: str = DRIVER, name: str = "", **labels: str
    ) -> None:
        instances = [instance(f"c{number}", count, **labels) for number, count in enumerate(counts)]
        await self.put_capacity(f"{node}-{driver}", node, instances, driver)

    async def put_capacity(self, name: str, node: str, instances: list[Fields], driver: str = DRIVER) -> None:
        fields = {"metadata": {"name": name}, "nodeName": node, "driverName": driver, "instances": instances}
        try:
            known = await self.capacities.get(name)
        except errors.NotFound:
            await self.capacities.create(fields)
        else:
            await self.capacities.update(known.changed({"instances": instances}))

    async def resource_class(self, name: str = "frob", driver: str = DRIVER, **more: Any) -> None:
        entry = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters", "celTemplate": TEMPLATE}
        listed = more.pop("numericParameters", None) or [{**entry, "shareable": more.pop("shareable", False)}]
        await self.classes.create(
            {"metadata": {"name": name}, "driverName": driver, "numericParameters": listed, **more}
        )

    async def wanting(self, name: str, count: int | None = 1, **spec: Any) -> None:
        """A parameter object."""
        number = {} if count is None else {"numberOfFrobnicators": count}
        await self.parameters.create(
            {
                "apiVersion": f"{VENDOR}/v1alpha1",
                "kind": "ClaimParameters",
                "metadata": {"name": name},
                "spec": {**number, **spec},
            },
            NS,
        )

    async def claim(
        self,
        name: str,
        count: int | None = 1,
        *,
        resource_class: str = "frob",
        made: bool = True,
        **spec: Any,
    ) -> None:
        """A claim with a parameter object of its own name."""
        if made:
            await self.wanting(name, count)
        wanted = {"resourceClassName": resource_class, "parametersRef": {**PARAMETERS, "name": name}, **spec}
        await self.claims.create(
            {"metadata": {"name": name}, "spec": {key: one for key, one in wanted.items() if one}}, NS
        )

    async def template(self, name: str, parameters: str) -> None:
        spec = {"resourceClassName": "frob", "parametersRef": {**PARAMETERS, "name": parameters}}
        await self.templates.create({"metadata": {"name": name}, "spec": {"spec": spec}}, NS)

    async def pod(self, name: str, *claims: str, **more: Any) -> Object:
        entries = [{"name": one, "resourceClaimName": one} for one in claims]
        return await self.here.create("pods", pod(name, resourceClaims=entries, **more))

    async def asks(self, name: str, count: int = 1, **more: Any) -> None:
        """A pod with a claim of its own."""
        await self.claim(name, count)
        await self.pod(name, name, **more)

    async def status(self, name: str) -> Fields:
        found = await self.here.resource("resourceclaims").get(name, NS)
        return found.fields.get("status") or {}

    async def handle(self, name: str) -> Fields:
        found: Fields = json.loads((await self.status(name))["allocation"]["resourceHandle"])
        return found

    async def taken(self, name: str) -> tuple[str, str, int] | None:
        """Node, instance and number of an allocated claim."""
        allocation = (await self.status(name)).get("allocation")
        if allocation is None:
            return None
        (result,) = allocation["devices"]["results"]
        ((_, amount),) = result["consumedCapacity"].items()
        return result["pool"].removeprefix("numeric/"), result["device"], int(amount)

    async def waits(self, name: str, *words: str) -> str:
        """The pod is told that it waits, with these words."""

        async def told() -> str:
            message: str = (await self.here.condition(name))["message"]
            return message if all(word in message for word in words) else ""

        found: str = await self.here.until(told, f"{name} told {words}")
        return found

    async def finish(self, name: str) -> None:
        pods = self.here.resource("pods")
        known = await pods.get(name, NS)
        await pods.update_status(known.changed({"status": {"phase": "Succeeded"}}))

    async def free(self, name: str) -> None:
        """Until the claim holds nothing, or is gone."""

        async def idle() -> bool:
            try:
                return "allocation" not in await self.status(name)
            except errors.NotFound:
                return True

        await self.here.until(idle, f"{name} deallocated")


def instance(id: str, count: Any, version: str = "v1beta1", **labels: str) -> Fields:
    data = {"kind": "Capacity", "apiVersion": f"{GROUP}/{version}", "count": count}
    if labels:
        data["metadata"] = {"labels": labels}
    return {"id": id, "apiVersion": f"{GROUP}/{version}", "kind": "Capacity", "data": data}
