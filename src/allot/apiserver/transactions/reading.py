"""From the body of a transaction to the requests in it."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace

from allot.api import Kind, Request, custom, errors, transaction

from ..registry import Registry
from ..requests.negotiate import APPLY_PATCH, JSON, body_type
from ..requests.target import Target, find_target

KIND = transaction.TRANSACTION
_VERBS = ("create", "update", "patch", "delete")
_SUBRESOURCES = ("", "status", "scale", "binding", "eviction", "finalize")
_FOR_ALL = ("fieldManager", "fieldValidation")
"""Said in the query of the transaction, they hold for every member that does not say its own."""
_QUERY_MAX = 100
_REVISION_DIGITS_MAX = 18
_NULL = b"null"
"""Who writes JSON by hand, or with a library that leaves nothing out, says so that there is no body."""
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _RoughSpec(msgspec.Struct):
    requests: list[msgspec.Raw]


class _Rough(msgspec.Struct):
    """A transaction whose members are not looked at."""

    spec: _RoughSpec


_decoder = msgspec.json.Decoder(transaction.Sent)
_member_decoder = msgspec.json.Decoder(transaction.Member)
_rough_decoder = msgspec.json.Decoder(_Rough)


class Asked(NamedTuple):
    """A member: a request, and what it is about."""

    request: Request
    target: Target
    expected: int | None = None  # it writes nothing: the revision that the object is to have, 0 if none


class _NotStored(errors.BadRequest):
    def after(self, members: Iterable[Asked]) -> str:
        """What is wrong, behind these: a kind that one of them defines is not served yet."""
        if not any(one.target.served and one.target.served.kind is custom.DEFINITION for one in members):
            return self.message
        return f"{self.message}; what a definition defines is served once it is stored: send it before, alone"


class Wanted(NamedTuple):
    members: list[Asked]
    name: str  # what the client calls it, if anything: kubectl says that it was created


def wanted_of(request: Request, registry: Registry) -> Wanted:
    """Raises BadRequest, or what says which member makes no sense."""
    if body_type(request) != JSON:
        raise errors.UnsupportedMedia(f"a transaction is sent as {JSON}")
    try:
        said = _decoder.decode(request.body)
    except _MALFORMED as wrong:
        raise _unreadable(request.body, wrong) from None
    expected = (f"{KIND.group}/{KIND.hub}", KIND.kind)
    if (said.api_version, said.kind) != expected:
        raise errors.BadRequest(
            f"the API version in the data ({said.api_version[:64]}, Kind={said.kind[:64]}) does not match "
            f"the expected API version ({expected[0]}, Kind={expected[1]})"
        )
    members = said.spec.requests
    if not 0 < len(members) <= transaction.MEMBERS_MAX:
        raise errors.BadRequest(
            f"spec.requests: a transaction has 1 to {transaction.MEMBERS_MAX}, not {len(members)}"
        )
    for_all = {name: request.query[name] for name in _FOR_ALL if name in request.query}
    found: list[Asked] = []
    for index, member in enumerate(members):
        try:
            found.append(_asked(request, member, registry, for_all))
        except _NotStored as wrong:
            raise _senseless(index, wrong.after(found)) from None
        except errors.ApiError as wrong:
            raise _senseless(index, wrong) from None
    if all(one.expected is not None for one in found):
        raise errors.BadRequest("spec.requests: a transaction writes something, and these only expect")
    name = (said.metadata or {}).get("name")
    return Wanted(found, name if isinstance(name, str) else "")


def place_of(index: int) -> str:
    """A member as the fields of the transaction name it."""
    return f"spec.requests[{index}]"


def cause_of(index: int, why: str = "") -> errors.Cause:
    """What names, in a refusal, the member that it is about."""
    nothing = "nothing of the transaction was carried out"
    return errors.Cause(transaction.MEMBER, f"{why}; {nothing}" if why else nothing, place_of(index))


def _senseless(index: int, wrong: Exception | str) -> errors.BadRequest:
    return errors.BadRequest(f"{place_of(index)}: {wrong}", causes=[cause_of(index)])


def _unreadable(body: bytes, wrong: Exception) -> errors.BadRequest:
    """Which member it is that cannot be read, if it is one of them."""
    with contextlib.suppress(*_MALFORMED):
        for index, member in enumerate(_rough_decoder.decode(body).spec.requests):
            try:
                _member_decoder.decode(member)
            except _MALFORMED as its_own:
                return _senseless(index, its_own)
    return errors.BadRequest(f"the transaction cannot be read: {wrong}")


def _asked(
    request: Request, member: transaction.Member, registry: Registry, for_all: Mapping[str, str]
) -> Asked:
    path, _, query = member.path.partition("?")
    if not path.startswith("/") or "%" in path or not path.isprintable():
        raise errors.BadRequest("path: must start with / and must not be percent-encoded, but for its query")
    headers = {"content-type": member.content_type, "accept": "application/json"}
    if agent := request.headers.get("user-agent"):
        headers["user-agent"] = agent
    body = bytes(member.body)
    if body == _NULL:
        body = b""
    asked = {**for_all, **_query(query)} if for_all else _query(query)
    made = Request(member.method, path, asked, headers, body, request.source)
    target = find_target(made, registry)
    if target is None or target.served is None or target.served.kind is KIND:
        raise _NotStored(f"path: {path[:200]} is no resource that is stored")
    if member.expect:
        return Asked(made, target, _expected(member, target, target.served.kind))
    if target.verb == "get" and member.method == "GET":
        raise errors.BadRequest("expect: a GET says the resourceVersion that it expects, or absent")
    if target.verb not in _VERBS or target.subresource not in _SUBRESOURCES:
        what = f"{target.verb} of {target.plural}{'/' * bool(target.subresource)}{target.subresource}"
        raise errors.BadRequest(f"{what[:200]} cannot be part of a transaction: it does not write one object")
    if "dryRun" in made.query:
        raise errors.BadRequest(transaction.DRY_RUN_OF_ONE)
    if member.beside:
        _require_with_status(made, target, member.beside)
        target = replace(target, beside=member.beside)
    return Asked(made, target)


def _expected(member: transaction.Member, target: Target, kind: Kind) -> int:
    is_one = target.verb == "get" and bool(target.name) and not target.subresource
    if not is_one or "get" not in kind.verbs or (kind.namespaced and not target.namespace):
        raise errors.BadRequest("expect: said of a GET of one object that is stored")
    if member.beside or bytes(member.body) not in (b"", _NULL) or "?" in member.path:
        raise errors.BadRequest("expect: there is nothing else to say of an object that is only looked at")
    said = member.expect or ""
    if said == transaction.ABSENT:
        return 0
    if not (said.isascii() and said.isdecimal()) or said[0] == "0" or len(said) > _REVISION_DIGITS_MAX:
        raise errors.BadRequest(f"expect: a resourceVersion is wanted, or {transaction.ABSENT}")
    return int(said)


def _require_with_status(request: Request, target: Target, beside: str) -> None:
    is_patch = target.verb == "patch" and body_type(request) != APPLY_PATCH
    is_whole = (is_patch or target.verb == "create") and not target.subresource
    has_status = target.served is not None and target.served.kind.has_status
    if beside != "status" or not is_whole or not has_status:
        raise errors.BadRequest(
            "with: may be status, for a create or a patch (no apply) of an object that has a status"
        )


def _query(text: str) -> Mapping[str, str]:
    if not text:
        return {}
    if "%" not in text and "+" not in text and text.count("&") < _QUERY_MAX:
        return {name: value for name, _, value in (part.partition("=") for part in text.split("&") if part)}
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_MAX))
    except ValueError:
        raise errors.BadRequest("path: its query cannot be read") from None
