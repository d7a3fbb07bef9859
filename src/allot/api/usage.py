"""What a node's agent says when it is asked what its machine and its containers use.

Rates are over a window that ends at `time`; amounts are as they were then.
"""

import msgspec


class Container(msgspec.Struct, frozen=True):
    pod_uid: str
    name: str
    cpu_nano: int  # billionths of a core
    memory_bytes: int  # of the working set


class Machine(msgspec.Struct, frozen=True):
    time: str
    window_s: float
    cpu_nano: int
    memory_bytes: int
    containers: tuple[Container, ...] = ()


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Machine).decode
