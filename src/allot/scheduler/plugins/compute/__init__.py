"""Compute resources of nodes, asked for by class or by raw name (KEP-14).

asking    what a pod asks for
choosing  the flow: which compute resources serve wishes that are met at a time
placing   containers in their order, groups whole
plugin    checks of nodes, the choice, and what it costs
telling   how near the best node comes
"""

from .plugin import ComputeResources

__all__ = ["ComputeResources"]
