"""Server-side apply: a PATCH that says all that its sender cares about.

The arithmetic of owners is in `apply`; here it meets the request: which manager,
whether by force, and what happens when there is nothing to apply to yet.
"""

from datetime import datetime
from typing import Any, cast

from allot.api import Fields, Object, Response, age, errors, field, schema

from ..apply import Author, Conflicts, apply
from ..deciding.context import ServerWriteContext
from ..requests.call import Call
from ..requests.render import in_version
from .body import (
    Body,
    completed,
    converted,
    notes_of,
    refuse_mistyped,
    respell,
    settle_type,
    unknown_notes,
    warned,
)
from .ownership import Ownership
from .writer import Writer


class Applier:
    def __init__(self, writer: Writer, ownership: Ownership) -> None:
        self._writer = writer
        self._ownership = ownership

    async def apply(self, call: Call) -> Response:
        if not call.request.query.get("fieldManager"):
            text = "is required for apply patch"
            wrong = field.required(field.Path("fieldManager"), text)
            raise field.refusal("meta.k8s.io", "PatchOptions", "", [wrong])
        now = self._writer.now

        def change(old: Object, context: ServerWriteContext) -> Body:
            return self._applied(call, old, context.now)

        def create() -> Body:
            return self._applied(call, None, now())

        # A subresource exists only on an object that exists.
        missing = None if call.target.subresource else create
        return (await self._writer.change(call, change, missing)).response(call)

    def _applied(self, call: Call, old: Object | None, now: datetime) -> Body:
        config, notes = _configuration(call)
        live = None if old is None else _live(old, call)
        shape = call.served.version.shape()
        warnings = _warnings(call, config, shape, notes)

        def settle(fields: Fields) -> Fields:
            kept = {name: fields.pop(name) for name in [*fields] if live and _is_of(live, name, fields[name])}
            completed(call, fields, now, None if old is None else old.fields)
            fields.update(kept)  # it got its defaults when it was new
            return fields

        result = apply(
            live,
            config,
            Author(call.manager, call.served.api_version, call.target.subresource),
            age.timestamp(now),
            shape,
            force=call.request.asks_for("force"),
            versions=self._ownership.versions(call.served),
            settle=settle,
        )
        if isinstance(result, Conflicts):
            raise result.error()
        if old is not None and not result.changed:
            return Body(old.fresh(), warnings, patched=True, applied=True)
        body = converted(call, result.fields, [], patched=True)
        body.warnings += warnings
        body.applied = True
        return body


def _live(old: Object, call: Call) -> Fields:
    """In the client's version. Where that is what is stored it is shared: apply changes nothing."""
    return cast(Fields, old.fields) if call.served.is_hub else in_version(old, call.served)


def _is_of(live: Fields, name: str, value: Any) -> bool:
    """Whether an apply has left a part of the object alone."""
    return value is live.get(name) and type(value) is dict


def _configuration(call: Call) -> tuple[Fields, list[str]]:
    decoded = schema.decode_yaml(call.request.body, find_duplicates=call.field_validation != "Ignore")
    config = decoded.fields
    if not config.get("apiVersion") or not config.get("kind"):
        raise errors.BadRequest("an applied configuration must say its apiVersion and kind")
    respell(call, config)
    settle_type(call.served, config)
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise errors.BadRequest("metadata must be an object")
    if metadata.setdefault("name", call.target.name) != call.target.name:
        raise errors.BadRequest(
            f"the name of the object ({metadata['name']}) does not match "
            f"the name on the URL ({call.target.name})"
        )
    return config, notes_of(decoded)


def _warnings(call: Call, config: Fields, shape: schema.Schema, notes: list[str]) -> list[str]:
    """What the configuration says that the kind does not have is taken out of it, in place."""
    problems = schema.check(config, shape)
    if problems.malformed:
        raise errors.BadRequest(f"the applied configuration cannot be read: {problems.malformed}")
    refuse_mistyped(call, problems)
    return warned(call.request, [*notes, *unknown_notes(problems)], lambda why: f"failed to apply: {why}")
