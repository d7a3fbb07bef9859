"""Containers of a CRI runtime: containerd 1.7 or newer.

runtime     what the agent asks for
service     the runtime at its socket: whether it is fit, and what if it is away
asking      pods and containers in the CRI's words
seen        what the runtime says of them
images      there by pull policy, or a reason why not
following   which containers have ended
streaming   exec, attach and port-forward, over SPDY
hostfiles   files of the machine: what containers print, and what is mounted
"""

from .runtime import CriRuntime
from .service import UnfitRuntime

__all__ = ["CriRuntime", "UnfitRuntime"]
