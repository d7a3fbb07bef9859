"""deletecollection: everything that a selector matches, one delete each."""

import asyncio

from allot.api import Response, encode, errors

from ..reading.listing import PIECE
from ..reading.selection import parse_selection
from ..requests.call import Call
from ..requests.pieces import list_response
from ..requests.turns import Turns
from ..storing.repository import Repository, prefix_of
from ..storing.stored import readable
from .deleting import Deleter, delete_options


class CollectionDeleter:
    def __init__(self, repository: Repository, deleter: Deleter) -> None:
        self._repository = repository
        self._deleter = deleter
        self._turns = Turns()

    async def delete(self, call: Call) -> Response:
        query = call.request.query
        selection = parse_selection(call.served, lambda name: query.get(name, ""))
        options = await call.read(lambda: delete_options(call))
        page = await self._repository.store.range(prefix_of(call.kind, call.target.namespace))
        items = []
        for at, entry in enumerate(page.entries):
            object = readable(entry, call.kind)
            if at % PIECE == PIECE - 1:
                await asyncio.sleep(0)
            if object is None or not selection.accepts(object):
                continue
            try:
                last, _ = await self._deleter.remove(call, object.namespace, object.name, options)
            except errors.NotFound:
                continue
            items.append(last)
        if not call.served.version.returns_deleted:
            return Response(
                200, encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
            )
        head = call.renderer.list_head(page.revision, "", 0)
        return await list_response(head, items, call.renderer.items, b"]}", self._turns)
