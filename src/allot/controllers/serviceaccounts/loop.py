"""Makes what is missing."""

import contextlib
from collections.abc import Sequence

from allot.api import errors
from allot.informers import Change, Deleted, Key, Reconciler, ResourceId

from ..controller import Loop, World

NAMESPACES = ResourceId("", "v1", "namespaces", namespaced=False)
ACCOUNTS = ResourceId("", "v1", "serviceaccounts")
NAME = "default"


def make(world: World) -> Sequence[Loop]:
    namespaces, accounts = world.informer(NAMESPACES), world.informer(ACCOUNTS)
    writing = world.client.resource("", "v1", "serviceaccounts")

    async def reconcile(namespace: str) -> None:
        found = namespaces.cache.get(namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return
        if accounts.cache.get(NAME, namespace) is not None:
            return
        metadata = {"name": NAME, "namespace": namespace}
        with contextlib.suppress(errors.AlreadyExists):  # the cache was behind
            await writing.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})

    loop = Reconciler("serviceaccount", reconcile, world.clock, world.telemetry)

    def account_changed(change: Change) -> None:
        if isinstance(change, Deleted) and change.object.name == NAME:
            loop.add(change.object.namespace)

    world.on(namespaces, lambda change: loop.add(Key.of(change.object).name))
    world.on(accounts, account_changed)
    return [loop]
