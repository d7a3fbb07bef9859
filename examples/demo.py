"""The demo: a small fleet, its claims, and every device given back at the end.

An API server runs in this process on real HTTPS, with a data directory that is
gone afterwards. Everybody talks to it under a name of their own: an administrator
makes nodes and classes, each node publishes its devices, a scheduler allocates with
`allot.allocation`, the claim controller takes allocations back.

There is no scheduler process yet; `Scheduler` below is the part of it that matters
here, in a page. Run it with `make demo`. It ends with status 0 only if everything
that it set out to show was seen.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from allot.allocation import (
    Attempt,
    Demand,
    DeviceId,
    Explanation,
    Features,
    Inventory,
    Ledger,
    Node,
    NoFit,
    Plan,
    Refused,
    allocate,
    explain,
    rank,
    read_demand,
    taken_by,
)
from allot.api import Gates, Object, User, errors, resource
from allot.apiserver import Serving, ServingOptions, identities, serve
from allot.base import RandomIds, SystemClock
from allot.client import Access, Client, Credential, Fixed, HttpsTransport, Server

HERE = Path(__file__).parent
NAMESPACE = "default"
CLAIM_CONTROLLER = identities.controller("resource-claim-controller")

Fields = dict[str, Any]


class Story:
    """What was said, and which of it turned out to be true."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool]] = []

    def chapter(self, title: str) -> None:
        print(f"\n{title}")

    def say(self, text: str) -> None:
        print("\n".join(f"    {line}" for line in text.splitlines()))

    def saw(self, what: str, is_so: bool) -> None:
        self.seen.append((what, is_so))
        print(f"  {'ok ' if is_so else 'NOT'} {what}")

    def summary(self) -> int:
        missing = [what for what, is_so in self.seen if not is_so]
        print(f"\n{len(self.seen) - len(missing)} of {len(self.seen)} as promised.")
        for what in missing:
            print(f"  not seen: {what}")
        return 1 if missing else 0


class Cluster:
    """A running server, and clients that act for somebody."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self._clients: list[Client] = []

    def client(self, user: User) -> Client:
        """A connection with a certificate of its own. The same as `allot credentials USER`."""
        authority = self.serving.authority
        groups = [group for group in user.groups if group != identities.AUTHENTICATED]
        pair = authority.client(user.name, groups, SystemClock().now())
        server = Server.at(self.serving.url, authorities=authority.ca.certificate)
        credential = Credential(certificate=pair.certificate, key=pair.key)
        client = Client(HttpsTransport(Access(server, Fixed(credential))), user_agent=user.name)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.serving.close()


# -- the scheduler's part -----------------------------------------------------------------------


class Scheduler:
    """Allocates claims: a look at the API, a decision in memory, a write."""

    def __init__(self, client: Client) -> None:
        self.claims = client.of(resource.RESOURCE_CLAIM)
        self._slices = client.of(resource.RESOURCE_SLICE)
        self._classes = client.of(resource.DEVICE_CLASS)
        self._nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._features = Features.from_gates(Gates())

    async def look(self) -> None:
        """Read the world anew: what is published, what is offered, what is taken."""
        self.inventory, self.ledger = Inventory(self._features), Ledger()
        for one in (await self._slices.list()).objects:
            self.inventory.apply(one.view(resource.ResourceSlice))
        self.classes = {
            one.name: one.view(resource.DeviceClass) for one in (await self._classes.list()).objects
        }
        self.nodes = {one.name: Node.read(one.fields) for one in (await self._nodes.list()).objects}
        self._names: dict[str, str] = {}
        for one in (await self.claims.list()).objects:
            self._names[one.uid] = one.name
            allocation = one.view(resource.ResourceClaim).status.allocation
            if allocation is not None:
                self.ledger.settle(one.uid, taken_by(allocation))

    def devices(self) -> list[DeviceId]:
        """Every device of every node."""
        views = [self.inventory.view(node) for node in self.nodes.values()]
        return [device.id for view in views for device in view.devices]

    def decide(self, claim: Object) -> Plan | None:
        """The best plan on the best node, or None."""
        demand = self._demand(claim)
        for best in rank(self.nodes.values(), self.inventory, self.ledger, demand):
            answer = allocate(self.nodes[best.node], self.inventory, self.ledger, demand)
            return answer if isinstance(answer, Plan) else None
        return None

    def why_not(self, claim: Object) -> list[Explanation]:
        """Why no node has what the claim asks for, node by node."""
        demand, found = self._demand(claim), []
        view = claim.view(resource.ResourceClaim)
        for node in self.nodes.values():
            answer = allocate(node, self.inventory, self.ledger, demand)
            if isinstance(answer, NoFit):
                attempt = Attempt(node, self.inventory, self.ledger, (view,), self.classes)
                found.append(explain(attempt, answer, self._named))
        return found

    async def write(self, claim: Object, plan: Plan) -> Object:
        """Protect the claim, then write its allocation. The server judges both writes."""
        finalizers = [*(claim.metadata.finalizers or []), resource.limits.FINALIZER]
        held_back = claim.changed({"metadata": {"finalizers": list(dict.fromkeys(finalizers))}})
        claim = await self.claims.update(held_back)
        (result,) = plan.results(RandomIds())
        allocation = msgspec.to_builtins(result)
        written = await self.claims.update_status(claim.changed({"status": {"allocation": allocation}}))
        self.ledger.settle(written.uid, taken_by(result))
        return written

    def _demand(self, claim: Object) -> Demand:
        demand = read_demand([claim.view(resource.ResourceClaim)], self.classes, self._features)
        if isinstance(demand, Refused):
            raise ValueError(demand.error)
        return demand

    def _named(self, uid: str) -> str:
        return f"claim {self._names.get(uid, uid)}"


# -- the demo -----------------------------------------------------------------------------------


class Demo:
    def __init__(self, cluster: Cluster, story: Story) -> None:
        self.cluster = cluster
        self.story = story
        self.admin = cluster.client(identities.ADMIN)
        self.claims = self.admin.of(resource.RESOURCE_CLAIM)
        self.scheduler = Scheduler(cluster.client(identities.SCHEDULER))
        self.controller = cluster.client(CLAIM_CONTROLLER).of(resource.RESOURCE_CLAIM)

    async def run(self) -> None:
        await self.publish()
        await self.refuse_nonsense()
        for name in ("training", "notebook"):
            await self.allocate(name)
        await self.race()
        await self.explain("simulation", "node-b", "training", "late")
        await self.explain("whole", "node-c", "counter", "notebook")
        await self.give_back("training", "late", "notebook")
        for name in ("simulation", "whole"):  # what stood in their way is gone
            await self.allocate(name)
        await self.give_back("simulation", "whole")
        await self.nothing_is_left()

    async def publish(self) -> None:
        """Nodes and classes are the administrator's; each node publishes its own devices."""
        self.story.chapter(f"An API server at {self.cluster.serving.url} and a fleet of three nodes")
        nodes = self.admin.resource("", "v1", "nodes", namespaced=False)
        devices = 0
        for one in documents("fleet.yaml"):
            match one["kind"]:
                case "Node":
                    await nodes.create(one)
                case "DeviceClass":
                    await self.admin.of(resource.DEVICE_CLASS).create(one)
                case "ResourceSlice":
                    node = self.cluster.client(identities.node(one["spec"]["nodeName"]))
                    await node.of(resource.RESOURCE_SLICE).create(one)
                    devices += len(one["spec"].get("devices", ()))
        await self.scheduler.look()
        for name in self.scheduler.nodes:
            shown = [device.name for device in self.scheduler.devices() if device.pool == name]
            self.story.say(f"{name}: {', '.join(shown)}")
        known = len(self.scheduler.devices())
        self.story.saw(f"all {devices} published devices are known to the allocator", known == devices)

    async def refuse_nonsense(self) -> None:
        self.story.chapter("Bad input is refused with the field and the reason")
        (mistaken,) = documents("mistaken.yaml")
        refusal = await refused(self.claims.create(mistaken, NAMESPACE), errors.Invalid)
        self.story.say(refusal)
        self.story.saw("a selector that compares an amount with a text is refused", "no matching" in refusal)
        for one in documents("claims.yaml"):
            await self.claims.create(one, NAMESPACE)
        node = self.cluster.client(identities.node("node-b")).of(resource.RESOURCE_CLAIM)
        claim = await self.claims.get("training", NAMESPACE)
        refusal = await refused(node.update_status(claim.changed({"status": {}})), errors.Forbidden)
        self.story.saw("a node may not write the status of a claim", bool(refusal))

    async def allocate(self, name: str) -> None:
        claim = await self.claims.get(name, NAMESPACE)
        self.story.chapter(f"Claim {name}: {wish(claim)}")
        await self.scheduler.look()
        plan = self.scheduler.decide(claim)
        self.story.saw(f"there is a plan for {name}", plan is not None)
        if plan is None:
            return
        await self.scheduler.write(claim, plan)
        stored = await self.claims.get(name, NAMESPACE)
        self.story.say(", ".join(map(str, devices_of(stored))))
        chosen = {pick.device.id for pick in plan.picks}
        self.story.saw("the API server stored what was decided", set(devices_of(stored)) == chosen)
        guarded = resource.limits.FINALIZER in (stored.metadata.finalizers or [])
        self.story.saw("the claim is protected from deletion while it holds devices", guarded)

    async def race(self) -> None:
        """A second scheduler that has not heard of the first one's decisions."""
        self.story.chapter("A second scheduler with an old view of the world wants the same device")
        late = Scheduler(self.cluster.client(identities.SCHEDULER))
        (wanted, *_) = documents("claims.yaml")
        wanted["metadata"]["name"] = "late"
        wanted["spec"]["devices"]["requests"][0]["exactly"]["count"] = 1
        claim = await self.claims.create(wanted, NAMESPACE)
        await late.look()
        late.ledger = Ledger()
        plan = late.decide(claim)
        if plan is None:
            self.story.saw("the late scheduler finds a plan", False)
            return
        refusal = await refused(late.write(claim, plan), errors.Conflict)
        self.story.say(refusal)
        self.story.saw(
            "the second writer of a device gets 409 Conflict", plan.picks[0].device.id.name in refusal
        )
        claim = await self.claims.get("late", NAMESPACE)
        self.story.saw("and its claim holds nothing", devices_of(claim) == [])
        await late.look()
        again = late.decide(claim)
        if again is not None:
            claim = await late.write(claim, again)
            self.story.say(f"after another look: {', '.join(map(str, devices_of(claim)))}")
        self.story.saw("it looks again and gets another device", len(devices_of(claim)) == 1)

    async def explain(self, name: str, node: str, *words: str) -> None:
        """A claim that fits nowhere now; on `node` only because of others, and `words` say so."""
        claim = await self.claims.get(name, NAMESPACE)
        self.story.chapter(f"Claim {name}: {wish(claim)}")
        await self.scheduler.look()
        self.story.saw(f"there is no plan for {name}", self.scheduler.decide(claim) is None)
        explanations = {one.node: one.text() for one in self.scheduler.why_not(claim)}
        self.story.say("\n".join(explanations.values()))
        self.story.saw("every node says why", explanations.keys() == self.scheduler.nodes.keys())
        names_them = all(word in explanations.get(node, "") for word in words)
        self.story.saw(f"{node} says what is in the way: {', '.join(words)}", names_them)

    async def give_back(self, *names: str) -> None:
        """What the claim controller does when the last pod is done: deallocate, then let go."""
        self.story.chapter(f"Giving back: {', '.join(names)}")
        for name in names:
            claim = await self.controller.get(name, NAMESPACE)
            claim = await self.controller.update_status(claim.changed({"status": None}))
            claim = await self.controller.update(claim.changed({"metadata": {"finalizers": None}}))
            self.story.saw(f"{name} holds nothing", devices_of(claim) == [])
            await self.claims.delete(name, NAMESPACE)

    async def nothing_is_left(self) -> None:
        self.story.chapter("At the end")
        await self.scheduler.look()
        devices = self.scheduler.devices()
        free = [one for one in devices if self.scheduler.ledger.is_free(one)]
        self.story.saw("no claim is left", not (await self.claims.list()).objects)
        self.story.saw(f"all {len(devices)} devices are free", len(free) == len(devices) > 0)


# -- small things -------------------------------------------------------------------------------


def documents(file: str) -> list[Fields]:
    return list(yaml.safe_load_all((HERE / file).read_text()))


def wish(claim: Object) -> str:
    (request,) = claim.view(resource.ResourceClaim).spec.devices.requests
    exactly = request.exactly
    if exactly is None:
        return request.name
    selectors = " and ".join(one.cel.expression for one in exactly.selectors if one.cel)
    return f"{exactly.count} of class {exactly.device_class_name} where {selectors}"


def devices_of(claim: Object) -> list[DeviceId]:
    """The devices that the claim holds, as the server stored them."""
    allocation = claim.view(resource.ResourceClaim).status.allocation
    return [] if allocation is None else [taken.device for taken in taken_by(allocation)]


async def refused(attempt: Awaitable[object], how: type[errors.ApiError]) -> str:
    """What the server said no with, or nothing if it did not."""
    try:
        await attempt
    except how as refusal:
        return refusal.message
    return ""


async def main() -> int:
    story = Story()
    with tempfile.TemporaryDirectory(prefix="allot-demo-") as folder:
        cluster = Cluster(await serve(ServingOptions(Path(folder) / "data")))
        try:
            await Demo(cluster, story).run()
        finally:
            await cluster.close()
    return story.summary()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
