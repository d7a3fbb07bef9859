"""Service account tokens: signed, expiring, and only as good as what they are bound to.

What it promises
    TOKEN1  A token is accepted only if we signed it, for this audience, and now is within
            its time.
    TOKEN2  It is accepted only while its service account exists under the same uid, and so
            does the pod, node or secret it is bound to.
    TOKEN3  A token that was good a moment ago is refused at once when TOKEN2 stops holding:
            only signatures are remembered, never the objects.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from allot.api import User

from .certificates import CREDENTIAL
from .identities import service_account

if TYPE_CHECKING:
    from .jwt import Keys

ISSUER = "https://kubernetes.default.svc.cluster.local"
_EXTRA = "authentication.kubernetes.io/"
_REMEMBERED_MAX = 4096
_CLOCK_SKEW = timedelta(seconds=10)
"""Another API server's clock may be ahead of ours when it signs."""
_DELETION_LEEWAY = timedelta(seconds=60)
"""How long after its deletion was due an object still counts, so that a pod can end its work."""


class Lookup(Protocol):
    """The stored objects, in their stored form."""

    def __call__(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None: ...


class Bound(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class Private(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the claim `kubernetes.io` holds."""

    namespace: str
    serviceaccount: Bound
    node: Bound | None = None
    pod: Bound | None = None
    secret: Bound | None = None
    warnafter: int = 0


class Claims(msgspec.Struct, frozen=True, omit_defaults=True, rename={"kubernetes": "kubernetes.io"}):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: Private
    nbf: int
    sub: str


class TokenRefused(Exception):
    """Why a token is not accepted."""


@dataclass(frozen=True, slots=True)
class Verified:
    user: User
    claims: Claims


class Tokens:
    """Signs and verifies. `lookup` finds what tokens are bound to."""

    def __init__(self, keys: "Keys", lookup: Lookup, issuer: str = ISSUER) -> None:
        self._keys = keys
        self._lookup = lookup
        self.issuer = issuer
        self._remembered: OrderedDict[bytes, Verified] = OrderedDict()

    def sign(self, claims: Claims) -> str:
        return self._keys.sign(msgspec.to_builtins(claims))

    def verify(self, token: str, now: datetime, audiences: Sequence[str] = ()) -> Verified:
        """TOKEN1, TOKEN2. Without `audiences` the token must be for this server."""
        verified = self._signed(token)
        claims = verified.claims
        if claims.exp <= now.timestamp():
            raise TokenRefused("service account token has expired")
        if claims.nbf > (now + _CLOCK_SKEW).timestamp():
            raise TokenRefused("service account token is not valid yet")
        if not set(audiences or (self.issuer,)) & set(claims.aud):
            raise TokenRefused("token audiences are invalid for the target audiences")
        self._check_bound(claims.kubernetes, now)
        return verified

    def user(self, token: str, now: datetime) -> User | None:
        """Who sends a request with this token, or None."""
        try:
            return self.verify(token, now).user
        except TokenRefused:
            return None

    def public_jwks(self) -> dict[str, Any]:
        return self._keys.public_jwks()

    def _signed(self, token: str) -> Verified:
        """TOKEN3. A digest is the key, so that memory holds no token that could be used."""
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        found = self._remembered.get(digest)
        if found is not None:
            self._remembered.move_to_end(digest)
            return found
        found = self._read(token)
        self._remembered[digest] = found
        if len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return found

    def _read(self, token: str) -> Verified:
        from .jwt import BadToken

        try:
            claims = msgspec.convert(self._keys.verify(token), Claims)
        except BadToken as error:
            raise TokenRefused(str(error)) from None
        except msgspec.ValidationError:
            raise TokenRefused("the token is not one of a service account") from None
        user = _user_of(claims)
        if claims.iss != self.issuer or claims.sub != user.name:
            raise TokenRefused("the token contradicts itself or has another issuer")
        return Verified(user, claims)

    def _check_bound(self, bound: Private, now: datetime) -> None:
        """TOKEN2."""
        self._check(bound.serviceaccount, "serviceaccounts", bound.namespace, now)
        if bound.secret is not None:
            self._check(bound.secret, "secrets", bound.namespace, now)
        if bound.pod is not None:
            self._check(bound.pod, "pods", bound.namespace, now)
        elif bound.node is not None:
            # A pod's token names its node too, for whoever reads it. That the node
            # lives is asked only of tokens that are bound to the node itself.
            self._check(bound.node, "nodes", "", now)

    def _check(self, bound: Bound, resource: str, namespace: str, now: datetime) -> None:
        found = self._lookup(resource, namespace, bound.name)
        if found is None:
            raise TokenRefused(f"{resource[:-1]} {bound.name} of this token does not exist")
        metadata = found["metadata"]
        if metadata.get("uid") != bound.uid:
            raise TokenRefused(f"{resource[:-1]} {bound.name} of this token has another UID")
        due = metadata.get("deletionTimestamp")
        if due and _time(due) < now - _DELETION_LEEWAY:
            raise TokenRefused(f"{resource[:-1]} {bound.name} of this token has been deleted")


def _user_of(claims: Claims) -> User:
    bound = claims.kubernetes
    account = service_account(bound.namespace, bound.serviceaccount.name, bound.serviceaccount.uid)
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL: (f"JTI={claims.jti}",)}
    for kind, ref in (("pod", bound.pod), ("node", bound.node)):
        if ref is not None:
            extra[f"{_EXTRA}{kind}-name"] = (ref.name,)
            if ref.uid:
                extra[f"{_EXTRA}{kind}-uid"] = (ref.uid,)
    return User(account.name, account.groups, account.uid, extra)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
