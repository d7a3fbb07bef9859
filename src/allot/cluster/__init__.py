"""The composition root: wires the parts into one process or many.

    whole     API server, controllers, scheduler and hollow nodes in one process
    agents    agents of real nodes, with drivers, in the same process
    nodeway   the API server's way to the agents on the nodes

What no part may know of another is joined here. What a command does not need it does not
import: `allot apiserver` never sees a controller.
"""

from typing import TYPE_CHECKING, Any

from .nodeway import way_to_nodes

if TYPE_CHECKING:
    from .whole import Cluster, ClusterOptions, cluster

__all__ = ["Cluster", "ClusterOptions", "cluster", "way_to_nodes"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from . import whole

    return getattr(whole, name)
