"""Making a token: POST .../serviceaccounts/NAME/token.

The answer is the request with `status` filled in. A token may be bound to a pod,
a node or a secret; it dies with what it is bound to, and a pod's token also says
on which node the pod runs.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from allot.api import errors, field
from allot.base import Ids

from .pod_references import service_account
from .tokens import Bound, Claims, Lookup, Private, Tokens

SECONDS_MIN = 600
SECONDS_MAX = 1 << 32
SECONDS_DEFAULT = 3600
SERVED_SECONDS_MAX = 366 * 24 * 3600
"""A longer wish is granted for this long: the answer says until when the token is good."""

_SPEC = field.Path("spec")
_KIND = {"group": "authentication.k8s.io", "kind": "TokenRequest"}
_REFERENCES = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


class Binding(NamedTuple):
    pod: Bound | None = None
    node: Bound | None = None
    secret: Bound | None = None


def make_token(
    tokens: Tokens,
    lookup: Lookup,
    ids: Ids,
    now: datetime,
    namespace: str,
    name: str,
    body: Mapping[str, Any],
) -> dict[str, Any]:
    """The answered TokenRequest. Raises an ApiError if there is no such account or the wish is wrong."""
    account = lookup("serviceaccounts", namespace, name)
    if account is None:
        raise errors.NotFound(f'serviceaccounts "{name}" not found', kind="serviceaccounts", name=name)
    spec = body.get("spec") or {}
    seconds, audiences = _validated(spec, name)
    binding = _binding(lookup, namespace, name, spec.get("boundObjectRef"))
    until = now + timedelta(seconds=min(seconds, SERVED_SECONDS_MAX))
    claims = Claims(
        aud=tuple(audiences or (tokens.issuer,)),
        exp=int(until.timestamp()),
        iat=int(now.timestamp()),
        iss=tokens.issuer,
        jti=ids.uid(),
        kubernetes=Private(
            namespace, Bound(name, account["metadata"]["uid"]), binding.node, binding.pod, binding.secret
        ),
        nbf=int(now.timestamp()),
        sub=f"system:serviceaccount:{namespace}:{name}",
    )
    return _answer(body, namespace, name, claims, tokens.sign(claims), now)


def _validated(spec: Mapping[str, Any], name: str) -> tuple[int, Sequence[str]]:
    seconds = spec.get("expirationSeconds")
    seconds = SECONDS_DEFAULT if seconds is None else seconds
    path = _SPEC / "expirationSeconds"
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise field.refusal(**_KIND, name=name, errors=[field.invalid(path, seconds, "must be an integer")])
    wrong = []
    if seconds < SECONDS_MIN:
        wrong.append(field.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > SECONDS_MAX:
        wrong.append(field.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if wrong:
        raise field.refusal(**_KIND, name=name, errors=wrong)
    return seconds, spec.get("audiences") or ()


def _binding(lookup: Lookup, namespace: str, account: str, ref: Mapping[str, Any] | None) -> Binding:
    if ref is None:
        return Binding()
    kind, name = ref.get("kind") or "", ref.get("name") or ""
    resource = _REFERENCES.get(kind)
    if resource is None or ref.get("apiVersion", "v1") not in ("", "v1"):
        raise errors.BadRequest(
            f"cannot bind token to object of type {ref.get('apiVersion', '')}, Kind={kind}"
        )
    found = lookup(resource, "" if kind == "Node" else namespace, name)
    if found is None:
        raise errors.NotFound(f'{resource} "{name}" not found', kind=resource, name=name)
    uid = found["metadata"]["uid"]
    if ref.get("uid") and ref["uid"] != uid:
        raise errors.Conflict(
            f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference'
            f" ({ref['uid']}) does not match the UID in record."
            " The object might have been deleted and then recreated",
            kind=kind,
            name=name,
        )
    bound = Bound(name, uid)
    if kind == "Pod":
        return Binding(pod=bound, node=_node_of_pod(lookup, found, account))
    return Binding(node=bound) if kind == "Node" else Binding(secret=bound)


def _node_of_pod(lookup: Lookup, pod: Mapping[str, Any], account: str) -> Bound | None:
    if service_account(pod) != account:
        raise errors.BadRequest(
            f'cannot bind token for serviceaccount "{account}" to pod running with different'
            " serviceaccount name."
        )
    name = (pod.get("spec") or {}).get("nodeName")
    if not name:
        return None
    node = lookup("nodes", "", name)
    return Bound(name, "" if node is None else node["metadata"]["uid"])


def _answer(
    body: Mapping[str, Any], namespace: str, name: str, claims: Claims, token: str, now: datetime
) -> dict[str, Any]:
    spec = {
        **(body.get("spec") or {}),
        "audiences": list(claims.aud),
        "expirationSeconds": claims.exp - claims.iat,
    }
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": _shown(now)},
        "spec": spec,
        "status": {
            "token": token,
            "expirationTimestamp": _shown(datetime.fromtimestamp(claims.exp, UTC)),
        },
    }


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
