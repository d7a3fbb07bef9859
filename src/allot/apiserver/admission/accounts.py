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
from ..storing.repository import key_of
from . import Attempt, Plugin

DEFAULT = "default"
MIRROR = "kubernetes.io/config.mirror"

FindAccount = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""The service account of a namespace and a name."""


def service_account(find: FindAccount) -> Plugin:
    async def admit(attempt: Attempt) -> None:
        """A pod that names no account runs as the namespace's default one."""
        new = attempt.new
        if attempt.operation != "CREATE" or attempt.subresource or new is None:
            return
        if (new["metadata"].get("annotations") or {}).get(MIRROR):
            return
        spec = new.setdefault("spec", {})
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await find(attempt.namespace, name)
        if account is None:
            raise errors.Forbidden(
                f'pods "{attempt.name}" is forbidden: error looking up service account '
                f'{attempt.namespace}/{name}: serviceaccount "{name}" not found',
                kind="pods",
                name=attempt.name,
            )
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]

    return admit


def born_with_account(kind: Kind, ids: Ids) -> Plugin:
    """Of namespaces; `kind` is that of service accounts."""

    async def admit(attempt: Attempt) -> None:
        if attempt.operation != "CREATE" or attempt.subresource or not attempt.name:
            return
        born = default_account(kind, attempt.name, attempt.occasion.now, ids)

        def make(stored: bytes | None) -> bytes | None:
            return born if stored is None else stored

        attempt.occasion.extra_writes.append(Revise(key_of(kind, attempt.name, DEFAULT), make))

    return admit


def default_account(kind: Kind, namespace: str, now: datetime, ids: Ids) -> bytes:
    account: Fields = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": DEFAULT}}
    fill_in_create(kind, account, namespace, now, ids)
    return stored_form(account)
