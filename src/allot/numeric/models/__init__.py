"""The models that come with Allot: each is one module, and a package of somebody else's looks the same."""

from .counter import COUNTER
from .partition import PARTITION
from .topology import TOPOLOGY

__all__ = ["COUNTER", "PARTITION", "TOPOLOGY"]
