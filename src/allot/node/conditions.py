"""What a node says of itself while it is there. Pure."""

from collections.abc import Mapping
from typing import Any

from allot.api import Object, core

Fields = dict[str, Any]
Conditions = Mapping[str, tuple[str, str]]
"""By type, the status and the reason."""


def awake(node: Mapping[str, Any], now: str, wanted: Conditions, message: str) -> list[Fields]:
    """The conditions of a node whose agent is there. What others say about it stays."""
    known = {one.get("type", ""): one for one in (node.get("status") or {}).get("conditions") or ()}
    for type, (status, reason) in wanted.items():
        if known.get(type, {}).get("status") != status:
            known[type] = {
                "type": type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
    return list(known.values())


def is_awake(node: Object, wanted: Conditions) -> bool:
    said = {one.type: one.status for one in node.view(core.Node).status.conditions}
    return all(said.get(type) == status for type, (status, _) in wanted.items())
