"""From the bytes of a request to an object in the hub form.

Every body is held to the shape of its kind here, whatever the verb and the
encoding: fields that the kind does not have are taken out, and the client is told
or refused as it asked for (S3).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from allot.api import FieldError, Fields, Path, Request, errors, protobuf, schema
from allot.api import field as fields_of

from ..registry import Served
from ..requests.call import Call, field_validation
from ..requests.negotiate import object_media

Stored = Mapping[str, Any]
"""An object as the store has it, decoded. Never changed."""

_NEVER_THE_SAME = frozenset(("apiVersion", "kind", "metadata"))


class Body(msgspec.Struct):
    """What a client wants to be stored, and how it said so."""

    hub: Fields
    warnings: list[str] = []  # each body its own: structs copy empty defaults
    patched: bool = False
    conditional: bool = False  # the client named the resourceVersion that it has seen
    applied: bool = False  # server-side apply has already settled who owns what
    trusted: bool = False  # made by the server itself, e.g. a binding: the kind's rules do not apply


def read_body(call: Call, now: datetime, stored: Stored | None = None) -> Body:
    """The body of a create, or of an update of what is `stored`."""
    decoded = decode_body(call.request, find_duplicates=call.field_validation != "Ignore")
    respell(call, decoded.fields)
    settle_type(call.served, decoded.fields)
    body = settled(call, decoded.fields, now, notes_of(decoded), stored)
    body.conditional = (body.hub.get("metadata") or {}).get("resourceVersion") not in (None, "", "0")
    return body


def read_other(
    request: Request, shape: schema.Schema, kind: str, meant: Iterable[str]
) -> tuple[Fields, list[str]]:
    """The body of a verb that has a shape of its own, such as a binding, and what to warn about.

    `meant` are the API versions that it may say; it may leave out that and its kind.
    """
    decoded = decode_body(request, find_duplicates=field_validation(request) != "Ignore")
    fields, (first, *more) = decoded.fields, meant
    said = fields.get("apiVersion") or first, fields.get("kind") or kind
    if said[1] != kind or said[0] not in (first, *more):
        raise errors.BadRequest(
            f"the API version in the data ({str(said[0])[:64]}, Kind={str(said[1])[:64]}) does not match "
            f"the expected API version ({first}, Kind={kind})"
        )
    fields["apiVersion"], fields["kind"] = said
    return fields, held_to(request, fields, shape, kind, notes_of(decoded))


def held_to(request: Request, fields: Fields, shape: schema.Schema, kind: str, notes: list[str]) -> list[str]:
    """Take out of `fields`, in place, what the shape does not have; what to warn about."""
    problems = schema.check(fields, shape)
    if problems.malformed:
        raise errors.BadRequest(f"{kind} cannot be read: {problems.malformed}")
    return warned(request, [*notes, *unknown_notes(problems)], lambda why: f"{kind} cannot be read: {why}")


def warned(request: Request, notes: list[str], refused: Callable[[str], str]) -> list[str]:
    """Notes become warnings, or a refusal if the client asked for it."""
    strictness = field_validation(request)  # asked in any case: it may be none
    if notes and strictness == "Strict":
        raise errors.BadRequest(refused(f"strict decoding error: {', '.join(notes)}"))
    return notes if strictness == "Warn" else []


def notes_of(decoded: schema.Decoded) -> list[str]:
    if not decoded.unknown and not decoded.duplicates:
        return []
    unknown = [f'unknown field "{name}"' for name in decoded.unknown]
    return [*unknown, *(f'duplicate field "{path}"' for path in decoded.duplicates)]


def unknown_notes(problems: schema.Problems) -> list[str]:
    return [f'unknown field "{path}"' for path in problems.unknown] if problems.unknown else []


def decode_body(request: Request, *, find_duplicates: bool = False) -> schema.Decoded:
    """The object in a body, in whichever encoding the client chose."""
    match object_media(request):
        case "yaml":
            return schema.decode_yaml(request.body)
        case "protobuf":
            try:
                decoded = protobuf.decode_object(request.body, _message_name)
            except protobuf.Unreadable as wrong:
                raise errors.UnsupportedMedia(f"{wrong}; send JSON") from None
            schema.require_bounded(decoded.fields)
            return decoded
        case _:
            return schema.decode(request.body, find_duplicates=find_duplicates)


def _message_name(api_version: str, kind: str) -> str | None:
    """Types of groups like apps and rbac.authorization.k8s.io are named by the first word."""
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status"):
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def respell(call: Call, fields: Fields) -> None:
    """Older spellings become today's, in place: of a body, and of a patch as well."""
    if call.served.version.respell is not None:
        call.served.version.respell(fields)


def settle_type(served: Served, fields: Fields) -> None:
    """The body may leave out apiVersion and kind, but not say others than the path."""
    said = (fields.setdefault("apiVersion", served.api_version), fields.setdefault("kind", served.kind.kind))
    if said != (served.api_version, served.kind.kind):
        raise errors.BadRequest(
            f"the API version in the data ({said[0]}, Kind={said[1]}) does not match "
            f"the expected API version ({served.api_version}, Kind={served.kind.kind})"
        )


def settled(
    call: Call,
    fields: Fields,
    now: datetime,
    notes: list[str],
    stored: Stored | None,
    *,
    patched: bool = False,
) -> Body:
    """Check, default and convert an object of the client's version, which replaces what is `stored`."""
    return converted(call, fields, [*notes, *completed(call, fields, now, stored)], patched=patched)


def completed(call: Call, fields: Fields, now: datetime, stored: Stored | None) -> list[str]:
    """Check and default, in place. What the kind does not know, as notes for the client."""
    version, shape = call.served.version, call.served.version.shape()
    kept = _kept(call.served, fields, stored) if stored is not None else {}
    problems = schema.check(fields, shape)
    if problems.malformed:
        raise errors.BadRequest(_unreadable(call.served, problems.malformed))
    refuse_mistyped(call, problems)
    again = _said_again(call.served, fields, stored) if stored is not None else {}
    schema.apply_defaults(fields, shape)
    version.default(fields, now)
    fields.update(again)
    fields.update(kept)
    return unknown_notes(problems)


def _kept(served: Served, fields: Fields, stored: Stored) -> Fields:
    """Takes out of `fields` the parts that a patch left as they are stored: they were checked then."""
    if not served.is_hub or not served.version.defaults_by_part:
        return {}
    same = [name for name in ("spec", "status") if name in fields and fields[name] is stored.get(name)]
    return {name: fields.pop(name) for name in same}


def _said_again(served: Served, fields: Fields, stored: Stored) -> Fields:
    """Takes out of `fields` whatever is stored just so: it got its defaults when it was new.

    Most writes are about one part of an object, the spec or the status, and send the other along.
    Only kinds of which very many are written have this, and only those whose parts get their
    defaults each by itself: a secret's data, say, also follows from its stringData.
    """
    if not served.is_hub or not served.version.defaults_by_part:
        return {}
    same = [name for name in fields if name not in _NEVER_THE_SAME and fields[name] == stored.get(name)]
    return {name: fields.pop(name) for name in same}


def converted(call: Call, fields: Fields, notes: list[str], *, patched: bool = False) -> Body:
    """From the client's version to the hub form. Notes become warnings, or a refusal if asked for."""
    version = call.served.version
    warnings = warned(call.request, notes, lambda why: _unreadable(call.served, why))
    hub = version.to_hub(fields)
    hub["apiVersion"] = hub_api_version(call.served)
    hub["kind"] = call.kind.stored_kind
    if version.deprecated:
        warnings = [version.deprecated, *warnings]
    return Body(hub, warnings, patched)


def refuse_mistyped(call: Call, problems: schema.Problems) -> None:
    """Values of the wrong type in a custom resource break a rule of its author, field by field."""
    if problems.mistyped:
        wrong = [
            FieldError(
                fields_of.Wrong.TYPE_INVALID, Path(path), f"{path} in body must be of type {wanted}", found
            )
            for path, wanted, found in problems.mistyped
        ]
        raise fields_of.refusal(call.kind.group, call.kind.kind, call.target.name, wrong)


def hub_api_version(served: Served) -> str:
    group, _ = served.kind.storage
    return f"{group}/{served.kind.hub}" if group else served.kind.hub


def _unreadable(served: Served, why: str) -> str:
    kind = served.kind.kind
    return f'{kind} in version "{served.version.name}" cannot be handled as a {kind}: {why}'
