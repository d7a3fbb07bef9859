"""What is said to the shepherd and by it, as JSON. Reasons are cut: they may quote what a pod asked for, as
long as that is, and whoever reads has so much room and no more."""

import json
from typing import Any

WHY_MAX = 4096
ROOM = 64 * 1024  # for one word: a character takes 12 bytes at most


def written(**what: Any) -> bytes:
    why = what.get("error")
    if isinstance(why, str) and len(why) > WHY_MAX:
        what["error"] = f"{why[:WHY_MAX]}…"
    return json.dumps(what).encode()
