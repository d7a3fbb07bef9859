"""Containers as processes.

runtime    what the agent asks for
asking     the same as the shepherd is asked for it, and what cannot be had
sessions   commands in containers, their streams, ports of pods
usage      what containers use
shepherd   has the processes, and outlives the agent: a program of its own
"""

from .runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
