"""PUT namespaces/NAME/finalize: who has emptied a namespace takes its finalizer off."""

from allot.api import Object, Response, schema

from ..deciding.context import ServerWriteContext
from ..requests.call import Call
from ..writing.body import Body, read_other
from ..writing.writer import Writer

_SHAPE = "io.k8s.api.core.v1.Namespace"


class Finalizer:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def finalize(self, call: Call) -> Response:
        wanted, warnings = await call.read(
            lambda: read_other(call.request, schema.get(_SHAPE), "Namespace", ("v1",))
        )
        finalizers = (wanted.get("spec") or {}).get("finalizers") or []

        def build(old: Object, context: ServerWriteContext) -> Body:
            new = old.fresh()
            new.setdefault("spec", {})["finalizers"] = finalizers
            return Body(new, warnings, patched=True, trusted=True)

        return (await self._writer.change(call, build)).response(call)
