"""A pod at a time: unsuitable nodes, and the allocation once a node is selected."""

import asyncio

import pytest

from allot.api import errors
from allot.driver import controller as kit
from driver.controller.world import FINALIZER, ME, NS, Recording, owner, tell
from driver.world import until


def test_a_selected_node_is_allocated_for_with_the_pods_reservation_in_one_write():
    """3063-FLOW-07, 3063-PSCHED-09, 3063-STATE-10, 3063-REF-03, 3063-COORD-13: finalizer first, then one
    status write; no answer is needed in the PodScheduling (3063-PSCHED-14)."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        made, pod = await world.claim(), await world.pod()
        async with world.driver(driver):
            found = await world.scheduling(pod, "n1", "n1", "n2")
            await world.until_allocated()
            seen = [
                event.object.fields
                async for event in world.claims.watch(
                    NS, resource_version=made.resource_version, timeout_s=1, bookmarks=False
                )
            ]
            after = await world.schedulings.get("p", NS)
        assert [one["metadata"]["finalizers"] for one in seen] == [[FINALIZER]] * 2
        assert not seen[0].get("status")
        status = seen[1]["status"]
        assert status["driverName"] == ME
        assert status["allocation"]["resourceHandle"] == "handle-c"
        assert status["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pod.uid}]
        assert after.resource_version == found.resource_version
        assert driver.made("allocate") == [("c", "n1")]

    tell(story)


def test_a_driver_answers_before_a_node_is_selected_and_allocates_only_then():
    """3063-PSCHED-04, 3063-PSCHED-13, 3063-PSCHED-15, 3063-COORD-02: entries are named as in the pod."""

    async def story(world):
        driver = Recording()
        driver.per_node = 0
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "", "n1", "n2")
            await world.until_answered({"entry-c": {"n1", "n2"}})
            driver.per_node = 1
            await world.until_answered({"entry-c": set()})  # 3063-PSCHED-20, 3063-PSCHED-19
            assert driver.made("allocate") == []
            assert await world.finalizers() == []
            await world.select("p", "n2")
            await world.until_allocated()
        assert driver.made("allocate") == [("c", "n2")]

    tell(story)


def test_a_selected_node_that_does_not_suit_is_answered_and_not_tried():
    """3063-FLOW-08, 3063-COORD-04: with the others that do not suit; and the next choice is served."""

    async def story(world):
        driver = Recording()
        driver.held = {"somebody": "n1"}
        driver.per_node = 1
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            driver.held = {"somebody": "n1", "else": "n2"}
            await world.scheduling(pod, "n1", "n1", "n2", "n3")
            await world.until_answered({"entry-c": {"n1", "n2"}})
            assert driver.made("allocate") == []
            await world.select("p", "n3")
            await world.until_allocated()
        assert driver.made("allocate") == [("c", "n3")]

    tell(story)


def test_an_allocation_that_is_refused_makes_the_node_unsuitable():
    """3063-FLOW-08, 3063-PSCHED-18, 3063-CLAIM-06: and leaves neither finalizer nor status."""

    async def story(world):
        driver = Recording()
        driver.refuse = {"n1"}
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1", "n2")
            await world.until_answered({"entry-c": {"n1"}})
            assert await world.finalizers() == []
            assert await world.status() == {}
            assert await world.said("AllocationRefused") == f"{ME}: node n1: refused as asked for"
            await world.select("p", "n2")
            await world.until_allocated()
        assert len(driver.held) == 1

    tell(story)


def test_an_allocation_that_the_selected_node_cannot_use_is_the_drivers_error():
    """3063-PSCHED-08: it is given back, and the node reported."""

    async def story(world):
        driver = Recording()

        async def elsewhere(asks, node):
            driver.held |= {ask.claim.uid: "other" for ask in asks}
            return {ask.claim.uid: kit.Allocation("h", kit.on_nodes("other")) for ask in asks}

        driver.allocate = elsewhere
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            await world.until_answered({"entry-c": {"n1"}})
            await world.until_free()
            assert "where node n1 cannot use it" in await world.said("AllocationRefused")
        assert driver.held == {}

    tell(story)


def test_labels_of_the_node_decide_where_an_allocation_selects_by_them():
    """3063-PSCHED-08."""

    async def story(world):
        driver = Recording()

        async def by_label(asks, node):
            return {ask.claim.uid: kit.Allocation("h", kit.with_labels(zone="a")) for ask in asks}

        driver.allocate = by_label
        nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        for name, zone in (("n1", "b"), ("n2", "a")):
            await nodes.create({"metadata": {"name": name, "labels": {"zone": zone}}})
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1", "n2")
            await world.until_answered({"entry-c": {"n1"}})
            await world.select("p", "n2")
            await world.until_allocated()

    tell(story)


def test_claims_of_one_pod_are_judged_and_allocated_together_or_not_at_all():
    """3063-FLOW-19, 3063-FLOW-17, ALLOC2."""

    async def story(world):
        driver = Recording()
        driver.per_node = 1
        await world.make_class()
        await world.claim("a")
        await world.claim("b")
        pod = await world.pod("p", "a", "b")
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            await world.until_answered({"entry-a": {"n1"}, "entry-b": {"n1"}})
            assert driver.made("allocate") == []
            driver.per_node = 2
            await world.until_allocated("a")
            await world.until_allocated("b")
        assert driver.made("allocate") == [("a", "b", "n1")]

    tell(story)


def test_when_one_of_several_is_refused_the_others_are_given_back():
    """ALLOC2: nothing half is held, and nothing half is written."""

    async def story(world):
        driver = Recording()

        async def first_only(asks, node):
            driver.calls.append(("allocate", *(ask.claim.name for ask in asks), node))
            driver.held[asks[0].claim.uid] = node
            return {asks[0].claim.uid: kit.Allocation(), asks[1].claim.uid: kit.Refused("one is enough")}

        driver.allocate = first_only
        await world.make_class()
        await world.claim("a")
        await world.claim("b")
        pod = await world.pod("p", "a", "b")
        async with world.driver(driver, refresh_s=3600):
            await world.scheduling(pod, "n1", "n1")
            await world.until_answered({"entry-a": set(), "entry-b": {"n1"}})
            for name in ("a", "b"):
                await world.until_free(name)
            await world.quiet()
        assert driver.held == {}
        assert driver.made("allocate") == [("a", "b", "n1")]  # a refusal alone is no reason to try again

    tell(story)


def test_an_allocated_claim_is_not_moved_when_another_node_is_selected():
    """3063-PSCHED-10: only a request to deallocate makes the driver give it up."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1", "n2")
            before = await world.until_allocated()
            await world.select("p", "n2")
            await world.quiet()
            assert await world.status() == before
        assert driver.made("allocate") == [("c", "n1")]
        assert driver.made("deallocate") == []

    tell(story)


def test_of_two_pods_that_want_one_claim_the_first_gets_it_once():
    """3063-STATE-24: each has its own PodScheduling, and the driver carries out one of them."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        pods = [await world.pod(name) for name in ("p1", "p2")]
        async with world.driver(driver):
            await asyncio.gather(*(world.scheduling(pod, f"n-{pod.name}") for pod in pods))
            status = await world.until_allocated()
            await world.quiet()
            assert await world.status() == status
        assert len(driver.made("allocate")) == 1
        assert len(status["reservedFor"]) == 1

    tell(story)


@pytest.mark.parametrize("whose", ["nobody's", "a former pod's", "a pod that is gone"])
def test_a_podscheduling_that_is_not_its_pods_has_no_effect(whose):
    """3063-STATE-07, 3063-PSCHED-03, P5: neither an answer nor an allocation."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        await world.claim("other")
        pod = await world.pod()
        reference = {**owner(pod), **({"uid": "former"} if whose == "a former pod's" else {})}
        if whose == "a pod that is gone":
            await world.pods.delete("p", NS, grace_period_s=0)
        async with world.driver(driver):
            await world.schedulings.create(
                {
                    "metadata": {
                        "name": "p",
                        "namespace": NS,
                        **({"ownerReferences": [reference]} if whose != "nobody's" else {}),
                    },
                    "spec": {"selectedNode": "n1", "potentialNodes": ["n1"]},
                }
            )
            other = await world.pod("q", "other")
            await world.scheduling(other, "n1", "n1")
            await world.until_allocated("other")
            await world.quiet()
            assert await world.answered() == {}
            assert await world.status() == {}
        assert driver.made("allocate") == [("other", "n1")]

    tell(story)


@pytest.mark.parametrize("is_going", [False, True])
def test_for_a_pod_that_went_after_it_was_answered_nothing_is_allocated(is_going):
    """P5: the driver knows the pod, and a node is selected for it when it is gone, or about to be."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        if is_going:
            await world.pods.patch("p", {"metadata": {"finalizers": ["example.com/slow"]}}, NS)
        async with world.driver(driver):
            await world.scheduling(pod, "", "n1")
            await world.until_answered({"entry-c": set()})
            await world.pods.delete("p", NS, grace_period_s=0)
            await world.select("p", "n1")
            await world.quiet(1.0)
            assert driver.made("allocate") == []
            assert await world.finalizers() == []

    tell(story)


def test_a_generated_claim_is_served_for_its_own_pod_alone():
    """3063-LIFE-06, 3063-LIFE-07, 3063-LIFE-08: its name follows from the pod's, and it is the pod's own."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        pods = [await world.pod(name, "t", template=True) for name in ("p1", "p2")]
        await world.claim("p1-entry-t", pod=pods[0])
        await world.claim("p2-entry-t")  # somebody's own, of the same name
        async with world.driver(driver):
            for pod in pods:
                await world.scheduling(pod, "n1", "n1")
            await world.until_allocated("p1-entry-t")
            await world.quiet()
            assert await world.status("p2-entry-t") == {}
        assert driver.made("allocate") == [("p1-entry-t", "n1")]

    tell(story)


def test_a_claim_that_comes_after_its_podscheduling_is_served():
    """3063-FLOW-01: whichever comes first, for named and for generated claims."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        named, generated = await world.pod(), await world.pod("q", "t", template=True)
        async with world.driver(driver):
            await world.scheduling(named, "n1", "n1")
            await world.scheduling(generated, "n1", "n1")
            await world.quiet(0.2)
            await world.claim()
            await world.claim("q-entry-t", pod=generated)
            await world.until_allocated()
            await world.until_allocated("q-entry-t")

    tell(story)


def test_two_drivers_answer_in_one_object_without_losing_a_word():
    """3063-COORD-11, 3063-PSCHED-12, O-24."""

    async def story(world):
        ours = Recording()
        ours.per_node = 0
        await world.make_class()
        await world.make_class("nic", "nic.example.com")
        await world.claim("a")
        await world.claim("b", of="nic")
        pod = await world.pod("p", "a", "b")
        async with world.driver(ours):
            made = await world.scheduling(pod, "", "n1")
            for at in range(20):  # the other driver, which changes its mind
                entry = {"name": "entry-b", "unsuitableNodes": [f"x{at}"]}
                others = [
                    {"name": name, "unsuitableNodes": sorted(nodes)}
                    for name, nodes in (await world.answered()).items()
                    if name != "entry-b"
                ]
                now = await world.schedulings.get("p", NS)
                patch = {
                    "metadata": {"resourceVersion": now.resource_version},
                    "status": {"resourceClaims": [*others, entry]},
                }
                try:
                    await world.schedulings.patch("p", patch, NS, subresource="status")
                except errors.Conflict:
                    continue
                await asyncio.sleep(0)
            await world.schedulings.patch("p", {"spec": {"potentialNodes": ["n1", "n2"]}}, NS)

            async def both():
                found = await world.answered()
                return found.get("entry-a") == {"n1", "n2"} and found.get("entry-b")

            await until(both)
            assert made.uid == (await world.schedulings.get("p", NS)).uid
        assert all("b" not in call for call in ours.made("unsuitable"))

    tell(story)


def test_what_this_driver_allocates_or_frees_shows_in_its_other_answers_at_once():
    """3063-PSCHED-20, O-10: not only after a while."""

    async def story(world):
        driver = Recording()
        driver.per_node = 1
        await world.make_class()
        await world.claim("a")
        await world.claim("b")
        first, second = await world.pod("p1", "a"), await world.pod("p2", "b")
        async with world.driver(driver, refresh_s=3600):
            await world.scheduling(second, "", "n1")
            await world.until_answered({"entry-b": set()}, "p2")
            await world.scheduling(first, "n1", "n1")
            await world.until_answered({"entry-b": {"n1"}}, "p2")
            await world.schedulings.delete("p1", NS)
            await world.claims.patch("a", {"status": {"reservedFor": None}}, NS, subresource="status")
            await world.claims.delete("a", NS)
            await world.until_answered({"entry-b": set()}, "p2")

    tell(story)


def test_entries_of_immediate_claims_are_not_made():
    """3063-PSCHED-16."""

    async def story(world):
        driver = Recording()
        driver.per_node = 0
        await world.make_class()
        await world.claim("a", "Immediate")
        await world.claim("b")
        pod = await world.pod("p", "a", "b")
        async with world.driver(driver):
            await world.scheduling(pod, "", "n1")
            await world.until_answered({"entry-b": {"n1"}})

    tell(story)


def test_a_claim_that_a_pod_names_twice_is_asked_for_once():
    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        pod = await world.pods.create(
            {
                "metadata": {"name": "p", "namespace": NS},
                "spec": {
                    "containers": [{"name": "main", "image": "none"}],
                    "resourceClaims": [{"name": one, "resourceClaimName": "c"} for one in ("x", "y")],
                },
            }
        )
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            await world.until_allocated()
        assert driver.made("allocate") == [("c", "n1")]

    tell(story)


def test_one_allocation_costs_two_writes_and_one_read():
    """3063-SCALE-02: and nothing more while nothing happens."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        seen = []
        handle = world.server.api.handle

        async def counted(request, user):
            if user.name == "gpu-driver" and "watch" not in request.query:
                seen.append(f"{request.method} {request.path.rpartition('/default/')[2]}")
            return await handle(request, user)

        world.server.api.handle = counted
        async with world.driver(driver, refresh_s=0.1):
            seen.clear()
            await world.scheduling(pod, "n1", "n1")
            await world.until_allocated()
            await world.quiet(1)
        assert seen == ["GET pods/p", "PATCH resourceclaims/c", "PATCH resourceclaims/c/status"]

    tell(story)
