"""The composition root: wires the parts into one process or two.

    whole      API server, controllers, scheduler and hollow nodes
    near       the API server as the others see it, in their process
    apart      the same, in a process of its own; spawning begins one, control is what both say
    agents     agents of real nodes, with drivers, in the process of the controllers; places: where they are
    nodeway    the API server's way to the agents on the nodes
    tunnel     connections through the server into pods

What no part may know of another is joined here. What a command does not need it does not
import: `allot apiserver` never sees a controller.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents import Machine, this_machine
    from .apart import CannotServe
    from .nodeway import way_to_nodes
    from .places import AgentNode, Containers, own_name
    from .spawning import ServerProcess
    from .whole import Cluster, ClusterOptions, ServerEnded, cluster

__all__ = [
    "AgentNode",
    "CannotServe",
    "Cluster",
    "ClusterOptions",
    "Containers",
    "Machine",
    "ServerEnded",
    "ServerProcess",
    "cluster",
    "own_name",
    "this_machine",
    "way_to_nodes",
]

_BEHIND = {
    "AgentNode": "places",
    "CannotServe": "apart",
    "Cluster": "whole",
    "ClusterOptions": "whole",
    "Containers": "places",
    "Machine": "agents",
    "ServerEnded": "whole",
    "ServerProcess": "spawning",
    "cluster": "whole",
    "own_name": "places",
    "this_machine": "agents",
    "way_to_nodes": "nodeway",
}


def __getattr__(name: str) -> Any:
    if name not in _BEHIND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_BEHIND[name]}"), name)
