"""Where the agents of a cluster are: one folder each, below its data directory.

DATA-DIR/agents/0, 1, ...      what each knows, and where further drivers may register
DATA-DIR/agents/here           the same, of the node that stands for this machine
DATA-DIR/agents/containers     what runs on them, where that is processes; containerd keeps its own
"""

import re
import socket
from pathlib import Path
from typing import NamedTuple

from allot.api import names


class AgentNode(NamedTuple):
    """A node whose pods are processes or containers of this machine, and where a driver finds its agent."""

    name: str
    root: Path  # drivers register in ROOT/plugins_registry
    cdi_dir: Path


class Containers(NamedTuple):
    """What containers of agents are."""

    runtime: str = "process"
    cdi_dir: Path | None = None  # that the runtime reads; None: each agent has its own


PROCESSES = Containers()


def agent_node(data_dir: Path, number: int, containers: Containers = PROCESSES) -> AgentNode:
    root = agents_root(data_dir) / str(number)
    return AgentNode(f"agent-{number}", root, containers.cdi_dir or root / "cdi")


def agent_here(data_dir: Path, name: str, containers: Containers = PROCESSES) -> AgentNode:
    root = agents_root(data_dir) / "here"
    return AgentNode(name, root, containers.cdi_dir or root / "cdi")


def own_name() -> str:
    """What this machine is called, as the name of a Node."""
    name = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower()).strip("-.")
    return "here" if not name or names.subdomain(name) else name


def agents_root(data_dir: Path) -> Path:
    return data_dir.absolute() / "agents"
