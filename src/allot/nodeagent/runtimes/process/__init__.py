"""Containers as processes.

runtime    what the agent asks for
shepherd   has the processes, and outlives the agent: a program of its own
"""

from .runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
