"""Selectors of a new object are judged without holding up anybody else."""

import asyncio
import json

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import MemoryStore

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def claim(name: str, selectors: list[str]) -> bytes:
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}} for text in selectors]}
    spec = {"devices": {"requests": [{"name": "a", "exactly": exactly}]}}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


def long_selector(number: int) -> str:
    return " && ".join(f'device.attributes["a{number}"].b{part} == {part}' for part in range(200))


def test_a_claim_full_of_long_selectors_does_not_hold_up_the_server():
    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        body = claim("heavy", [long_selector(number) for number in range(20)])
        heavy = asyncio.create_task(api.handle(Request("POST", CLAIMS, {}, {}, body), identities.ADMIN))
        answered = 0
        while not heavy.done():
            answer = await api.handle(Request("GET", CLAIMS), identities.ADMIN)
            answered += answer.status == 200
            await asyncio.sleep(0.001)
        assert (await heavy).status == 201
        assert answered >= 20, "each selector left others their turn"
        await api.close()

    asyncio.run(story())


def test_what_is_wrong_with_a_long_selector_is_said_all_the_same():
    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        body = claim("bad", [long_selector(1), long_selector(2) + " && device.nothing == 1"])
        answer = await api.handle(Request("POST", CLAIMS, {}, {}, body), identities.ADMIN)
        status = json.loads(answer.body)
        assert answer.status == 422
        assert [cause["field"] for cause in status["details"]["causes"]] == [
            "spec.devices.requests[0].exactly.selectors[1].cel.expression"
        ]
        await api.close()

    asyncio.run(story())
