"""POST serviceaccounts/NAME/token: a token for a service account, to those who may have one."""

from collections.abc import Callable

from allot.api import Response, encode, errors, schema
from allot.base import Clock, Ids

from .body import decode_body
from .call import Call
from .security import Tokens, make_token, refuse_node
from .security.tokens import Lookup

_KIND, _API_VERSION = "TokenRequest", "authentication.k8s.io/v1"
_SHAPE = "io.k8s.api.authentication.v1.TokenRequest"


class Minter:
    """`tokens` gives what signs; it is asked when the first token is wanted."""

    def __init__(self, tokens: Callable[[], Tokens], lookup: Lookup, clock: Clock, ids: Ids) -> None:
        self._tokens = tokens
        self._lookup = lookup
        self._clock = clock
        self._ids = ids

    async def mint(self, call: Call) -> Response:
        body = decode_body(call.request).fields
        body.setdefault("kind", _KIND)
        body.setdefault("apiVersion", _API_VERSION)
        if (body["kind"], body["apiVersion"]) != (_KIND, _API_VERSION):
            raise errors.BadRequest(f"the body must be a {_KIND} of {_API_VERSION}")
        problems = schema.check(body, schema.get(_SHAPE))
        if problems.malformed:
            raise errors.BadRequest(f"{_KIND} cannot be read: {problems.malformed}")
        target = call.target
        refused = refuse_node(call.user, target.action(), body, None, self._lookup)
        if refused is not None:
            raise refused
        made = make_token(
            self._tokens(), self._lookup, self._ids, self._clock.now(), target.namespace, target.name, body
        )
        return Response(201, encode(made))
