"""Service accounts: who a new pod is, and that there is somebody of that name.

Every namespace is born with an account `default`, in the transaction that makes it: there is no moment in
which a namespace exists and pods are refused for want of an account.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from allot.api import Fields, Kind, errors, stored_form
from allot.base import Ids
from allot.store import Revise

from ..deciding.metadata import fill_in_create
from ..security import pod_references
from ..storing.repository import key_of
from . import Attempt, Plugin

DEFAULT = "default"

KnownAccount = Callable[[str, str], Mapping[str, Any] | None]
"""The service account of a namespace and a name, as far as that is known at once."""
FindAccount = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]


def service_account(known: KnownAccount, find: FindAccount) -> Plugin:
    """A pod that names no account runs as the namespace's default one."""

    def admit(attempt: Attempt) -> Awaitable[None] | None:
        new = attempt.new
        if attempt.operation != "CREATE" or attempt.subresource or new is None:
            return None
        if pod_references.MIRROR_ANNOTATION in (new["metadata"].get("annotations") or {}):
            _require_nobody(new, attempt.name)
            return None
        spec = new.setdefault("spec", {})
        name = pod_references.service_account(new) or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = known(attempt.namespace, name)
        if account is None:
            return looked_up(attempt, spec)
        _give(spec, account)
        return None

    async def looked_up(attempt: Attempt, spec: Fields) -> None:
        name = spec["serviceAccountName"]
        account = await find(attempt.namespace, name)
        if account is None:
            raise errors.Forbidden(
                f'pods "{attempt.name}" is forbidden: error looking up service account '
                f'{attempt.namespace}/{name}: serviceaccount "{name}" not found',
                kind="pods",
                name=attempt.name,
            )
        _give(spec, account)

    return admit


def _give(spec: Fields, account: Mapping[str, Any]) -> None:
    """What the account says for its pods, where they say nothing."""
    if account.get("automountServiceAccountToken") is False:
        spec.setdefault("automountServiceAccountToken", False)
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]


def _require_nobody(pod: Fields, name: str) -> None:
    """A mirror pod stands for one that its node runs by itself: it is given no account, and needs none."""
    for is_wrong, what in (
        (pod_references.service_account(pod), "reference service accounts"),
        (any(pod_references.secrets(pod)), "reference secrets"),
        (pod_references.names_tokens(pod), "use ServiceAccountToken volume projections"),
    ):
        if is_wrong:
            raise errors.Forbidden(
                f'pods "{name}" is forbidden: a mirror pod may not {what}', kind="pods", name=name
            )


def born_with_account(kind: Kind, ids: Ids) -> Plugin:
    """Of namespaces; `kind` is that of service accounts."""

    async def admit(attempt: Attempt) -> None:
        if attempt.operation != "CREATE" or attempt.subresource or not attempt.name:
            return
        born = default_account(kind, attempt.name, attempt.context.now, ids)

        def make(stored: bytes | None) -> bytes | None:
            return born if stored is None else stored

        attempt.context.extra_writes.append(Revise(key_of(kind, attempt.name, DEFAULT), make))

    return admit


def default_account(kind: Kind, namespace: str, now: datetime, ids: Ids) -> bytes:
    account: Fields = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": DEFAULT}}
    fill_in_create(kind, account, namespace, now, ids)
    return stored_form(account)
