"""PUT namespaces/NAME/finalize: who has emptied a namespace takes its finalizer off.

Objects of kinds that are switched off cannot be seen by whoever empties it, and nobody would ever look for
them again: they go here, before the namespace does.
"""

from collections.abc import Sequence

from allot.api import Kind, Object, Response, schema
from allot.store import Delete

from ..deciding.context import ServerWriteContext
from ..requests.call import Call
from ..storing.pending import KEYS_MAX
from ..storing.repository import Repository, prefix_of
from ..writing.body import Body, read_other
from ..writing.writer import Writer

_SHAPE = "io.k8s.api.core.v1.Namespace"


class Finalizer:
    def __init__(self, writer: Writer, repository: Repository, unserved: Sequence[Kind]) -> None:
        """`unserved` are kinds in namespaces that are switched off, and may have been on before."""
        self._writer = writer
        self._repository = repository
        self._unserved = unserved

    async def finalize(self, call: Call) -> Response:
        wanted, warnings = await call.read(
            lambda: read_other(call.request, schema.get(_SHAPE), "Namespace", ("v1",))
        )
        finalizers = (wanted.get("spec") or {}).get("finalizers") or []
        if self._unserved and not finalizers and not call.dry_run:
            await self._remove_unseen(call)

        def build(old: Object, context: ServerWriteContext) -> Body:
            new = old.fresh()
            new.setdefault("spec", {})["finalizers"] = finalizers
            return Body(new, warnings, patched=True, trusted=True)

        return (await self._writer.change(call, build)).response(call)

    async def _remove_unseen(self, call: Call) -> None:
        """Nothing new comes into a namespace that is being deleted, and it never ceases to be."""
        name = call.target.name
        found = (await self._repository.find(call.kind, "", name)).object
        if found is None or not found.metadata.deletion_timestamp:
            return
        for kind in self._unserved:
            prefix = prefix_of(kind, name)
            while page := (await self._repository.store.range(prefix, limit=KEYS_MAX // 2)).entries:
                await self._repository.commit((), [Delete(entry.key) for entry in page])
