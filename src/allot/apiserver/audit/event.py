"""What a line says, and how long it may be.

Every text that a caller chose is cut, and JSON leaves no line break in a line: whatever a caller
is called or asks for, a line is one line of at most LINE_BYTES_MAX bytes.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from allot.api import SOCKET, User

from ..requests.target import Target

LINE_BYTES_MAX = 64 * 1024
"""JSON may need six bytes for a character: with what is cut below, no line is longer."""
_GROUPS_MAX = 8
_NAME_MAX = 256  # of whatever the API names: 253 is the longest that it accepts
_USER_MAX = 512
_AGENT_MAX = 256
_PATH_MAX = 1024

_encoder = msgspec.json.Encoder()


class Happened(msgspec.Struct, frozen=True):
    """One request and its answer."""

    id: str
    method: str
    path: str
    source: str  # as in `Request`
    agent: str
    caller: User | None  # None: nobody could say who
    acting_as: User | None  # if not for themselves
    target: Target | None
    name: str  # of the object; a create has no name in its path
    dry_run: bool
    transaction: str  # the id of the one that it is a part of
    code: int
    reason: str
    received: datetime
    answered: datetime


def line_of(happened: Happened) -> bytes:
    target = happened.target
    verb = target.verb if target is not None else happened.method.lower()
    is_near = not happened.source or happened.source.startswith(SOCKET)
    notes = {"audit.allot.dev/source": happened.source or "in process"} if is_near else {}
    if happened.dry_run:
        notes["audit.allot.dev/dry-run"] = "true"
    if happened.transaction:
        notes["audit.allot.dev/transaction"] = happened.transaction
    if target is not None and target.beside:
        notes["audit.allot.dev/with"] = target.beside
    event = _Event(
        auditID=happened.id,
        stage="ResponseStarted" if verb == "watch" else "ResponseComplete",
        requestURI=_cut(happened.path, _PATH_MAX),
        verb=_cut(verb, _NAME_MAX),
        user=_user(happened.caller) if happened.caller is not None else _NOBODY,
        impersonatedUser=_user(happened.acting_as) if happened.acting_as is not None else None,
        sourceIPs=[] if is_near else [happened.source],
        userAgent=_cut(happened.agent, _AGENT_MAX),
        objectRef=_reference(target, happened.name) if target is not None else None,
        responseStatus=_Status({}, happened.code, happened.reason),
        requestReceivedTimestamp=_time(happened.received),
        stageTimestamp=_time(happened.answered),
        annotations=notes,
    )
    return _HEAD + _encoded(event)[1:] + b"\n"


def left_out_line(user: str, count: int, since: datetime, until: datetime) -> bytes:
    """Further refusals of one caller, who was refused too often in one second."""
    said = {"user": _cut(user, _USER_MAX), "count": count, "since": _time(since), "until": _time(until)}
    return _encoded({"kind": "RefusalsLeftOut", "apiVersion": _OWN, **said}) + b"\n"


def lost_line(count: int, why: str, until: datetime) -> bytes:
    """Lines that could not be written, up to now."""
    said = {"count": count, "reason": _cut(why, _PATH_MAX), "until": _time(until)}
    return _encoded({"kind": "EventsLost", "apiVersion": _OWN, **said}) + b"\n"


# The members of upstream's Event, under its names. What is empty is left out.

_HEAD = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata",'
_OWN = "audit.allot.dev/v1"


class _User(msgspec.Struct, omit_defaults=True):
    username: str = ""
    uid: str = ""
    groups: list[str] = []


class _Reference(msgspec.Struct, omit_defaults=True):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    apiGroup: str = ""
    apiVersion: str = ""
    subresource: str = ""


class _Status(msgspec.Struct, omit_defaults=True):
    metadata: dict[str, str]
    code: int
    reason: str = ""


class _Event(msgspec.Struct, omit_defaults=True):
    auditID: str
    stage: str
    requestURI: str
    verb: str
    user: _User
    sourceIPs: list[str]
    responseStatus: _Status
    requestReceivedTimestamp: str
    stageTimestamp: str
    impersonatedUser: _User | None = None
    userAgent: str = ""
    objectRef: _Reference | None = None
    annotations: dict[str, str] = {}


_NOBODY = _User()


def _user(user: User) -> _User:
    groups = [_cut(group, _NAME_MAX) for group in user.groups[:_GROUPS_MAX]]
    more = len(user.groups) - len(groups)
    if more:
        groups.append(f"… and {more} more")
    return _User(_cut(user.name, _USER_MAX), _cut(user.uid, _NAME_MAX), groups)


def _reference(target: Target, name: str) -> _Reference:
    return _Reference(
        _cut(target.plural, _NAME_MAX),
        _cut(target.namespace, _NAME_MAX),
        _cut(target.name or name, _NAME_MAX),
        _cut(target.group, _NAME_MAX),
        _cut(target.version, _NAME_MAX),
        _cut(target.subresource, _NAME_MAX),
    )


def _encoded(said: _Event | Mapping[str, Any]) -> bytes:
    try:
        return _encoder.encode(said)
    except UnicodeEncodeError:  # half a character, from somebody who speaks to us in process
        return _encoder.encode(_whole(msgspec.to_builtins(said)))


def _whole(said: Any) -> Any:
    match said:
        case str():
            return said.encode("utf-8", "replace").decode()
        case list():
            return [_whole(one) for one in said]
        case dict():
            return {key: _whole(value) for key, value in said.items()}
    return said


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _time(moment: datetime) -> str:
    """UTC, to the microsecond."""
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"
