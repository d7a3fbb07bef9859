"""Typed clients of every version write back what they read, in any order, and nothing is lost (S3).

A typed client keeps the fields that its types have names for: upstream's of today in v1, v1beta2 and v1beta1,
those of KEP-3063 in v1alpha1. Whatever it does not know is missing from what it sends.
"""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import classic
from allot.api.schema import extras
from allot.api.schema.builtin import TABLE
from api.classic.objects import DRIVER, ON_N1, claim, consumer, template
from api.context import FakeContext
from api.resource import objects as structured
from api.resource.writes import create, update

CLAIM, TEMPLATE = classic.RESOURCE_CLAIM, classic.RESOURCE_CLAIM_TEMPLATE
ONLY_STRUCTURED = (
    "devices",
    "allocationTimestamp",
)  # what v1alpha1 has besides, to show claims of both shapes


def _types() -> dict[str, dict[str, str]]:
    known = json.loads(TABLE.read_bytes())
    for short, members in extras.TYPES.items():
        known[short] = {name: one for name, one in members.items() if name not in ONLY_STRUCTURED}
    return known


TYPES = _types()


def typed(value: Any, expression: str) -> Any:
    if value is None or not expression.lstrip("!").startswith(("#", "[#")):
        return value
    short = expression.lstrip("!")
    if short.startswith("["):
        return [typed(one, short[1:]) for one in value]
    known = TYPES[short[1:]]
    return {name: typed(one, known[name]) for name, one in value.items() if name in known}


def stored(kind, body, version, status=None):
    written = create(kind, body, version)
    assert written.errors == []
    return {**written.hub, "status": status} if status is not None else written.hub


def written_back(kind, hub, version, is_status):
    """What is stored after a client of that version has read the object and written it back."""
    served = kind.version(version)
    seen = served.from_hub(copy.deepcopy(hub))
    sent = typed(seen, f"#resource_{version}.{kind.kind}")
    if not is_status:
        answer = update(kind, hub, sent, version)
        assert answer.causes == []
        return answer.hub
    context = FakeContext(version=version)
    new = served.to_hub(copy.deepcopy(sent))
    new["spec"], new["metadata"] = hub["spec"], hub["metadata"]
    kind.rules.prepare_status(new, hub, context)
    assert kind.rules.validate_status(new, hub, context) == []
    return new


PARAMETERS = {"kind": "K", "name": "n", "apiGroup": "gpu.example.com"}
USED = {"allocation": {"resourceHandle": "h", "shareable": True, "nodeSelector": ON_N1}, "driverName": DRIVER}
CLAIMS = [
    stored(CLAIM, claim(parametersRef=PARAMETERS), "v1alpha1"),
    stored(CLAIM, claim(allocationMode="Immediate"), "v1alpha1", {**USED, "reservedFor": [consumer()]}),
    stored(CLAIM, claim(), "v1alpha1", {**USED, "deallocationRequested": True}),
    stored(CLAIM, claim(), "v1alpha1", {"allocation": {}, "driverName": DRIVER}),
    stored(CLAIM, structured.claim(), "v1"),
    stored(
        CLAIM,
        structured.claim(),
        "v1",
        {
            "allocation": {**structured.allocation(node="n1"), "allocationTimestamp": "2026-11-15T08:00:00Z"},
            "reservedFor": [consumer()],
            "devices": [{**structured.report(), "conditions": None}],
        },
    ),
]
TEMPLATES = [
    stored(TEMPLATE, template(parametersRef=PARAMETERS), "v1alpha1"),
    stored(TEMPLATE, structured.template(), "v1"),
]
steps = st.lists(st.tuples(st.sampled_from([one.name for one in CLAIM.versions]), st.booleans()), max_size=6)


@settings(max_examples=150)
@given(st.sampled_from(CLAIMS), steps)
def test_a_claim_of_either_shape_is_the_same_after_any_number_of_them(hub, steps):
    now = hub
    for version, is_status in steps:
        now = written_back(CLAIM, now, version, is_status)
        assert (now["spec"], now["status"]) == (hub["spec"], hub["status"]), version


@settings(max_examples=50)
@given(st.sampled_from(TEMPLATES), steps)
def test_a_template_likewise(hub, steps):
    now = hub
    for version, _ in steps:
        now = written_back(TEMPLATE, now, version, False)
        assert now["spec"] == hub["spec"], version
