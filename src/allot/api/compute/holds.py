"""Which pods hold how many devices of a node's compute resources, as a record that a binding changes too.

Two pods are two objects: comparing one of them cannot stop two schedulers from giving one device to both.
So the server keeps one record a node, and writes it in the transaction that binds a pod (D7). Of two
bindings that want the last device the second meets the record as the first leaves it, and gets a 409.
"""

from collections.abc import Mapping

import msgspec

Record = Mapping[str, Mapping[str, int]]
"""Compute resource -> pod, by uid -> devices."""

_DECODER = msgspec.json.Decoder(dict[str, dict[str, int]])


def read(stored: bytes | None) -> Record:
    return _DECODER.decode(stored) if stored else {}


def write(record: Record) -> bytes | None:
    return msgspec.json.encode(record, order="sorted") if record else None


def hold(record: Record, pod: str, wanted: Mapping[str, int]) -> Record:
    """The record when the pod holds just this."""
    rest = {
        name: kept
        for name, holders in record.items()
        if (kept := {uid: count for uid, count in holders.items() if uid != pod})
    }
    for name, count in wanted.items():
        rest[name] = {**rest.get(name, {}), pod: count}
    return rest


def excess(record: Record, pod: str, wanted: Mapping[str, int], has: Mapping[str, int]) -> str:
    """Why the pod cannot hold this as well, where `has` is how many devices each may give; "" if it can."""
    for name, count in sorted(wanted.items()):
        if name not in has:
            return f"the node has no compute resource {name}"
        others = sum(held for uid, held in record.get(name, {}).items() if uid != pod)
        if others + count > has[name]:
            free = max(0, has[name] - others)
            return f"{count} devices of {name} are wanted and {free} of {has[name]} are free"
    return ""
