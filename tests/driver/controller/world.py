"""A driver's controller at work: the real API server in this process, a driver that lists its calls,
and the deeds of everybody else by hand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from allot.api import Object, User, errors
from allot.base import Metrics
from allot.client import Client
from allot.driver import controller as kit
from allot.driver.controller import answers
from allot.testing import TestServer, api_server
from driver.world import until

ME, NS = "gpu.example.com", "default"
FINALIZER = answers.finalizer(ME)
DRIVER = User("gpu-driver", groups=("system:authenticated",))
V1ALPHA1 = "resource.k8s.io/v1alpha1"


class Recording:
    """A driver with so many resources on each node, which writes down what it was asked, and does as told."""

    def __init__(self, per_node: int = 10) -> None:
        self.per_node = per_node
        self.calls: list[tuple[Any, ...]] = []
        self.held: dict[str, str] = {}  # claim uid -> node
        self.asks: list[kit.Ask] = []
        self.fail: list[Exception] = []  # raised by the next calls of allocate
        self.refuse: set[str] = set()  # nodes
        self.shareable = False
        self.pause: Any = None  # awaited within allocate

    def controller(self, **more: Any) -> kit.Controller:
        return kit.Controller(
            ME,
            self.allocate,
            self.deallocate,
            self.unsuitable_nodes,
            self.begin,
            **{"refresh_s": 0.5, **more},
        )

    def begin(self, claims: Any) -> None:
        self.calls.append(("begin", *sorted(claim.name for claim in claims)))
        kept = {claim.uid for claim in claims}
        self.held = {uid: node for uid, node in self.held.items() if uid in kept}

    async def allocate(self, asks: Any, node: str | None) -> Any:
        self.calls.append(("allocate", *(ask.claim.name for ask in asks), node))
        self.asks += asks
        if self.pause is not None:
            await self.pause(asks)
        if self.fail:
            raise self.fail.pop(0)
        if node in self.refuse:
            return {ask.claim.uid: kit.Refused("refused as asked for") for ask in asks}
        self.held |= {ask.claim.uid: node or "anywhere" for ask in asks}
        nodes = kit.on_nodes(node) if node else None
        return {
            ask.claim.uid: kit.Allocation(f"handle-{ask.claim.name}", nodes, self.shareable) for ask in asks
        }

    async def deallocate(self, claim: kit.Claim) -> None:
        self.calls.append(("deallocate", claim.name, claim.handle))
        self.held.pop(claim.uid, None)

    async def unsuitable_nodes(self, asks: Any, nodes: Any) -> Any:
        self.calls.append(("unsuitable", *(ask.claim.name for ask in asks), *nodes))
        used = list(self.held.values())
        full = [node for node in nodes if used.count(node) + len(asks) > self.per_node]
        return {ask.claim.uid: full for ask in asks}

    def made(self, what: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == what]


class World:
    def __init__(self, server: TestServer, client: Client) -> None:
        self.server, self.client = server, client
        self.claims = client.resource("resource.k8s.io", "v1alpha1", "resourceclaims")
        self.classes = client.resource("resource.k8s.io", "v1alpha1", "resourceclasses", namespaced=False)
        self.schedulings = client.resource("resource.k8s.io", "v1alpha1", "podschedulings")
        self.pods = client.resource("", "v1", "pods")
        self.config_maps = client.resource("", "v1", "configmaps")
        self.events = client.resource("", "v1", "events")
        self.metrics = Metrics()

    # -- what users and others do ---------------------------------------------------------------

    async def make_class(self, name: str = "gpu", driver: str = ME, **more: Any) -> Object:
        return await self.classes.create({"metadata": {"name": name}, "driverName": driver, **more})

    async def claim(
        self,
        name: str = "c",
        mode: str = "WaitForFirstConsumer",
        of: str = "gpu",
        pod: Object | None = None,
        **spec: Any,
    ) -> Object:
        metadata: dict[str, Any] = {"name": name, "namespace": NS}
        if pod is not None:
            metadata["ownerReferences"] = [owner(pod)]
        return await self.claims.create(
            {"metadata": metadata, "spec": {"resourceClassName": of, "allocationMode": mode, **spec}}
        )

    async def pod(self, name: str = "p", *claims: str, template: bool = False) -> Object:
        key = "resourceClaimTemplateName" if template else "resourceClaimName"
        return await self.pods.create(
            {
                "metadata": {"name": name, "namespace": NS},
                "spec": {
                    "containers": [{"name": "main", "image": "none"}],
                    "resourceClaims": [{"name": f"entry-{one}", key: one} for one in claims or ("c",)],
                },
            }
        )

    async def scheduling(self, pod: Object, selected: str = "", *potential: str) -> Object:
        spec: dict[str, Any] = {"potentialNodes": [*potential]} if potential else {}
        if selected:
            spec["selectedNode"] = selected
        return await self.schedulings.create(
            {
                "metadata": {"name": pod.name, "namespace": NS, "ownerReferences": [owner(pod)]},
                "spec": spec,
            }
        )

    async def select(self, name: str, node: str, **more: Any) -> None:
        await self.schedulings.patch(name, {"spec": {"selectedNode": node, **more}}, NS)

    async def define(self, definition: dict[str, Any]) -> None:
        """A custom resource, served when this returns."""
        definitions = self.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        await definitions.create(definition)
        spec = definition["spec"]
        objects = self.client.resource(spec["group"], spec["versions"][0]["name"], spec["names"]["plural"])

        async def is_served() -> bool:
            try:
                await objects.list()
            except errors.NotFound:
                return False
            return True

        await until(is_served)

    # -- what is seen ---------------------------------------------------------------------------

    async def status(self, name: str = "c") -> dict[str, Any]:
        return dict((await self.claims.get(name, NS)).fields.get("status") or {})

    async def finalizers(self, name: str = "c") -> list[str]:
        return list((await self.claims.get(name, NS)).metadata.finalizers or ())

    async def until_allocated(self, name: str = "c") -> dict[str, Any]:
        async def is_so() -> Any:
            found = await self.status(name)
            return found if found.get("allocation") is not None else None

        return dict(await until(is_so))

    async def until_free(self, name: str = "c") -> None:
        """Neither allocated nor protected, or not there."""

        async def is_so() -> bool:
            try:
                return not (await self.status(name)).get("allocation") and not await self.finalizers(name)
            except errors.NotFound:
                return True

        await until(is_so)

    async def until_gone(self, name: str = "c") -> None:
        async def is_so() -> bool:
            try:
                await self.claims.get(name, NS)
            except errors.NotFound:
                return True
            return False

        await until(is_so)

    async def answered(self, pod: str = "p") -> dict[str, set[str]]:
        found = (await self.schedulings.get(pod, NS)).fields.get("status") or {}
        return {
            one["name"]: set(one.get("unsuitableNodes") or ()) for one in found.get("resourceClaims") or ()
        }

    async def until_answered(self, wanted: dict[str, set[str]], pod: str = "p") -> None:
        async def is_so() -> bool:
            return await self.answered(pod) == wanted

        try:
            await until(is_so, within_s=20)
        except TimeoutError:
            raise AssertionError(await self.answered(pod)) from None

    async def said(self, reason: str) -> str:
        """The first event with the reason."""

        async def is_so() -> str:
            found = (await self.events.list(NS)).objects
            return next((one.fields["message"] for one in found if one.fields["reason"] == reason), "")

        return str(await until(is_so))

    async def quiet(self, seconds: float = 0.4) -> None:
        await asyncio.sleep(seconds)

    @asynccontextmanager
    async def driver(self, recording: Recording, **more: Any) -> AsyncIterator[kit.Working]:
        """The controller, with the rights that drivers have and no more."""
        lease = more.pop("lease", None)
        client = self.server.client(DRIVER)
        around = kit.Around(client, metrics=more.pop("metrics", self.metrics), lease=lease)
        async with kit.controlling(recording.controller(**more), around) as work:
            if lease is None:
                await work.leading.wait()
            yield work


def owner(pod: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}


async def grant(client: Client) -> None:
    """The driver gets the role that drivers have."""
    rights = client.resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False)
    await rights.create(
        {
            "metadata": {"name": "gpu-driver"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "allot:classic-driver",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": DRIVER.name}],
        }
    )


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with api_server() as server:
        client = server.client()
        await grant(client)
        yield World(server, client)


def tell(story: Any, within_s: float = 120) -> Any:
    async def told() -> Any:
        async with asyncio.timeout(within_s), world() as here:
            return await story(here)

    return asyncio.run(told())
