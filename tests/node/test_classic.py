"""Classic claims on a node: who is not listed in them never starts (KEP-3063)."""

import asyncio

import pytest

from allot.api import Object, core, encode
from allot.node.claims import NotReady, Unreserved, claims_of, require_ready
from api.classic.objects import DRIVER, allocated, claim, consumer

from .objects import NS, pod
from .test_pod_loop import NODE, Story, led, story, tell

OTHER = {"kind": "Pod", "apiVersion": "v1", "name": "q", "uid": "other", "controller": True}


def of_v1alpha1(here: Story):
    return here.client.resource("resource.k8s.io", "v1alpha1", "resourceclaims")


async def reserve(here: Story, *consumers: dict[str, str], **allocation: object) -> None:
    status = {**allocated(**allocation), "reservedFor": list(consumers)}
    await of_v1alpha1(here).patch("c", {"status": status}, NS, subresource="status")


def of(made: Object) -> dict[str, str]:
    return consumer(made.uid, made.name)


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_pod_that_is_not_listed_ends_at_once_and_an_event_says_why(is_alone):
    """3063-FLOW-12, 3063-NODE-03, 3063-CLAIM-10, 3063-REF-02, 3063-PRR-08: the uid counts, not the name."""

    async def whole() -> None:
        async with story() as here, led(here, alone=is_alone):
            await of_v1alpha1(here).create(claim())
            await reserve(here, consumer("a former one", "p"))
            await here.bound("p", "c")
            await here.until_phase("p", "Failed")
            status = (await here.pods.get("p", NS)).fields["status"]
            assert status["reason"] == "ClaimNotReserved"
            assert status["message"] == "Pod was rejected: claim c is not reserved for this pod"
            assert "claim c is not reserved for this pod" in here.complaints[-1]
            assert not any(one.startswith(("prepare", "run")) for one in here.machine.asked)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_pod_that_is_listed_runs():
    """3063-FLOW-13, 3063-COMP-06: prepared, and then started."""

    async def play(here: Story) -> None:
        entries = [{"name": "c", "resourceClaimName": "c"}]
        spec = {"containers": [{"name": "main", "image": "app:1"}], "resourceClaims": entries}
        made = await here.pods.create({"metadata": {"name": "p", "namespace": NS}, "spec": spec})
        await of_v1alpha1(here).create(claim())
        await reserve(here, of(made))
        await here.pods.bind("p", NS, NODE)
        await here.until_phase("p", "Running")
        assert here.machine.asked[:2] == ["prepare p", "run p with 1"]

    tell(play)


def test_a_reservation_that_the_cache_does_not_show_yet_is_not_missed():
    """The server has the last word before a pod ends for it."""

    async def play(here: Story) -> None:
        await of_v1alpha1(here).create(claim())
        made = await here.bound("p", "c")

        async def just_in_time() -> None:
            await reserve(here, of(made))

        here.before_get = just_in_time
        await here.until_phase("p", "Running")

    tell(play)


@pytest.mark.parametrize(
    ("metadata", "status", "wrong"),
    [
        ({"ownerReferences": [OTHER]}, {"driverName": DRIVER, "allocation": {}}, NotReady),
        ({}, {}, Unreserved),
        ({}, {"driverName": DRIVER, "allocation": {}}, Unreserved),
    ],
)
def test_a_claim_of_another_pod_is_waited_for(metadata, status, wrong):
    """3063-NODE-03, 3063-CORE-10, 3063-CORE-01 and X-15: it may go, and the pod's own come."""
    body = {"metadata": {"name": "c", "uid": "u", **metadata}, "spec": {"resourceClassName": "gpu"}}
    with pytest.raises(NotReady) as raised:
        require_ready(pod().view(core.Pod), Object(encode({**body, "status": status})))
    assert type(raised.value) is wrong


def test_an_entry_that_names_neither_claim_nor_template_is_not_understood_and_waited_for():
    """3063-CORE-08: of a newer API."""
    unknown = pod(spec={"resourceClaims": [{"name": "gpu"}]}).view(core.Pod)
    with pytest.raises(NotReady, match="gpu"):
        claims_of(unknown, lambda name: None)
