"""Serves the kinds that users define, as long as their definitions last.

A definition is served from the moment its event arrives, on every API server of
the store. One that is being deleted takes no new objects; its objects go first,
then the finalizer, then the kind.
"""

import asyncio
import contextlib
import logging
from dataclasses import replace

from allot.api import Fields, Kind, Object, Request, custom, encode, errors
from allot.base import SystemClock
from allot.store import StoreError

from .deciding.context import ServerWriteContext
from .reading.cache import Caches
from .reading.history import Change
from .registry import Registry
from .requests.call import Call
from .requests.negotiate import WHOLE
from .requests.render import Renderer
from .requests.target import Target
from .seeding import SERVER
from .storing.repository import Repository, prefix_of
from .storing.stored import object_of
from .writing.body import Body
from .writing.deleting import DeleteOptions, Deleter
from .writing.writer import Writer

log = logging.getLogger(__name__)

_AGAIN_S = 0.5
_NEVER_ASKED = SystemClock()
"""Answers that nobody reads say no ages."""


class Definitions:
    def __init__(
        self, registry: Registry, caches: Caches, repository: Repository, deleter: Deleter, writer: Writer
    ) -> None:
        self._registry = registry
        self._caches = caches
        self._repository = repository
        self._deleter = deleter
        self._writer = writer
        self._built_in = frozenset((kind.group, kind.plural) for kind in registry.kinds())
        self._endings: dict[str, asyncio.Task[None]] = {}

    def observe(self, change: Change) -> None:
        definition = dict(change.object.fields)
        spec = definition["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        if (group, plural) in self._built_in:
            # Whoever may define kinds must not thereby take over, or delete, one of ours.
            if change.type != "DELETED" and change.object.metadata.deletion_timestamp:
                self._end(change.object, None)
            return
        kind = custom.kind_of(definition) if change.type != "DELETED" else None
        if kind is None or self._clashes(kind):
            self._withdraw(group, plural)
            return
        if change.object.metadata.deletion_timestamp:
            kind = replace(kind, verbs=tuple(verb for verb in kind.verbs if verb != "create"))
            self._end(change.object, kind)
        self._registry.add(kind)
        if change.previous is not None and _versions(change.previous) != _versions(change.object):
            self._caches.reload(kind)

    def _withdraw(self, group: str, plural: str) -> None:
        """Whoever watches starts over, and learns that there is nothing to watch any more."""
        kind = self._registry.kind(group, plural)
        if kind is not None:
            self._registry.remove(group, plural)
            self._caches.reload(kind)

    def _clashes(self, kind: Kind) -> bool:
        """Another kind of the group has one of the names: the one that was first keeps it."""
        others = [k for k in self._registry.kinds() if k.group == kind.group and k.plural != kind.plural]
        return any(other.kind == kind.kind for other in others)

    def _end(self, definition: Object, kind: Kind | None) -> None:
        """Without a kind there is nothing to delete first."""
        if definition.name not in self._endings:
            task = asyncio.create_task(self._finish(definition.name, kind), name=f"end {definition.name}")
            self._endings[definition.name] = task
            task.add_done_callback(lambda _: self._endings.pop(definition.name, None))

    async def _finish(self, name: str, kind: Kind | None) -> None:
        """Delete every object, wait until the last one is gone, then let the definition go."""
        while True:
            try:
                if kind is not None and not await self._empty(kind):
                    await asyncio.sleep(_AGAIN_S)
                    continue
                await self._release(name)
            except (errors.NotFound, asyncio.CancelledError):
                return
            except (errors.ApiError, StoreError) as error:
                # That it is away the store says itself, once.
                level = logging.DEBUG if isinstance(error, StoreError) else logging.WARNING
                log.log(level, "the objects of a definition could not be deleted yet: %s: %s", name, error)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def _empty(self, kind: Kind) -> bool:
        page = await self._repository.store.range(prefix_of(kind))
        for object in (object_of(entry, kind) for entry in page.entries):
            if not object.metadata.deletion_timestamp:
                call = _call(self._registry, kind, object.namespace, object.name, "delete")
                with contextlib.suppress(errors.NotFound):
                    await self._deleter.remove(call, object.namespace, object.name, DeleteOptions())
        return not (await self._repository.store.range(prefix_of(kind), limit=1)).entries

    async def _release(self, name: str) -> None:
        def build(old: Object, context: ServerWriteContext) -> Body:
            new: Fields = old.fresh()
            new["metadata"]["finalizers"] = [
                one for one in new["metadata"].get("finalizers") or [] if one != custom.CLEANUP
            ]
            return Body(new, patched=True, trusted=True)

        await self._writer.change(_call(self._registry, custom.DEFINITION, "", name, "update"), build)

    async def close(self) -> None:
        for task in list(self._endings.values()):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _versions(definition: Object) -> object:
    """Where the shapes of a kind are."""
    return definition.fields["spec"].get("versions")


def _call(registry: Registry, kind: Kind, namespace: str, name: str, verb: str) -> Call:
    served = registry.served(kind.group, kind.versions[0].name, kind.plural)
    if served is None:
        raise errors.NotFound(f"{kind.resource} is not served")
    target = Target(kind.group, served.version.name, kind.plural, namespace, name, "", verb, served)
    request = Request("PUT", "", {"fieldManager": "apiserver"}, {}, encode({}))
    return Call(target, served, request, SERVER, Renderer(served, WHOLE, _NEVER_ASKED), kind, SERVER)
