"""What is said on a connection that stays open: exec, attach and port-forward.

    websocket   frames, and the handshake by which an HTTP connection becomes one of them
    channels    standard streams, terminal sizes and the outcome, as numbered channels of such messages
    spdy        streams of one connection side by side, as port-forward wants them inside such messages

All three are pure: bytes in, values out, and back. Nothing here holds more than the head of a frame,
however long the frame says that it is: what has come of it is handed on.
"""

from . import channels, spdy, websocket

__all__ = ["channels", "spdy", "websocket"]
