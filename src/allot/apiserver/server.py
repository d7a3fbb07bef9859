"""handle(request, user): the whole server, without a wire.

Both transports end here, so that what is checked for one is checked for the
other: the path is understood, the caller authorized, the verb carried out, and
whatever goes wrong becomes a Status object (S4).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from allot.api import Action, Kind, Request, Response, User, encode, errors, transaction
from allot.base import Clock
from allot.store import StoreError

from .audit import Answered, Auditor
from .reading.reader import Reader, renderer_of
from .reading.rights import WatchRights
from .registry import Registry, Served
from .requests.aside import Aside, Seat
from .requests.call import Call
from .requests.render import Renderer
from .requests.target import Target, find_target
from .requests.warnings import warning_headers
from .security.authorizer import Authorizer, refusal
from .security.impersonation import read_impersonation
from .storing import trouble
from .storing.pending import MemberRefused, Moved
from .telemetry import Telemetry
from .transactions import Asked, CarriedOut, Transactions, of_member
from .transactions.rendering import Lateness

log = logging.getLogger(__name__)

_READS = frozenset(("get", "list", "watch"))

Verb = Callable[[Call], Awaitable[Response]]
Review = Callable[[Target, Request, User, Seat], Awaitable[Response]]
Page = Callable[[Request], Awaitable[Response | None]]
Show = Callable[[Target, Request], Awaitable[Response]]
RendererOf = Callable[[Served, Request, Clock], Renderer]


class Server:
    def __init__(
        self,
        registry: Registry,
        authorizer: Authorizer,
        reader: Reader,
        clock: Clock,
        verbs: Mapping[str, Verb],
        subresources: Mapping[str, Mapping[str, Verb]],
        reviews: Mapping[tuple[str, str, str], Review],
        shown: Mapping[tuple[str, str, str], Show],
        page: Page,
        telemetry: Telemetry,
        aside: Aside,
        audit: Auditor | None,
        transactions: Transactions,
    ) -> None:
        """`verbs` write objects; `subresources` are verbs by subresource and method; `shown` are resources
        that can be read and are not stored; `page` answers paths that are no resource."""
        self._registry = registry
        self._authorizer = authorizer
        self._reader = reader
        self._clock = clock
        self._verbs = verbs
        self._subresources = subresources
        self._reviews = reviews
        self._shown = shown
        self._page = page
        self._telemetry = telemetry
        self._aside = aside
        self._audit = audit
        self._transactions = transactions

    async def handle(self, request: Request, user: User) -> Response:
        """Answer a request of `user`, who may act as somebody else."""
        started = self._clock.monotonic_s()
        target, acting = None, None
        try:
            target = find_target(request, self._registry)
            if self._audit is not None and _is_transaction(target):
                request = replace(request, audit_id=self._audit.new_id())
            impersonation = read_impersonation(request.headers)
            needs: list[tuple[User, Action]] = []
            if impersonation is not None:
                acting = impersonation.user
                needs += [(user, need) for need in impersonation.needs]
                for _, need in needs:
                    self._authorize(user, need)
            response = await self._answer(request, acting or user, target, needs, renderer_of, user)
        except Exception as error:
            response = _refusal(error, request)
        seconds = self._clock.monotonic_s() - started
        self._telemetry.answered(target, request.method, response.status, seconds)
        if self._audit is None:
            return response
        return self._audit.answered(Answered(request, user, acting, target, seconds), response)

    async def carry_out(self, asked: Asked, call: Call, lateness: Lateness) -> CarriedOut:
        """A member of the transaction that `call` is: a request of the same caller, for the same user."""
        request, target, expected = asked
        started = self._clock.monotonic_s()
        try:
            if expected is None:
                response = await self._answer(
                    request, call.user, target, [], lateness.renderer_of, call.caller
                )
            else:
                self._authorize(call.user, target.action())
                response = await self._transactions.expect(asked)
        except (Moved, MemberRefused):
            raise
        except Exception as error:
            response = _refusal(error, request)
        return CarriedOut(of_member(asked, call, self._clock.monotonic_s() - started), response)

    def note(self, member: CarriedOut, response: Response) -> Response:
        """A member of a transaction, with the answer that it comes to in the end."""
        what = member.answered
        self._telemetry.answered(what.target, what.request.method, response.status, what.seconds)
        return self._audit.answered(what, response) if self._audit is not None else response

    async def _answer(
        self,
        request: Request,
        user: User,
        target: Target | None,
        needs: list[tuple[User, Action]],
        renderer_of: RendererOf,
        caller: User,
    ) -> Response:
        """`needs` was asked of others before."""
        if target is None:
            return await self._other(request, user)
        action = target.action(request.query.get("fieldSelector", ""))
        self._authorize(user, action)
        if target.beside:
            self._authorize(user, replace(action, verb="patch", subresource=target.beside))
        needs.append((user, action))
        if not target.name:
            review = self._reviews.get((target.group, target.version, target.plural))
            if review is not None:
                return await self._review(review, target, request, user)
        served = target.served
        if served is None and (show := self._shown.get((target.group, target.version, target.plural))):
            return await show(target, request)
        if served is None or (served.kind.namespaced and not target.namespace and target.name):
            raise _no_such_page()
        renderer = renderer_of(served, request, self._clock)
        if target.verb in _READS and not target.subresource:
            return await self._read(target, served, request, renderer, needs)
        verb = self._subresource(target, served.kind) if target.subresource else self._plain(target, served)
        seat = self._aside.seat(user.name)
        try:
            return await verb(Call(target, served, request, user, renderer, served.kind, caller, seat))
        finally:
            seat.leave()

    async def _review(self, review: Review, target: Target, request: Request, user: User) -> Response:
        if target.verb != "create":
            raise _not_allowed()
        seat = self._aside.seat(user.name)
        try:
            return await review(target, request, user, seat)
        finally:
            seat.leave()

    async def _read(
        self,
        target: Target,
        served: Served,
        request: Request,
        renderer: Renderer,
        needs: list[tuple[User, Action]],
    ) -> Response:
        if target.verb not in served.kind.verbs:
            raise _not_allowed()
        match target.verb:
            case "get":
                response = await self._reader.get(target, served, request, renderer)
            case "list":
                response = await self._reader.list(target, served, request, renderer)
            case _:
                rights = WatchRights(self._authorizer, needs)
                response = await self._reader.watch(target, served, request, renderer, rights)
        deprecated = served.version.deprecated
        return _with_warning(response, deprecated) if deprecated else response

    def _plain(self, target: Target, served: Served) -> Verb:
        """What carries out a write of whole objects."""
        match target.verb:
            case "create":
                allowed = not target.name and (not served.kind.namespaced or bool(target.namespace))
            case "deletecollection":
                allowed = not served.kind.namespaced or bool(target.namespace)
            case _:
                allowed = bool(target.name)
        if not allowed or target.verb not in served.kind.verbs:
            raise _not_allowed()
        if served.kind is transaction.TRANSACTION:
            return self._transact
        return self._verbs[target.verb]

    async def _transact(self, call: Call) -> Response:
        return await self._transactions.create(call, self)

    def _subresource(self, target: Target, kind: Kind) -> Verb:
        known = (
            (target.subresource == "status" and kind.has_status)
            or (target.subresource == "scale" and kind.scale is not None)
            or target.subresource in kind.other_subresources
            or target.subresource in kind.refused_subresources
        )
        verbs = self._subresources.get(target.subresource, {})
        if not known or not verbs:
            raise _no_such_page()
        verb = verbs.get(target.verb)
        if verb is None:
            raise _not_allowed()
        return verb

    async def _other(self, request: Request, user: User) -> Response:
        verb = {"GET": "get", "HEAD": "get", "POST": "post", "PUT": "put", "DELETE": "delete"}
        self._authorize(user, Action(verb.get(request.method, request.method.lower()), path=request.path))
        response = await self._page(request)
        if response is None:
            raise _no_such_page()
        return response

    def _authorize(self, user: User, action: Action) -> None:
        decision = self._authorizer.authorize(user, action)
        if not decision.allowed:
            raise refusal(user, action, decision)


def _with_warning(response: Response, text: str) -> Response:
    return Response(
        response.status,
        response.body,
        response.content_type,
        (*response.headers, *warning_headers([text])),
        response.stream,
    )


def _is_transaction(target: Target | None) -> bool:
    return target is not None and target.served is not None and target.served.kind is transaction.TRANSACTION


def _refusal(error: Exception, request: Request) -> Response:
    """Whatever went wrong, in the words of the API (S4)."""
    match error:
        case errors.ApiError():
            return error_response(error)
        case StoreError():
            return error_response(trouble.as_api_error(error))
        case RecursionError():
            return error_response(errors.BadRequest("the request is nested too deeply"))
    log.error("a request failed: %s %s", request.method, request.path, exc_info=error)
    return error_response(errors.Internal("an internal error occurred; the server's log has it"))


def error_response(error: errors.ApiError) -> Response:
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after_s:
        headers = (("Retry-After", str(error.retry_after_s)),)
    return Response(error.code, encode(error.status()), headers=headers)


def _not_allowed() -> errors.MethodNotAllowed:
    return errors.MethodNotAllowed("the server does not allow this method on the requested resource")


def _no_such_page() -> errors.NotFound:
    return errors.NotFound("the server could not find the requested resource")
