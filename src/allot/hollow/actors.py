"""Who acts: every node for itself, and one component for what no node may do alone.

Reading all pods and all claims is beyond a node's rights; the component reads them once for
everybody.
"""

from collections.abc import Callable
from dataclasses import dataclass

from allot.base import Clock
from allot.client import Client
from allot.node import Renewing


@dataclass(frozen=True, slots=True)
class Actors:
    component: Client
    of_node: Callable[[str], Client]
    clock: Clock
    renewing: Renewing
