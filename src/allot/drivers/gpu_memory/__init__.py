"""Parts of GPUs, by memory: a driver of classic claims for nodes with cards that can be cut.

    cards        who has how much of which card: pure
    parameters   what users and administrators may ask for
    controller   the half in the control plane; it follows what nodes publish
    node         the half on a node

A claim asks for an amount of memory, which is rounded up to segments of the card. It may be optional:
then the pod gets it where it is free, and runs without where none is. What is left of a card serves others.
"""

from .cards import Card, Cards
from .controller import NAME, GpuMemory
from .node import node_plugin
from .parameters import size

__all__ = ["NAME", "Card", "Cards", "GpuMemory", "node_plugin", "size"]
