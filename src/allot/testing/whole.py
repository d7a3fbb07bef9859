"""A whole cluster beside a test: what `allot up` runs, in a thread of the test's own process.

    with cluster(fleet="edge", agents=1) as running:
        subprocess.run(["kubectl", f"--kubeconfig={running.kubeconfig}", "get", "nodes"])

It serves HTTPS on a free port, on a memory store, and goes on while the test waits for kubectl or for a
driver. With `agents` there are nodes besides the hollow ones whose pods are processes of this machine; they
end with the cluster. Any driver may register with one, in whatever language.
"""

import gc
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from allot import cluster as composition
from allot.api import User, errors
from allot.apiserver import ServingOptions, identities, security
from allot.base import SystemClock, write_file
from allot.client import Client
from allot.cluster import AgentNode, ClusterOptions
from allot.fleet import fleet as fleet_of

from .aside import ENTER_S, Aside

if TYPE_CHECKING:
    from allot import driver

T = TypeVar("T")

_RBAC = "rbac.authorization.k8s.io"
_DRIVER = identities.service_account("kube-system", "allot-testing-driver")
_NODE_NAME = "authentication.kubernetes.io/node-name"
"""What the token of a pod says of its node: so a driver may write the status of devices there."""


class TestCluster:
    """A cluster that is ready: its nodes have registered."""

    __test__ = False  # not a test, whatever its name says to pytest

    def __init__(self, running: composition.Cluster, folder: Path, aside: Aside) -> None:
        self._running, self._folder, self._aside = running, folder, aside
        self.url: str = running.server.url
        self.kubeconfig: Path = running.server.kubeconfig
        """The administrator's."""
        self.agents: tuple[AgentNode, ...] = running.agents
        """Nodes whose pods are processes of this machine, and where drivers register with each."""

    def client(self, user: User = identities.ADMIN) -> Client:
        """A client that acts as `user`, with that user's rights and no more. Its calls belong into `run`."""
        return self._running.client(user)

    def run(self, story: Coroutine[Any, Any, T], within_s: float | None = None) -> T:
        """A coroutine, on the cluster's own event loop; waits for it."""
        return self._aside.run(story, within_s)

    def kubeconfig_of(self, user: str, *groups: str) -> Path:
        """A kubeconfig for a user or a component, as `allot credentials` makes one: `system:node:agent-0`,
        say. What that user may do is up to roles and bindings."""
        data_dir = self._running.options.serving.data_dir
        authority = security.read_authority(data_dir)
        assert authority is not None, "the server has made its keys"
        every = (*identities.well_known_groups(user), *groups)
        pair = authority.client(user, every, SystemClock().now())
        text = security.Kubeconfig(self.url, authority.ca.certificate, user, pair).text()
        path = self._folder / f"{user.replace('/', '_').replace(':', '_')}.kubeconfig"
        write_file(path, text.encode())
        return path

    @contextmanager
    def driver(self, driver: "driver.Driver", node: AgentNode) -> Iterator["driver.Running"]:
        """A driver of the kit at work beside the agent of a node, with the rights that a pod of a driver has
        there, while the block runs; the agent has registered it when that begins. A driver in a process of
        its own, or not of the kit, is started as anywhere: `node` says where."""
        from allot import driver as kit

        places = kit.Places(driver.name, node.root, node.cdi_dir)
        around = kit.Surroundings(self.client(replace(_DRIVER, extra={_NODE_NAME: (node.name,)})))
        self.run(self._let_drivers_work(), ENTER_S)
        with self._aside.held(kit.running(driver, kit.Node(node.name), places, around)) as running:
            self.run(running.registration.registered.wait(), ENTER_S)
            yield running

    async def _let_drivers_work(self) -> None:
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "allot:driver"}
        subjects = [{"apiGroup": _RBAC, "kind": "User", "name": _DRIVER.name}]
        bindings = self.client().resource(_RBAC, "v1", "clusterrolebindings", namespaced=False)
        with suppress(errors.AlreadyExists):
            await bindings.create(
                {"metadata": {"name": "allot-testing-drivers"}, "roleRef": role, "subjects": subjects}
            )


@contextmanager
def cluster(fleet: str = "mixed", nodes: int = 3, agents: int = 0) -> Iterator[TestCluster]:
    """Runs while the block does. `nodes` are hollow, of a fleet of the catalogue; `agents` are real, with
    drivers for the devices of that fleet. Raises UnknownFleet."""
    hollow = fleet_of(fleet, nodes)
    # The folder's name is short: sockets lie below it, and their addresses have 107 bytes.
    with TemporaryDirectory(prefix="allot", ignore_cleanup_errors=True) as folder, Aside() as aside:
        serving = ServingOptions(Path(folder) / "data", "memory", way_to_nodes=composition.way_to_nodes)
        options = ClusterOptions(serving, hollow, agents=agents)
        try:
            with aside.held(composition.cluster(options)) as running:
                yield TestCluster(running, Path(folder), aside)
        finally:
            gc.unfreeze()  # a cluster that is to stay is kept from the collector; this one has gone
