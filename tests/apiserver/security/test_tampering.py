"""A secret in the store that somebody tampered with: nobody else's start, list or watch fails with it."""

import asyncio
import json

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import MemoryStore, Put
from allot.store.sealed.engine import SealedStore
from allot.store.sealed.envelope import Seals

PREFIX = "/objects/core/secrets/"


async def ask(server, method, path, body=None):
    raw = json.dumps(body).encode() if body else b""
    answer = await server.handle(
        Request(method, path, {}, {"content-type": "application/json"}, raw), identities.ADMIN
    )
    pieces = [piece async for piece in answer.stream] if answer.stream else [answer.body]
    return answer.status, b"".join(pieces).decode()


def test_one_record_that_was_moved_is_unreadable_and_the_others_are_not():
    async def story():
        behind = MemoryStore()
        seals = Seals([b"k" * 32])
        first = ApiServer(SealedStore(behind, seals, (PREFIX,)))
        await first.start()
        for name in ("mine", "theirs"):
            body = {"metadata": {"name": name}, "stringData": {"of": name}}
            assert (await ask(first, "POST", "/api/v1/namespaces/default/secrets", body))[0] == 201
        await first.close()
        stolen = (await behind.get(f"{PREFIX}default/theirs")).value
        await behind.transact([], [Put(f"{PREFIX}default/mine", stolen)])

        again = ApiServer(SealedStore(behind, seals, (PREFIX,)))
        await asyncio.wait_for(again.start(), 30)
        status, theirs = await ask(again, "GET", "/api/v1/namespaces/default/secrets/theirs")
        assert status == 200 and '"name":"theirs"' in theirs
        status, mine = await ask(again, "GET", "/api/v1/namespaces/default/secrets/mine")
        assert status >= 400 and "of" not in json.loads(mine).get("data", {})
        status, health = await ask(again, "GET", "/readyz")
        assert status == 500 and "secrets/default/mine" in health, health
        await again.close()

    asyncio.run(story())
