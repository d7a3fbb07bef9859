"""A transaction, carried out.

What it promises
    TXN1  Everything that its members write is one transaction of the store: one revision, all or nothing.
    TXN2  A member is decided as if it came alone after those before it. The first that is refused ends the
          transaction with its own answer, which names it; nothing is written.
    TXN3  Every member is counted and audited by itself, once: with its own answer, or as not carried out
          (424), for the sake of another or because the whole was refused. Where nobody can say what was
          stored, all of them are noted so.
    TXN4  What a member expects of an object that nobody writes here is so at the revision of the commit.

Rights are those that the caller has when a member is looked at: what a member before it grants or takes away
counts from the commit on, as it does for requests that come alone and faster than this server learns.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from allot.api import Object, Response, encode, errors, transaction
from allot.base import require
from allot.store import Compare, Refused, StoreError

from ..audit import Answered
from ..registry import Registry
from ..requests.call import Call
from ..storing.pending import (
    FIRST_REVISION,
    FrontStore,
    MemberRefused,
    Moved,
    Pending,
    in_words,
    opened,
    pending,
)
from ..storing.repository import Repository, key_of
from ..storing.trouble import as_api_error
from ..writing.guard import Guards
from ..writing.writer import ATTEMPTS
from .reading import Asked, cause_of, place_of, wanted_of
from .rendering import Lateness

_TURN_S = 0.01
"""For so long a transaction goes on before others have a turn."""
_NOT_CARRIED_OUT = Response(424, b"{}")

_encode = msgspec.json.Encoder().encode
_AS_EXPECTED = _encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})


class CarriedOut(NamedTuple):
    """A member of a transaction, and what it would be answered alone."""

    answered: Answered
    response: Response


def of_member(asked: Asked, call: Call, seconds: float) -> Answered:
    """A member of the transaction that `call` is, for the audit log."""
    whole = call.request.audit_id
    return Answered(asked.request, call.caller, call.acting_as, asked.target, seconds, call.dry_run, whole)


class Carrier(Protocol):
    """What the server does with any request, in two steps."""

    async def carry_out(self, asked: Asked, call: Call, lateness: Lateness) -> CarriedOut:
        """Answer a request for the caller of the transaction. Raises Moved and MemberRefused."""
        ...

    def note(self, member: CarriedOut, response: Response) -> Response:
        """Count and audit it, with that answer."""
        ...


class _Attempt:
    """Members that were carried out so far, one after the other, on a `Pending`."""

    def __init__(self, put: Pending) -> None:
        self.put = put
        self.members: list[CarriedOut] = []
        self.latenesses: list[Lateness] = []


class _Failed(Exception):
    """A member was refused, or, without an index, the transaction as a whole."""

    def __init__(
        self, index: int | None, status: dict[str, Any], code: int, headers: tuple[tuple[str, str], ...]
    ):
        super().__init__(place_of(index) if index is not None else "")
        self.index, self.status, self.code, self.headers = index, status, code, headers


class Transactions:
    def __init__(self, store: FrontStore, repository: Repository, registry: Registry, guards: Guards) -> None:
        self._store = store
        self._repository = repository
        self._registry = registry
        self._guards = guards

    async def create(self, call: Call, carrier: Carrier) -> Response:
        _require_sense(call)
        asked, name = await call.read(lambda: wanted_of(call.request, self._registry))
        call.seat.leave()  # each member takes its own; with this one kept, a large member would wait for ever
        members: list[CarriedOut] = []
        for number in range(ATTEMPTS):
            is_careful = number > 0 or call.dry_run
            with opened(self._store, careful=is_careful) as put:
                attempt = _Attempt(put)
                members = attempt.members
                try:
                    await self._run(asked, call, carrier, attempt)
                    outcome = await self._stored(put, call.dry_run)
                except Moved:
                    continue
                except MemberRefused as refused:
                    failed = _failed(refused.member, refused.error)
                except StoreError as trouble:
                    failed = _failed(None, as_api_error(trouble))
                except _Failed as said:
                    # A member may have been refused for what an earlier one did on trust.
                    if not is_careful and said.index:
                        continue
                    failed = said
                else:
                    if isinstance(outcome, Refused):
                        await self._guards.catch_up(outcome)
                        continue
                    return self._answer(attempt, carrier, name, outcome, call.dry_run)
            return _refused(_every(members, asked, call), carrier, failed)
        return _refused(_every(members, asked, call), carrier, _failed(None, _busy()))

    async def expect(self, asked: Asked) -> Response:
        """TXN4. Raises Conflict."""
        target, expected = asked.target, asked.expected
        assert target.served is not None and expected is not None
        key = key_of(target.served.kind, target.namespace, target.name)
        outcome = await self._store.transact((Compare(key, expected),), ())
        if isinstance(outcome, Refused):
            found = outcome.current.get(key)
            is_so = "is not there" if found is None else f"is at {in_words(found.revision)}"
            wanted = f"at {expected}" if expected else transaction.ABSENT
            raise errors.Conflict(
                f'{target.plural} "{target.name}" was expected to be {wanted}, and {is_so}',
                group=target.group,
                kind=target.plural,
                name=target.name,
            )
        return Response(200, _AS_EXPECTED)

    async def _run(self, asked: Sequence[Asked], call: Call, carrier: Carrier, attempt: _Attempt) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _TURN_S
        for index, one in enumerate(asked):
            if loop.time() > until_s:  # members may each do what a request does without a pause
                await asyncio.sleep(0)
                until_s = loop.time() + _TURN_S
            attempt.put.member = index
            require(pending() is attempt.put, "PEND1: a transaction stays in its task")
            lateness = Lateness()
            member = await carrier.carry_out(one, call, lateness)
            attempt.members.append(member)
            attempt.latenesses.append(lateness)
            response = member.response
            if response.status >= 400:
                raise _Failed(index, msgspec.json.decode(response.body), response.status, response.headers)

    async def _stored(self, put: Pending, dry_run: bool) -> int | Refused:
        """The revision of what was written, or what was in the way."""
        if dry_run:
            await put.rehearse()
            return 0
        outcome = await put.commit()
        return outcome if isinstance(outcome, Refused) else outcome.revision

    def _answer(
        self, attempt: _Attempt, carrier: Carrier, name: str, revision: int, dry_run: bool
    ) -> Response:
        final: dict[int, Object] = {}
        if not dry_run:
            keep = self._repository.recent.written
            for key, object in attempt.put.last():
                final[object.revision] = keep(key, object.stored, revision, dict(object.fields))
        shown = _shown(attempt.put, final, revision)
        results: list[transaction.Result] = []
        warnings: list[str] = []
        for member, lateness in zip(attempt.members, attempt.latenesses, strict=True):
            response = member.response
            if lateness.renderer is not None:
                response = lateness.renderer.rendered(response, shown)
            noted = carrier.note(member, response)
            said = [value for name, value in response.headers if name == "Warning"]
            warnings += said
            results.append(transaction.Result(noted.status, msgspec.Raw(response.body), said))
        status = transaction.Status(str(revision) if revision else "", results)
        headers = tuple(("Warning", text) for text in warnings[:16])
        answer = transaction.Answer(status, metadata={"name": name} if name else {})
        return Response(201, _encode(answer), headers=headers)


def _require_sense(call: Call) -> None:
    """What is said for all members and can mean nothing is no fault of the first. Raises BadRequest."""
    _ = call.dry_run, call.manager, call.field_validation


def _shown(put: Pending, final: dict[int, Object], revision: int) -> Callable[[Object], Object]:
    """How an object that a member answered with is shown: at the revision of the transaction.

    One that a later member changed again is not what is stored at that revision. It is shown at the one
    before, so that no write which relies on it can pass for one that has seen the last state.
    """

    def show(object: Object) -> Object:
        if object.revision < FIRST_REVISION:
            return object
        kept = final.get(object.revision)
        if kept is not None:
            return kept
        if not revision:
            return _rehearsed(object)
        return Object(object.stored, revision if put.is_last(object) else revision - 1)

    return show


def _rehearsed(object: Object) -> Object:
    """Of a dry run: nothing was stored, so there is no revision."""
    fields = object.fresh()
    fields["metadata"].pop("resourceVersion", None)
    return Object(encode(fields))


def _busy() -> errors.TooManyRequests:
    """It names the transaction: none of its members is at fault."""
    return errors.TooManyRequests(
        "too many writers are busy with the same objects",
        group=transaction.GROUP,
        kind=transaction.TRANSACTION.plural,
        retry_after_s=1,
    )


def _failed(index: int | None, error: errors.ApiError) -> _Failed:
    headers = (("Retry-After", str(error.retry_after_s)),) if error.retry_after_s else ()
    return _Failed(index, error.status(), error.code, headers)


def _every(members: Sequence[CarriedOut], asked: Sequence[Asked], call: Call) -> list[CarriedOut]:
    """Those that were carried out, and the others behind them, whose turn never came."""
    behind = (of_member(one, call, 0.0) for one in asked[len(members) :])
    return [*members, *(CarriedOut(one, _NOT_CARRIED_OUT) for one in behind)]


def _refused(members: Sequence[CarriedOut], carrier: Carrier, failed: _Failed) -> Response:
    """What the caller is told. Nothing was written, unless nobody can say (TXN3)."""
    answer = Response(failed.code, encode(_said(failed)), headers=failed.headers)
    in_doubt = failed.index is None and failed.code == errors.Timeout.code
    others = answer if in_doubt else _NOT_CARRIED_OUT
    for index, member in enumerate(members):
        carrier.note(member, answer if index == failed.index else others)
    return answer


def _said(failed: _Failed) -> dict[str, Any]:
    """The answer of the member that was refused, which says which it is."""
    status = dict(failed.status)
    if failed.index is None:
        return status
    status["message"] = f"{place_of(failed.index)}: {status.get('message', '')}"
    details = dict(status.get("details") or {})
    causes = details.get("causes") or []
    # Of what is invalid kubectl shows the causes alone, so the reason must be in one of them.
    first = cause_of(failed.index, "" if causes else str(failed.status.get("message", "")))
    details["causes"] = [first._asdict(), *causes]
    status["details"] = details
    return status
