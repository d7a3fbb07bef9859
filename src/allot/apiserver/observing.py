"""What the server follows to decide about callers: roles, bindings, pods on nodes, revoked certificates.

Their objects are loaded before the server is ready, and every change reaches the authorizer as it happens.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict

from allot.api import Fields, Kind, kinds

from .reading.cache import Caches
from .reading.history import Change
from .registry import Registry
from .security import Authorizer, Revocations
from .storing.recent import Recent
from .storing.repository import key_of

_KNOWN_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.05
_CORE = ("limitranges", "nodes", "resourcequotas", "secrets", "serviceaccounts")

Observer = Callable[[Change], None]


def observed(registry: Registry) -> list[Kind]:
    """Whose objects decide what callers may do, or what tokens are good for."""
    wanted = [*sorted(Authorizer.OBSERVED), ("scheduling.k8s.io", "priorityclasses")]
    wanted += [("", name) for name in _CORE]
    wanted += [(kind.group, kind.plural) for kind in kinds.POLICIES]
    return [kind for key in wanted if (kind := registry.kind(*key))]


def rights_observer(kind: Kind, authorizer: Authorizer, recent: Recent) -> Observer:
    def observe(change: Change) -> None:
        if kind.plural == "pods" and not _was_or_is_bound(change):
            return
        who = kind.group, kind.plural, change.object.namespace, change.object.name
        try:
            authorizer.observe(*who, None if change.type == "DELETED" else _said(kind, change, recent))
        except Exception:
            authorizer.observe(*who, None)  # what cannot be read gives nobody any rights
            raise

    return observe


class _Known(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct):
    """What of a pod can decide about callers. Most of the rest says who wrote what."""

    metadata: _Known
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


_pod = msgspec.json.Decoder(_Pod)


def _said(kind: Kind, change: Change, recent: Recent) -> Mapping[str, Any]:
    """What is decoded anew is so for the moment only: kept, all pods would fill the memory."""
    written = recent.at(change.key, change.revision)
    if written is not None:
        return written.fields
    if kind.plural != "pods":
        return change.object.fresh()
    pod = _pod.decode(change.object.stored)
    return {"metadata": asdict(pod.metadata), "spec": pod.spec, "status": pod.status}


def revocation_observer(revocations: Revocations) -> Observer:
    def observe(change: Change) -> None:
        fields = None if change.type == "DELETED" else change.object.fields
        revocations.observe(change.object.name, fields)

    return observe


async def until_known(rights: Iterable[Fields], registry: Registry, caches: Caches) -> None:
    """Wait until the caches have these objects: a client that finds the server ready must not be refused
    because the server has not heard of its own roles yet."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + _KNOWN_WITHIN_S
    for fields in rights:
        group, _, _ = fields["apiVersion"].rpartition("/")
        kind = registry.by_kind(group, fields["kind"])
        if kind is None:
            continue
        cache, metadata = caches.made(kind), fields["metadata"]
        key = key_of(kind, metadata.get("namespace", ""), metadata["name"])
        while key not in cache.objects and key not in cache.troubles and loop.time() < end_s:
            await cache.moved(_LOOK_EVERY_S)


def _was_or_is_bound(change: Change) -> bool:
    """Pods without a node give nobody any rights, and most changes are about them."""
    previous = change.previous.stored if change.previous else b""
    return b'"nodeName"' in change.object.stored or b'"nodeName"' in previous
