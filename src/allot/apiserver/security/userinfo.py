"""A user as the API writes one."""

from collections.abc import Mapping
from typing import Any

from allot.api import User


def user_info(user: User) -> dict[str, Any]:
    """What is empty is left out, as everywhere on the wire."""
    extra = {key: list(values) for key, values in user.extra.items()}
    shown = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in shown.items() if value}


def read_user(spec: Mapping[str, Any]) -> User:
    """From the spec of a SubjectAccessReview."""
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)
