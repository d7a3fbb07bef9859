"""Frobnicators: the example of KEP-4381, as a driver of numeric parameters without hardware.

driver    what a node has, and what containers see of it

A node has a number of them, as a counter. A claim gets as many as its ClaimParameters say; the variables that
these name reach the containers, after those of the class.
"""

from .driver import NAME, make

__all__ = ["NAME", "make"]
