"""Makes what is missing, and puts right what was changed."""

import contextlib
from collections.abc import Sequence

from allot.api import errors
from allot.informers import Change, Key, Reconciler, ResourceId

from ..controller import Loop, World

NAMESPACES = ResourceId("", "v1", "namespaces", namespaced=False)
CONFIG_MAPS = ResourceId("", "v1", "configmaps")
NAME = "kube-root-ca.crt"
_FOR = "kubernetes.io/description"
_TEXT = "Who signs the certificate of the API server. Verify it with this, and only with this."


def make(world: World) -> Sequence[Loop]:
    if not world.authorities:
        return []
    namespaces, configs = world.informer(NAMESPACES), world.informer(CONFIG_MAPS)
    writing = world.client.resource("", "v1", "configmaps")
    data = {"ca.crt": world.authorities}

    async def reconcile(namespace: str) -> None:
        home = namespaces.cache.get(namespace)
        if home is None or home.metadata.deletion_timestamp is not None:
            return
        found = configs.cache.get(NAME, namespace)
        if found is None:
            metadata = {"name": NAME, "namespace": namespace, "annotations": {_FOR: _TEXT}}
            with contextlib.suppress(errors.AlreadyExists):  # the cache was behind
                await writing.create({"metadata": metadata, "data": data})
        elif found.fields.get("data") != data:
            others = dict.fromkeys(found.fields.get("data") or {})
            await writing.update(found.changed({"data": {**others, **data}}))

    loop = Reconciler("root_ca_cert_publisher", reconcile, world.clock, world.telemetry)

    def config_changed(change: Change) -> None:
        if change.object.name == NAME:
            loop.add(change.object.namespace)

    world.on(namespaces, lambda change: loop.add(Key.of(change.object).name))
    world.on(configs, config_changed)
    return [loop]
