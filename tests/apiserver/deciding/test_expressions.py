"""Selectors of a new object are judged without holding up anybody else."""

import asyncio
import json
import threading

import pytest

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.apiserver.deciding import expressions
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


PLACES = {
    "deviceclasses": lambda asked: asked,
    "resourceclaims": lambda asked: {"devices": {"requests": [{"name": "a", "exactly": asked}]}},
    "resourceclaimtemplates": lambda asked: {
        "spec": {"devices": {"requests": [{"name": "a", "exactly": asked}]}}
    },
    "an alternative of a claim": lambda asked: {
        "devices": {"requests": [{"name": "a", "firstAvailable": [{"name": "b", **asked}]}]}
    },
    "a claim with a field too many": lambda asked: {
        "spec": {"x": 1},
        "devices": {"requests": [{"name": "a", "exactly": asked}]},
    },
}


@pytest.fixture
def compiled_by(monkeypatch):
    """The threads that compiled something."""
    threads = set()
    plain = expressions.compile_selector

    def compile_selector(*what):
        threads.add(threading.current_thread())
        return plain(*what)

    monkeypatch.setattr(expressions, "compile_selector", compile_selector)
    return threads


@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply"])
@pytest.mark.parametrize("place", PLACES)
def test_long_expressions_are_compiled_aside_wherever_they_are(api, compiled_by, place, verb):
    plural = place if " " not in place else "resourceclaims"
    at = f"/apis/resource.k8s.io/v1{'' if plural == 'deviceclasses' else '/namespaces/default'}/{plural}"
    named = {} if plural == "deviceclasses" else {"deviceClassName": "g"}

    def wanted(expression):
        spec = PLACES[place]({**named, "selectors": [{"cel": {"expression": expression}}]})
        kind = {"deviceclasses": "DeviceClass", "resourceclaims": "ResourceClaim"}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind.get(plural, "ResourceClaimTemplate"),
            "metadata": {"name": "a"},
            "spec": spec,
        }

    if verb in ("update", "patch"):
        assert api("POST", at, wanted('device.driver == "d.example.com"')).status == 201
        compiled_by.clear()
    match verb:
        case "create":
            done = api("POST", at, wanted(long_selector(1)))
        case "update":
            done = api("PUT", f"{at}/a", wanted(long_selector(1)))
        case "patch":
            done = api("PATCH", f"{at}/a", wanted(long_selector(1)), media="application/merge-patch+json")
        case _:
            done = api(
                "PATCH",
                f"{at}/a",
                wanted(long_selector(1)),
                media="application/apply-patch+yaml",
                fieldManager="m",
            )
    # The spec of claims and templates cannot be changed; what is new in it is judged all the same.
    assert done.status in (200, 201) or (done.status == 422 and "immutable" in str(done.body)), done.body
    assert threading.main_thread() not in compiled_by


def test_what_is_known_is_not_compiled_again(api, compiled_by):
    for name in ("a", "b"):
        exactly = {"deviceClassName": "g", "selectors": [{"cel": {"expression": long_selector(1)}}]}
        spec = {"devices": {"requests": [{"name": "a", "exactly": exactly}]}}
        assert api("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec}).status == 201
        assert bool(compiled_by) == (name == "a")
        compiled_by.clear()
