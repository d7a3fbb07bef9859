"""create, update and patch: from a body to a committed object.

The path of every write
    decode, check against the schema, default, convert to the hub form
    fill in or carry over what the server owns
    prepare (the kind's rules), admit, validate
    record who owns which field
    commit, comparing everything that was read; start over if something moved

What is pure of it is done in the seat of the call (`aside`): elsewhere, if the object is large.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import cast

import msgspec
from msgspec.structs import replace

from allot.api import (
    OBJECT_BYTES_MAX,
    Fields,
    Kind,
    Object,
    Response,
    encode,
    equal,
    errors,
    field,
    stored_form,
    unheeded,
)
from allot.store import Committed, Compare, Delete, Put, Refused

from ..admission import Admission, Attempt
from ..deciding.context import ServerWriteContext
from ..deciding.contexts import WriteContexts
from ..deciding.metadata import (
    carry_over_update,
    check_metadata,
    fill_in_create,
    metadata_of,
    settle_namespace,
)
from ..patch import merge_patch
from ..reading.reader import not_found
from ..requests.aside import Seat
from ..requests.call import Call
from ..requests.warnings import warning_headers
from ..security import refusal
from ..storing.repository import Found, Repository, key_of, most_bytes_of, require_storable
from .body import Body, read_body
from .claims_of_pods import ClaimsOfPods, Made
from .guard import Guards
from .ownership import Ownership
from .quotas import Quotas

ATTEMPTS = 16
"""How often a write without a resourceVersion starts over when others are faster."""

Build = Callable[[Object, ServerWriteContext], Body]
"""From the stored object to the one that is wanted, in the client's version."""


class Outcome(msgspec.Struct):
    object: Object
    created: bool
    warnings: list[str]

    def response(self, call: Call) -> Response:
        status = 201 if self.created else 200
        headers = warning_headers(self.warnings) if self.warnings else ()
        return call.renderer.answer(self.object, status, headers)


class Writer:
    def __init__(
        self,
        repository: Repository,
        contexts: WriteContexts,
        admission: Admission,
        ownership: Ownership,
        guard: Guards,
        quotas: Quotas,
        claims_of_pods: ClaimsOfPods | None = None,
    ) -> None:
        self._claims_of_pods = claims_of_pods
        self._repository = repository
        self._contexts = contexts
        self._admission = admission
        self._guard = guard
        self._quotas = quotas
        self._ownership = ownership

    def now(self) -> datetime:
        return self._contexts.clock.now()

    def create(self, call: Call) -> Awaitable[Outcome]:
        return self.create_from(call, lambda: read_body(call, self._contexts.clock.now()))

    async def create_from(self, call: Call, body: Callable[[], Body]) -> Outcome:
        """Create what `body` makes; it is asked anew for each attempt."""
        seat = call.seat
        if not call.is_light():
            await call.settle()
        for attempt in range(ATTEMPTS):
            sent = body() if seat.is_here else await seat.do(body)
            is_generated = not metadata_of(sent.hub).get("name")
            context = self._contexts.open_now(call, sent.warnings) if attempt == 0 else None
            if context is None:
                context = await self._contexts.open(call, sent.warnings, fresh=attempt > 0)
            try:
                this = await self._prepare_create(call, sent, context)
            except errors.ApiError:
                if attempt == 0 and await self._contexts.is_outdated(context):
                    continue
                raise
            beside: Sequence[Made] = ()
            claims = self._claims_of_pods
            if claims is not None and attempt == 0 and call.kind is claims.pods:
                beside = await claims.add_to(call, this, self._prepare_create)
            if self._quotas.concern(this):
                async with self._quotas.charged(this):
                    outcome = await self._store_new(call, this, beside)
            else:
                outcome = await self._store_new(call, this, beside)
            if isinstance(outcome, Outcome):
                return outcome
            key = key_of(call.kind, this.namespace, this.name)
            is_taken = outcome.current.get(key) is not None and not is_generated
            # With something else that moved (a namespace, a quota), the next attempt may be refused for that.
            if is_taken and (len(outcome.current) == 1 or attempt == ATTEMPTS - 1):
                raise already_exists(call.kind, this.name)
        raise errors.TooManyRequests("too many writers are busy with the same objects", retry_after_s=1)

    async def _prepare_create(self, call: Call, sent: Body, context: ServerWriteContext) -> Attempt:
        kind, new, seat = call.kind, sent.hub, call.seat
        fill_in_create(kind, new, call.target.namespace, context.now, self._contexts.ids)
        status = new.get("status") if call.target.beside else None
        if kind.has_status and not kind.status_on_create:
            new.pop("status", None)
        name = new["metadata"].get("name") or ""
        if call.target.verb != "create":
            _require_create_right(call, context)
        self._contexts.require_namespace(call, context, name)
        prepare = kind.rules.prepare_create
        prepare(new, context) if seat.is_here else await seat.do(prepare, new, context)
        this = Attempt(kind, "CREATE", "", call.target.namespace, name, new, None, context)
        await self._admission.admit(this)
        problems = _wrong_with_new(this) if seat.is_here else await seat.do(_wrong_with_new, this)
        if not context.judging.is_complete:
            problems = await _judged(seat, this, _wrong_with_new)
        refuse(kind, name, problems)
        finish = self._finish
        finish(call, sent, this) if seat.is_here else await seat.do(finish, call, sent, this)
        if status is not None:
            await self._settle_first_status(call, sent, this, status)
        return this

    async def _settle_first_status(self, call: Call, sent: Body, this: Attempt, status: Fields) -> None:
        """The new object's status, just as by a second write."""
        created = cast(Fields, this.new)
        new = {**created, "status": merge_patch(created.get("status") or {}, status)}
        context = replace(this.context, verb="patch")  # by which rules ask what the caller may do
        second = replace(
            this, operation="UPDATE", subresource="status", new=new, old=created, context=context
        )
        try:
            await self._settle_change(call, sent, second)
        except errors.ApiError:
            await self._require_free(this)  # the first of two would have been refused
            raise
        this.new, this.between = second.new, created

    async def _require_free(self, this: Attempt) -> None:
        key = key_of(this.kind, this.namespace, this.name)
        if (await self._repository.find_key(key, this.kind)).object is not None:
            raise already_exists(this.kind, this.name)

    async def _store_new(self, call: Call, this: Attempt, beside: Sequence[Made]) -> Outcome | Refused:
        """`beside` are written with it."""
        new, context, seat = cast(Fields, this.new), this.context, call.seat
        key = key_of(call.kind, this.namespace, this.name)
        if call.dry_run:
            await self._require_free(this)
            return Outcome(_rehearsed(key, new), True, context.warnings)
        stored = stored_form(new) if seat.is_here else await seat.do(stored_form, new)
        self._guard.guard(call.kind, None, new, context)
        outcome = await self._commit(context, Compare(key, 0), Put(key, stored))
        if isinstance(outcome, Refused):
            return outcome
        for other in beside:
            self._repository.written(other.key, other.stored, outcome.revision, other.fields)
        written = self._repository.written(key, stored, outcome.revision, new)
        return Outcome(written, True, context.warnings)

    def update(self, call: Call) -> Awaitable[Outcome]:
        return self.change(call, lambda old, context: read_body(call, context.now, old.fields))

    async def change(self, call: Call, build: Build, missing: Callable[[], Body] | None = None) -> Outcome:
        """Replace the stored object by what `build` makes of it.

        `missing` makes a new object where there is none; without it that is a 404.
        """
        kind, target = call.kind, call.target
        for attempt in range(ATTEMPTS):
            found = await self._repository.find(kind, target.namespace, target.name)
            if found.object is None:
                if missing is None:
                    raise not_found(kind, target.name)
                return await self.create_from(call, missing)
            if not call.is_light(len(found.object.stored)) and await call.settle(len(found.object.stored)):
                continue  # that took a while: read anew
            context = self._contexts.open_now(call, []) if attempt == 0 else None
            if context is None:
                context = await self._contexts.open(call, [], fresh=attempt > 0)
            try:
                sent = (
                    build(found.object, context)
                    if call.seat.is_here
                    else await call.seat.do(build, found.object, context)
                )
                context.warnings += sent.warnings
                outcome = await self._replace(call, found, sent, context)
            except errors.ApiError:
                if attempt == 0 and await self._contexts.is_outdated(context):
                    continue
                raise
            if isinstance(outcome, Outcome):
                return outcome
            if sent.conditional and found.key in outcome.current:
                raise conflict(kind, target.name)
            # What moved is something else that was read, e.g. the record of a pool: decide anew.
        raise conflict(kind, target.name)

    async def _replace(
        self, call: Call, found: Found, sent: Body, context: ServerWriteContext
    ) -> Outcome | Refused:
        assert found.object is not None
        current, seat, target = found.object, call.seat, call.target
        dry_run = call.dry_run  # asked first: what cannot be meant is refused although nothing would change
        old = cast(Fields, current.fields)
        this = Attempt(
            call.kind, "UPDATE", target.subresource, target.namespace, target.name, sent.hub, old, context
        )
        await self._prepare_change(call, current, sent, this)
        new = cast(Fields, this.new)
        is_gone = _let_go(call.kind, new)
        if not is_gone and (equal(new, old) if seat.is_here else await seat.do(equal, new, old)):
            return Outcome(current, False, context.warnings)
        if self._quotas.concern(this):
            async with self._quotas.charged(this):
                return await self._store_changed(call, found, this, is_gone=is_gone, dry_run=dry_run)
        return await self._store_changed(call, found, this, is_gone=is_gone, dry_run=dry_run)

    async def _store_changed(
        self, call: Call, found: Found, this: Attempt, *, is_gone: bool, dry_run: bool
    ) -> Outcome | Refused:
        new, context, seat = cast(Fields, this.new), this.context, call.seat
        current = cast(Object, found.object)
        self._guard.guard(call.kind, this.old, None if is_gone else new, context)
        if dry_run:
            await self._repository.rehearse(context.extra_writes)
            return Outcome(_rehearsed(found.key, new, current), False, context.warnings)
        stored = stored_form(new) if seat.is_here else await seat.do(stored_form, new)
        write = Delete(found.key) if is_gone else Put(found.key, stored)
        outcome = await self._commit(context, found.compare, write, most_bytes_of(current))
        if isinstance(outcome, Refused):
            return outcome
        if is_gone:
            return Outcome(Object(stored, outcome.revision), False, context.warnings)
        written = self._repository.written(found.key, stored, outcome.revision, new)
        return Outcome(written, False, context.warnings)

    async def _prepare_change(self, call: Call, current: Object, sent: Body, this: Attempt) -> None:
        kind, target, seat = call.kind, call.target, call.seat
        new, old = cast(Fields, this.new), cast(Fields, this.old)
        metadata = metadata_of(new)
        self._check_preconditions(call, metadata, current, sent)
        settle_namespace(kind, metadata, target.namespace)
        carry_over_update(new, old)
        metadata["resourceVersion"] = current.resource_version
        own = self._own
        if sent.trusted:
            own(call, sent, this) if seat.is_here else await seat.do(own, call, sent, this)
        elif target.beside:
            await self._settle_both(call, sent, this)
        else:
            await self._settle_change(call, sent, this)

    async def _settle_both(self, call: Call, sent: Body, this: Attempt) -> None:
        """The object and its status, just as by two writes, of which the second is about the status."""
        wanted = cast(Fields, this.new)
        first = replace(this, new=dict(wanted))
        await self._settle_change(call, sent, first)
        between = cast(Fields, first.new)
        second = replace(this, subresource="status", new=dict(between), old=between)
        _keep(cast(Fields, second.new), wanted, "status")
        await self._settle_change(call, sent, second)
        this.new, this.between = second.new, between

    async def _settle_change(self, call: Call, sent: Body, this: Attempt) -> None:
        kind, seat, context = call.kind, call.seat, this.context
        finish = self._finish
        _prepare(this) if seat.is_here else await seat.do(_prepare, this)
        await self._admission.admit(this)
        problems = _wrong_with_change(this) if seat.is_here else await seat.do(_wrong_with_change, this)
        if not context.judging.is_complete:
            problems = await _judged(seat, this, _wrong_with_change)
        refuse(kind, this.name, problems)
        finish(call, sent, this) if seat.is_here else await seat.do(finish, call, sent, this)

    def _finish(self, call: Call, sent: Body, this: Attempt) -> None:
        new, old, context = cast(Fields, this.new), this.old, this.context
        context.warnings += call.kind.rules.warnings(new, old)
        if this.subresource != "status":
            context.warnings += unheeded.warnings(call.kind, new, old)
        self._own(call, sent, this)

    def _own(self, call: Call, sent: Body, this: Attempt) -> None:
        if not sent.applied:
            self._ownership.record(call, this.old, cast(Fields, this.new), this.context, this.subresource)

    def _check_preconditions(self, call: Call, metadata: Fields, current: Object, sent: Body) -> None:
        said = metadata.get("resourceVersion") or ""
        if metadata.get("name", call.target.name) != call.target.name and not sent.patched:
            raise errors.BadRequest(
                f"the name of the object ({metadata.get('name')}) does not match "
                f"the name on the URL ({call.target.name})"
            )
        metadata.setdefault("name", call.target.name)
        if said not in ("", "0"):
            if said != current.resource_version:
                raise conflict(call.kind, call.target.name)
        elif not call.served.version.unconditional_update:
            path = field.Path("metadata") / "resourceVersion"
            refuse(call.kind, call.target.name, [field.invalid(path, 0, "must be specified for an update")])
        uid = metadata.get("uid")
        if uid and uid != current.fields["metadata"].get("uid"):
            if sent.patched:  # who says which object is meant does not mean a later one of its name
                path = field.Path("metadata") / "uid"
                refuse(call.kind, call.target.name, [field.invalid(path, uid, "field is immutable")])
            raise errors.Conflict(
                f'Operation cannot be fulfilled on {call.kind.resource} "{call.target.name}": '
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}",
                group=call.kind.group,
                kind=call.kind.plural,
                name=call.target.name,
            )

    async def _commit(
        self,
        context: ServerWriteContext,
        own: Compare,
        write: Put | Delete,
        most_bytes: int = OBJECT_BYTES_MAX,
    ) -> Committed | Refused:
        compares = [own, *(compare for compare in context.compares if compare.key != own.key)]
        changes = [write, *context.extra_writes]
        outcome = await self._repository.commit(compares, changes, most_bytes)
        if isinstance(outcome, Refused):
            await self._guard.catch_up(outcome)
        return outcome


def _rehearsed(key: str, new: Fields, current: Object | None = None) -> Object:
    """What a dry run answers with; too much is too much there as well."""
    encoded = encode(new)
    require_storable(key, len(encoded), most_bytes_of(current) if current else OBJECT_BYTES_MAX)
    return Object(encoded)


Validate = Callable[[Attempt], list[field.FieldError]]
"""What is wrong with an object, as far as that is known at once; see `_judged`."""


def _wrong_with_new(this: Attempt) -> list[field.FieldError]:
    new = cast(Fields, this.new)
    return [*check_metadata(this.kind, new, None), *this.kind.rules.validate_create(new, this.context)]


def _wrong_with_change(this: Attempt) -> list[field.FieldError]:
    new, old, rules = cast(Fields, this.new), cast(Fields, this.old), this.kind.rules
    validate = rules.validate_status if this.subresource == "status" else rules.validate_update
    if this.subresource in rules.parts:
        validate = rules.parts[this.subresource].validate
    return [*check_metadata(this.kind, new, old), *validate(new, old, this.context)]


async def _judged(seat: Seat, this: Attempt, validate: Validate) -> list[field.FieldError]:
    """What is wrong with an object, its expressions included.

    Rules ask about expressions wherever they meet them. Those that take long are noted, and judged
    one at a time before the rules are asked again: so nobody else needs to know where they are.
    """
    judging, problems = this.context.judging, list[field.FieldError]()
    while not judging.is_complete:
        await judging.judge(seat)
        problems = await seat.do(validate, this)
    return problems


def _prepare(this: Attempt) -> None:
    kind, new, old, context = this.kind, cast(Fields, this.new), cast(Fields, this.old), this.context
    if this.subresource == "status":
        _keep_all_but_status(kind, new, old)
        kind.rules.prepare_status(new, old, context)
        return
    if this.subresource in kind.rules.parts:
        kind.rules.parts[this.subresource].prepare(new, old, context)
    else:
        if kind.has_status:
            _keep(new, old, "status")
        kind.rules.prepare_update(new, old, context)
    if kind.counts_generation and _spec_changed(new, old):
        metadata_of(new)["generation"] = old["metadata"].get("generation", 0) + 1


def _require_create_right(call: Call, context: ServerWriteContext) -> None:
    """A right to patch is not a right to create what is not there."""
    action = replace(call.target.action(), verb="create")
    decision = context.authorize(action)
    if not decision.allowed:
        raise refusal(call.user, action, decision)


def _keep(new: Fields, old: Fields, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


_METADATA_WITH_STATUS = {"Pod": ("labels", "annotations"), "Node": ("labels", "annotations")}
"""Upstream stores these from a status write, and kubelets rely on it."""


def _keep_all_but_status(kind: Kind, new: Fields, old: Fields) -> None:
    for name in [name for name in {**new, **old} if name not in ("status", "metadata", "apiVersion", "kind")]:
        _keep(new, old, name)
    metadata, kept = metadata_of(new), dict(old["metadata"])
    for name in (*_METADATA_WITH_STATUS.get(kind.kind, ()), "managedFields"):
        _keep(kept, metadata, name)
    new["metadata"] = kept


def _spec_changed(new: Fields, old: Fields) -> bool:
    ignored = ("metadata", "status", "apiVersion", "kind")
    names = [name for name in {**new, **old} if name not in ignored]
    return not all(equal(new.get(name), old.get(name)) for name in names)


def _let_go(kind: Kind, fields: Fields) -> bool:
    """Whether nothing holds an object back that is being deleted."""
    metadata = fields["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (
        kind.kind == "Namespace" and kind.group == "" and (fields.get("spec") or {}).get("finalizers")
    )


def refuse(kind: Kind, name: str, problems: list[field.FieldError]) -> None:
    if problems:
        raise field.refusal(kind.group, kind.kind, name, problems)


def conflict(kind: Kind, name: str) -> errors.Conflict:
    return errors.Conflict(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        group=kind.group,
        kind=kind.plural,
        name=name,
    )


def already_exists(kind: Kind, name: str) -> errors.AlreadyExists:
    return errors.AlreadyExists(
        f'{kind.resource} "{name}" already exists', group=kind.group, kind=kind.plural, name=name
    )
