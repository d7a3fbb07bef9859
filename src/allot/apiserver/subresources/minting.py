"""POST serviceaccounts/NAME/token: a token for a service account, to those who may have one."""

from collections.abc import Callable

from allot.api import Response, encode, schema
from allot.base import Clock, Ids

from ..requests.call import Call
from ..requests.warnings import warning_headers
from ..security import Tokens, make_token, refuse_node
from ..security.tokens import Lookup
from ..writing.body import read_other

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
        body, warnings = await call.read(
            lambda: read_other(call.request, schema.get(_SHAPE), _KIND, (_API_VERSION,))
        )
        target = call.target
        refused = refuse_node(call.user, target.action(), body, None, self._lookup)
        if refused is not None:
            raise refused
        made = make_token(
            self._tokens(), self._lookup, self._ids, self._clock.now(), target.namespace, target.name, body
        )
        return Response(201, encode(made), headers=warning_headers(warnings))
