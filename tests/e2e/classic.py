"""A cluster for the stories of KEP-3063: agents with containers that are processes, both halves of drivers
with credentials of their own, and the real kubectl, which applies what lies in `examples/classic`."""

import asyncio
import copy
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allot.api import errors
from allot.base import Metrics
from allot.client import Access, Client, Credential, Fixed, HttpsTransport, kubeconfig
from allot.driver import Node, NodePlugin, Places, Surroundings, serving
from allot.driver import controller as kit
from components import binary
from nodeagent.plugins import until
from nodeagent.world import NS, World, world

from .process import Kubectl

EXAMPLES = Path(__file__).parents[2] / "examples" / "classic"
ROOT = Path(__file__).parents[2]


class Stories:
    def __init__(self, here: World, stack: AsyncExitStack) -> None:
        self.world, self.stack = here, stack
        self._kubectl = Kubectl(binary("kubectl"), here.cluster.server.kubeconfig)
        self.claims = here.client.resource("resource.k8s.io", "v1alpha1", "resourceclaims")
        self.schedulings = here.client.resource("resource.k8s.io", "v1alpha1", "podschedulings")
        self.pods, self.nodes = here.pods, here.nodes
        self.places: dict[str, World] = {}
        self.agents: dict[str, AsyncExitStack] = {}

    # -- who takes part -------------------------------------------------------------------------

    async def node(self, name: str) -> None:
        """An agent, until the story ends or the node is lost."""
        at = self.places[name] = copy.copy(self.world)
        at.root, at.cdi = self.world.folder / name, self.world.folder / f"{name}-cdi"
        self.agents[name] = await self.stack.enter_async_context(AsyncExitStack())
        self.stack.push_async_callback(at.end_containers)
        await self.agents[name].enter_async_context(at.agent(name))

    async def controller(self, controller: kit.Controller, user: str) -> AsyncExitStack:
        own = await self.stack.enter_async_context(AsyncExitStack())
        around = kit.Around(await self.client(user, own), metrics=Metrics())
        work = await own.enter_async_context(kit.controlling(controller, around))
        await work.leading.wait()
        return own

    async def plugin(self, plugin: NodePlugin, user: str, node: str) -> None:
        at, own = self.places[node], self.agents[node]
        places = Places(plugin.name, at.root, at.cdi)
        around = Surroundings(await self.client(user, own))
        work = await own.enter_async_context(serving(plugin, Node(node), places, around))
        await asyncio.wait_for(work.registration.registered.wait(), 30)

    async def client(self, user: str, stack: AsyncExitStack) -> Client:
        client = Client(HttpsTransport(Access(self._server, Fixed(self._credential(user)))))
        stack.push_async_callback(client.close)
        return client

    async def kubeconfig_of(self, user: str) -> str:
        """For a process that acts as the user."""
        path = self.world.folder / f"{user}.kubeconfig"
        made = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "allot.cli", "credentials", user),
            *("--data-dir", str(self.world.folder / "data"), "--out", str(path)),
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await made.wait() == 0
        return str(path)

    @property
    def _server(self) -> Any:
        return kubeconfig.load(self.world.cluster.server.kubeconfig).server

    def _credential(self, user: str) -> Credential:
        pair = self.world.authority.client(user, (), datetime.now(UTC))
        return Credential(certificate=pair.certificate, key=pair.key)

    @asynccontextmanager
    async def program(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A command of `allot`, as a process of its own, once it says that it is ready."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "allot.cli", *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        try:
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 60)

    # -- what people do and see -----------------------------------------------------------------

    async def kubectl(self, *arguments: str, **more: Any) -> str:
        return await asyncio.to_thread(lambda: self._kubectl(*arguments, **more))

    async def apply(self, *names: str) -> None:
        """As a user would. Kinds that were defined a moment ago may take a moment to be served."""
        for name in names:

            async def applied(name: str = name) -> bool:
                try:
                    await self.kubectl("apply", "-f", str(EXAMPLES / name))
                except AssertionError as refused:
                    if "no matches for kind" in str(refused) or "could not find" in str(refused):
                        return False
                    raise
                return True

            await until(applied)

    async def until_phase(self, phase: str, name: str) -> None:
        await self.world.until_phase(phase, name)

    async def log(self, name: str, container: str = "main") -> str:
        return await self.world.log(name, container=container)

    async def first_words(self, name: str, container: str = "main") -> str:
        return await self.world.first_words(name, container=container)

    async def status(self, claim: str) -> dict[str, Any]:
        return dict((await self.claims.get(claim, NS)).fields.get("status") or {})

    async def until_no_claims(self) -> None:
        async def is_so() -> bool:
            return not (await self.claims.list(NS)).objects

        await until(is_so)

    async def until_gone(self, pod: str) -> None:
        async def is_so() -> bool:
            try:
                await self.pods.get(pod, NS)
            except errors.NotFound:
                return True
            return False

        await until(is_so)


def tell(play: Callable[[Stories], Awaitable[None]], within_s: float = 240) -> None:
    async def whole() -> None:
        async with asyncio.timeout(within_s), world({}) as here, AsyncExitStack() as stack:
            (hollow,) = (await here.nodes.list()).objects
            await here.nodes.patch(hollow.name, {"spec": {"unschedulable": True}})
            await play(Stories(here, stack))

    asyncio.run(whole())
