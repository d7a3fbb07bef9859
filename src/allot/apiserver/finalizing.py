"""PUT namespaces/NAME/finalize: who has emptied a namespace takes its finalizer off."""

from allot.api import Object, Response

from .body import Body, decode_body
from .call import Call
from .occasion import WriteOccasion
from .writing import Writer


class Finalizer:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def finalize(self, call: Call) -> Response:
        wanted = decode_body(call.request).fields
        finalizers = (wanted.get("spec") or {}).get("finalizers") or []

        def build(old: Object, occasion: WriteOccasion) -> Body:
            new = old.fresh()
            new.setdefault("spec", {})["finalizers"] = finalizers
            return Body(new, patched=True, trusted=True)

        return (await self._writer.change(call, build)).response(call)
