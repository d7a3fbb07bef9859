"""Who sends this request? A certificate, else a token, else nobody.

Nothing is answered to nobody, not even `/version`: a cluster of ours does not
introduce itself to strangers. For load balancers that cannot show credentials
the health endpoints, and only they, can be opened (`--anonymous-health`).
"""

from collections.abc import Mapping
from datetime import datetime

from allot.api import User, errors

from .certificates import Certified
from .identities import UNAUTHENTICATED
from .impersonation import ANONYMOUS
from .revocations import Revocations
from .tokens import Tokens

HEALTH_PATHS = frozenset(["/healthz", "/livez", "/readyz"])
NOBODY = User(ANONYMOUS, (UNAUTHENTICATED,))


class Authenticator:
    def __init__(self, tokens: Tokens, revocations: Revocations, *, anonymous_health: bool = False) -> None:
        self._tokens = tokens
        self._revocations = revocations
        self._open_paths = HEALTH_PATHS if anonymous_health else frozenset()

    def authenticate(
        self, certified: Certified | None, headers: Mapping[str, str], path: str, now: datetime
    ) -> User:
        """`certified` is what the connection's certificate says, if it has one (`certificates`).

        Raises Unauthorized. A wrong token is never overlooked: it does not become
        nobody on a path that is open to nobody.
        """
        if certified is not None:
            if now < certified.until and not self._revocations.covers(certified):
                return certified.user
            raise errors.Unauthorized("Unauthorized")
        given = headers.get("authorization", "")
        if given:
            user = self._tokens.user(_bearer(given), now)
            if user is not None:
                return user
        elif path in self._open_paths:
            return NOBODY
        raise errors.Unauthorized("Unauthorized")


def _bearer(given: str) -> str:
    scheme, _, token = given.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
