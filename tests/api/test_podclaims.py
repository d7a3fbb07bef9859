"""Which claims a pod uses."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Object, core, encode, podclaims
from allot.api.podclaims import Origin, UsedClaim
from allot.controllers.resourceclaims import views


def pod(
    claims: Sequence[Any] = (), statuses: Sequence[Any] = (), extended: str | None = None
) -> dict[str, Any]:
    status: dict[str, Any] = {"resourceClaimStatuses": statuses}
    if extended is not None:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": extended}
    return {"metadata": {"name": "p", "uid": "u"}, "spec": {"resourceClaims": claims}, "status": status}


def used(fields: dict[str, Any]) -> list[UsedClaim]:
    return list(podclaims.used(Object(encode(fields)).view(core.Pod)))


NAMED = {"name": "a", "resourceClaimName": "mine"}
MADE = {"name": "b", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (pod(), []),
        (pod([NAMED]), [UsedClaim("mine", Origin.NAMED, "a")]),
        (pod([MADE]), [UsedClaim("", Origin.TEMPLATE, "b")]),
        (
            pod([MADE], [{"name": "b", "resourceClaimName": "p-b-x"}]),
            [UsedClaim("p-b-x", Origin.TEMPLATE, "b")],
        ),
        (pod([MADE], [{"name": "b"}]), []),
        (pod(extended="p-ext"), [UsedClaim("p-ext", Origin.EXTENDED)]),
        (pod(extended=""), []),
        (pod([NAMED], [{"name": "a", "resourceClaimName": "other"}]), [UsedClaim("mine", Origin.NAMED, "a")]),
        (pod([], [{"name": "b", "resourceClaimName": "other"}]), []),
    ],
    ids=[
        "none",
        "named",
        "not made yet",
        "made",
        "none is wanted",
        "extended",
        "extended without a name",
        "what the spec names goes before what the status says",
        "a status without an entry",
    ],
)
def test_what_a_pod_uses(fields, found):
    assert used(fields) == found


def test_the_order_is_that_of_the_spec_and_extended_resources_come_last():
    fields = pod([MADE, NAMED], [{"name": "b", "resourceClaimName": "p-b-x"}], "p-ext")
    assert [one.name for one in used(fields)] == ["p-b-x", "mine", "p-ext"]
    assert [one.is_generated for one in used(fields)] == [True, False, True]


def test_a_name_is_told_once_and_only_when_it_is_known():
    fields = pod([NAMED, {"name": "c", "resourceClaimName": "mine"}, MADE])
    assert podclaims.names(podclaims.pod_of(fields)) == ("mine",)


def test_null_is_as_good_as_nothing():
    fields = {"metadata": {}, "spec": {"resourceClaims": None}, "status": None}
    assert podclaims.names(podclaims.pod_of(fields)) == ()


NAMES = st.sampled_from(["a", "b", "c"])
ENTRIES = st.lists(
    st.builds(
        lambda name, claim: {"name": name, "resourceClaimName": claim} if claim else {"name": name},
        NAMES,
        st.sampled_from(["x", "y", ""]),
    ),
    max_size=3,
    unique_by=lambda one: one["name"],
)


@settings(deadline=None)
@given(ENTRIES, ENTRIES, st.sampled_from([None, "", "e"]))
def test_all_views_of_a_pod_give_the_same_answer(claims, statuses, extended):
    fields = pod(claims, statuses, extended)
    object = Object(encode(fields))
    assert podclaims.names(object.view(core.Pod)) == podclaims.names(podclaims.pod_of(fields))
    assert podclaims.names(object.view(core.Pod)) == object.view(views.Pod).claim_names
