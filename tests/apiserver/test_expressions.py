"""Selectors of a new object are judged without holding up anybody else."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Gates, Request, resource
from allot.apiserver import ApiServer, expressions, identities
from allot.store import MemoryStore
from api.occasion import FakeOccasion
from api.resource.writes import ALL_GATES

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


@pytest.mark.parametrize("plural", ["deviceclasses", "resourceclaims", "resourceclaimtemplates"])
def test_expressions_are_judged_before_the_rules_ask(api, monkeypatch, plural):
    """In every kind that has some, where there is too much to read at once."""
    monkeypatch.setattr(expressions, "_AT_ONCE_MAX", 0)
    monkeypatch.setattr(expressions.CelExpressions, "check_selector", lambda *_: pytest.fail("judged late"))
    selectors = [{"cel": {"expression": 'device.driver == "d.example.com"'}}]
    claim = {
        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g", "selectors": selectors}}]}
    }
    spec = {"deviceclasses": {"selectors": selectors}, "resourceclaims": claim}.get(plural, {"spec": claim})
    where = "" if plural == "deviceclasses" else "/namespaces/default"
    made = api("POST", f"/apis/resource.k8s.io/v1{where}/{plural}", {"metadata": {"name": "a"}, "spec": spec})
    assert made.status == 201, made.body


# What is judged beforehand

texts = st.sampled_from(["", "true", "cost 1", "wrong", "dear"])
asked = st.fixed_dictionaries(
    {},
    optional={
        "selectors": st.lists(
            st.fixed_dictionaries(
                {}, optional={"cel": st.fixed_dictionaries({}, optional={"expression": texts})}
            ),
            max_size=3,
        ),
        "derivedAttributes": st.lists(
            st.fixed_dictionaries({"name": st.just("d.example.com/a")}, optional={"expression": texts}),
            max_size=3,
        ),
    },
)
requests = st.lists(
    st.fixed_dictionaries({"name": st.just("r")}, optional={"exactly": asked}), max_size=3
) | st.lists(st.fixed_dictionaries({"name": st.just("r"), "firstAvailable": st.lists(asked)}), max_size=3)
specs = st.fixed_dictionaries(
    {}, optional={"devices": st.fixed_dictionaries({}, optional={"requests": requests})}
)
objects = st.one_of(
    st.tuples(st.just(resource.DEVICE_CLASS), asked),
    st.tuples(st.just(resource.RESOURCE_CLAIM), specs),
    st.tuples(st.just(resource.RESOURCE_CLAIM_TEMPLATE), st.fixed_dictionaries({}, optional={"spec": specs})),
)


class Asked(FakeOccasion):
    """Remembers what the rules wanted to know."""

    def __init__(self):
        super().__init__(verb="create", gates=Gates(ALL_GATES))
        object.__setattr__(self, "heard", set())

    def check_selector(self, expression):
        self.heard.add(("selector", expression))
        return super().check_selector(expression)

    def check_attribute(self, expression):
        self.heard.add(("attribute", expression))
        return super().check_attribute(expression)


@given(objects)
def test_the_rules_ask_only_about_what_was_read_beforehand(made):
    kind, spec = made
    new = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    occasion = Asked()
    kind.rules.prepare_create(new, occasion)
    kind.rules.validate_create(new, occasion)
    assert occasion.heard <= set(expressions._expressions(new["spec"]))


def test_parameters_of_a_driver_are_not_read():
    parameters = {"selectors": [{"cel": {"expression": "x"}}], "devices": {"requests": []}}
    config = [{"opaque": {"driver": "d.example.com", "parameters": parameters}}]
    assert list(expressions._expressions({"devices": {"config": config}, "config": config})) == []
