"""The composition root: wires the parts into one process or many.

What no part may know of another is joined here.
"""

from .nodeway import way_to_nodes

__all__ = ["way_to_nodes"]
