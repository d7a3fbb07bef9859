"""security.allot.dev/v1alpha1 CredentialRevocation: client certificates that count no more.

One object takes back one certificate, by its serial number, or all of one user, those that are
issued later included. Deleting it lets them in again. A name cannot say which certificate is meant
by another spelling of the serial, so a serial is written in one way: lower case, no leading zeros.
"""

import re
from typing import Any

from ..field import FieldError, Path, forbidden, invalid, required, too_long
from ..kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..schema import from_structural

GROUP = "security.allot.dev"
USER_MAX = 1024
REASON_MAX = 1024
_SPEC = Path("spec")
_SERIAL = re.compile(r"[1-9a-f][0-9a-f]{0,39}", re.ASCII)
_SERIAL_WANTED = "a serial number in hexadecimal: lower case, without leading zeros, at most 40 digits"

_SHAPE = from_structural(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "user": {"type": "string", "description": "Whose certificates count no more."},
                    "serial": {"type": "string", "description": "Which certificate counts no more."},
                    "reason": {"type": "string", "description": "Why, for people."},
                },
            }
        },
    }
)


def _validate(new: Fields) -> list[FieldError]:
    spec: dict[str, Any] = new.get("spec") or {}
    user, serial, reason = (spec.get(name) or "" for name in ("user", "serial", "reason"))
    found: list[FieldError] = []
    if not user and not serial:
        found.append(required(_SPEC, "user or serial is wanted"))
    elif user and serial:
        found.append(forbidden(_SPEC / "serial", "may not be set beside user"))
    elif serial and _SERIAL.fullmatch(serial) is None:
        found.append(invalid(_SPEC / "serial", serial, _SERIAL_WANTED))
    if len(user) > USER_MAX:
        found.append(too_long(_SPEC / "user", USER_MAX))
    if len(reason) > REASON_MAX:
        found.append(too_long(_SPEC / "reason", REASON_MAX))
    return found


def _validate_change(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """Who is let in again is let in by a deletion, which nobody overlooks."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    return _validate(new) + [
        invalid(_SPEC / name, after.get(name), "field is immutable")
        for name in ("user", "serial")
        if (after.get(name) or "") != (before.get(name) or "")
    ]


def _cells(one: Fields, age: str) -> list[Any]:
    spec = one.get("spec") or {}
    return [one["metadata"]["name"], *(spec.get(name) or "" for name in ("user", "serial", "reason")), age]


CREDENTIAL_REVOCATION = Kind(
    group=GROUP,
    kind="CredentialRevocation",
    plural="credentialrevocations",
    singular="credentialrevocation",
    versions=(Version("v1alpha1", "", custom=_SHAPE),),
    hub="v1alpha1",
    namespaced=False,
    rules=Rules(validate_create=lambda new, context: _validate(new), validate_update=_validate_change),
    columns=(
        Column("Name", format="name", description="The name of the revocation."),
        Column("User", description="Whose certificates count no more."),
        Column("Serial", description="Which certificate counts no more."),
        Column("Reason", description="Why."),
        Column("Age", description="How long ago it was revoked."),
    ),
    cells=_cells,
)

KINDS = (CREDENTIAL_REVOCATION,)
