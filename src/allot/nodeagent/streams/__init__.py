"""Connections into the pods of a node: exec, attach and port-forward, as the API server passes them on.

    conversation   a WebSocket on a connection: messages in, frames out, pings answered
    remote         exec and attach: standard streams, sizes of the terminal, the exit code
    forwarding     port-forward: the streams of a SPDY connection, each to a port of the pod

What is run, and where a port is, only the runtime knows (`runtimes.contract`).

What they promise
    INTO1  When the client is gone, what was started for it is ended: the command, the connections to ports.
    INTO2  Whoever does not read holds up whoever writes: what is on its way is bounded.
    INTO3  A connection on which nothing is said for IDLE_S is ended. Pings say nothing.
"""

from .forwarding import Connection, forward_ports
from .remote import Wanted, run_remotely

__all__ = ["Connection", "Wanted", "forward_ports", "run_remotely"]
