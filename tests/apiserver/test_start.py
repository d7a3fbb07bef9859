"""What `ready` means."""

import asyncio

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import Event, MemoryStore, Watch


class LateStore(MemoryStore):
    """Whose watchers hear of a change a while after it was acknowledged, as they do from another machine."""

    def watch(self, prefix: str, after: int) -> Watch:
        return LateWatch(super().watch(prefix, after))


class LateWatch:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.close = watch.close

    @property
    def progress(self) -> int:
        return 0

    def hurry(self) -> None: ...

    def __aiter__(self) -> "LateWatch":
        return self

    async def __anext__(self) -> list[Event]:
        events = await self._watch.__anext__()
        await asyncio.sleep(0.3)
        return events


def test_a_server_that_is_ready_knows_its_own_roles():
    """The administrator was refused, for a moment, by a server on etcd that had just said it was ready."""

    async def story() -> int:
        store = LateStore()
        server = ApiServer(store)
        await server.start()
        answer = await server.handle(Request("GET", "/api/v1/pods", {"limit": "1"}), identities.ADMIN)
        await server.close()
        await store.close()
        return answer.status

    assert asyncio.run(story()) == 200
