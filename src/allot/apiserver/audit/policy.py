"""Which requests are recorded.

    refusals   what was refused (401, 403), and whatever is done in somebody else's name
    changes    also every write, and every look at what is secret: secrets, tokens, a pod's inside
    all        also every other read

What would drown the rest is left to `all`, as long as it succeeds: renewed leases, events, and
questions about rights. They change nothing that anybody would look for here.
"""

from enum import Enum

from ..requests.target import Target


class Level(Enum):
    REFUSALS = "refusals"
    CHANGES = "changes"
    ALL = "all"


_READS = frozenset(["get", "list", "watch"])
_RENEWALS = frozenset(["update", "patch"])
_INSIDE = frozenset(["attach", "exec", "log", "portforward", "proxy"])
"""Subresources that show, or reach, what runs in a pod."""
_REFUSED = frozenset([401, 403])


def is_recorded(
    level: Level, target: Target | None, method: str, code: int, *, in_another_name: bool
) -> bool:
    """`target` is None where the path names no resource, or cannot be read."""
    if level is Level.ALL or code in _REFUSED or in_another_name:
        return True
    if level is Level.REFUSALS:
        return False
    if target is None:
        return method not in ("GET", "HEAD")
    if target.verb in _READS:
        return (target.plural == "secrets" and not target.group) or target.subresource in _INSIDE
    return code >= 400 or not _is_noise(target)


def _is_noise(target: Target) -> bool:
    match target.group, target.plural:
        case "coordination.k8s.io", "leases":
            return target.verb in _RENEWALS
        case (("" | "events.k8s.io"), "events"):
            return True
        case "authorization.k8s.io", _:
            return True
        case "authentication.k8s.io", "selfsubjectreviews":
            return True
    return False


def is_refused(code: int) -> bool:
    return code in _REFUSED
