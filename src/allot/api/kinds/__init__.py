"""The kinds that pods with devices live among, as table entries: one module or package a group.

`ALL` is what a server serves besides the resource, RBAC and custom kinds. Where
an entry has no rules, its schema says all there is to say.
"""

from . import coordination, core
from .event import EVENT, NEW_EVENT

ALL = (*core.KINDS, EVENT, *coordination.KINDS, NEW_EVENT)

__all__ = ["ALL"]
