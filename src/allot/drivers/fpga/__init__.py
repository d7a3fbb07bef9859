"""Cards with several functions that are set up together, or not at all: a driver of classic claims.

pipeline     what a claim asks of one card, and what cards have: pure
board        the functions of a card, set up and cleared: files stand in for registers
controller   the half in the control plane: immediate allocation too
node         the half on a node
"""

from .board import Board, CannotSetUp
from .controller import NAME, Fpga
from .node import node_plugin
from .pipeline import Card, Pipeline

__all__ = ["NAME", "Board", "CannotSetUp", "Card", "Fpga", "Pipeline", "node_plugin"]
