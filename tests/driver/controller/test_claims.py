"""A claim at a time: allocated at once, given back, found half done, lost."""

import asyncio

import pytest

from allot.api import errors
from allot.driver.controller import NotUsable
from allot.driver.controller import answers as kit_answers
from driver.controller.world import FINALIZER, ME, NS, Recording, tell
from driver.world import until


def test_an_immediate_claim_is_allocated_with_no_pod_in_existence():
    """3063-MODE-01, 3063-FLOW-03, 3063-CLAIM-09: finalizer, then allocation; nobody has reserved it."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        async with world.driver(driver):
            await world.claim(mode="Immediate")
            status = await world.until_allocated()
        assert status == {"driverName": ME, "allocation": {"resourceHandle": "handle-c"}}
        assert await world.finalizers() == [FINALIZER]
        assert driver.made("allocate") == [("c", None)]

    tell(story)


def test_a_delayed_claim_is_left_alone_while_nobody_wants_it():
    """3063-MODE-02: no finalizer, no status, no word to the driver."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        async with world.driver(driver):
            made = await world.claim()
            await world.claim("other", "Immediate")
            await world.until_allocated("other")
            await world.quiet()
            assert (await world.claims.get("c", NS)).resource_version == made.resource_version
        assert driver.made("allocate") == [("other", None)]

    tell(story)


def test_the_finalizer_is_there_before_the_driver_does_anything():
    """3063-STATE-15, 3063-CLAIM-06, C9."""

    async def story(world):
        driver, seen = Recording(), []

        async def look(asks):
            for ask in asks:
                found = await world.claims.get(ask.claim.name, NS)
                seen.append((found.metadata.finalizers, (found.fields.get("status") or {}).get("allocation")))

        driver.pause = look
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
        assert seen == [([FINALIZER], None)]

    tell(story)


def test_a_deleted_claim_is_deallocated_and_then_let_go():
    """3063-FLOW-16, X-17: one status write that clears everything, then the finalizer; the object goes."""

    async def story(world):
        driver, seen = Recording(), []
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            version = (await world.claims.get("c", NS)).resource_version
            await world.claims.delete("c", NS)
            await world.until_gone()
            async for event in world.claims.watch(NS, resource_version=version, timeout_s=1):
                fields = event.object.fields
                status = fields.get("status") or {}
                seen.append((bool(status), bool(fields["metadata"].get("finalizers"))))
                if event.type == "DELETED":
                    break
        assert seen[0] == (True, True)
        assert (False, True) in seen
        assert (True, False) not in seen
        assert driver.made("deallocate") == [("c", "handle-c")]

    tell(story)


def test_a_claim_in_use_is_not_deallocated_although_it_is_deleted():
    """3063-STATE-14, ANSWER2."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            user = {"resource": "pods", "name": "p", "uid": "1"}
            await world.claims.patch("c", {"status": {"reservedFor": [user]}}, NS, subresource="status")
            await world.claims.delete("c", NS)
            await world.quiet()
            assert driver.made("deallocate") == []
            assert (await world.status())["allocation"]
            await world.claims.patch("c", {"status": {"reservedFor": None}}, NS, subresource="status")
            await world.until_gone()
        assert driver.made("deallocate") == [("c", "handle-c")]

    tell(story)


def test_a_claim_that_is_asked_back_is_cleared_with_the_request():
    """3063-CLAIM-13, 3063-STATE-10: flag, driver and allocation go in one write."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        pod = await world.pod()
        await world.claim()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            await world.until_allocated()
            asked = {"status": {"deallocationRequested": True, "reservedFor": None}}
            await world.schedulings.delete("p", NS)
            await world.claims.patch("c", asked, NS, subresource="status")
            await world.until_free()
            assert await world.status() == {}
        assert driver.made("deallocate") == [("c", "handle-c")]
        assert driver.held == {}

    tell(story)


def test_a_class_that_is_deleted_after_allocation_is_not_missed():
    """3063-CLASS-06, 3063-CLASS-07, 3063-PARAM-09, C11: the name in the status and the finalizer suffice."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            await world.classes.delete("gpu")
            await world.claims.delete("c", NS)
            await world.until_gone()
        assert driver.made("deallocate") == [("c", "handle-c")]

    tell(story)


def test_a_class_that_names_another_driver_later_changes_nothing_for_its_claims():
    """3063-CLAIM-08: the copy stays, and so does who gives it back."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            await world.classes.patch("gpu", {"driverName": "other.example.com"})
            await world.quiet(0.2)
            assert (await world.status())["driverName"] == ME
            await world.claims.delete("c", NS)
            await world.until_gone()

    tell(story)


def test_a_class_that_comes_later_is_waited_for():
    """3063-CLAIM-02, 3063-FLOW-01."""

    async def story(world):
        driver = Recording()
        async with world.driver(driver):
            await world.claim(mode="Immediate")
            await world.quiet(0.2)
            assert driver.made("allocate") == []
            await world.make_class()
            await world.until_allocated()

    tell(story)


def test_a_refused_claim_is_unprotected_told_and_tried_again():
    """3063-RISK-06, 3063-CLAIM-06, O-14: nothing is held, so nothing is protected; the user reads why."""

    async def story(world):
        driver = Recording()
        driver.refuse = {None}
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            assert await world.said("AllocationRefused") == f"{ME}: refused as asked for"

            async def is_unprotected():
                return not await world.finalizers()

            await until(is_unprotected)
            driver.refuse = set()
            await world.until_allocated()

    tell(story)


def test_other_drivers_claims_are_neither_changed_nor_answered_for():
    """3063-CLASS-08, ANSWER1."""

    async def story(world):
        driver = Recording()
        await world.make_class("theirs", "other.example.com")
        await world.make_class()
        async with world.driver(driver):
            theirs = await world.claim("theirs", "Immediate", of="theirs")
            await world.claim(mode="Immediate")
            await world.until_allocated()
            await world.quiet(0.2)
            assert (await world.claims.get("theirs", NS)).resource_version == theirs.resource_version

    tell(story)


# -- crashes and races --------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_killed_driver_left_is_completed_or_undone(when):
    """3063-STATE-18, 3063-TEST-03: a finalizer and no allocation, whatever the driver had done by then."""

    async def story(world):
        second = Recording()
        await world.make_class()
        for name in ("delayed", "deleted"):
            await world.claim(name)
        await world.claim("immediate", "Immediate")
        for name in ("delayed", "deleted", "immediate"):
            await world.claims.patch(name, {"metadata": {"finalizers": [FINALIZER]}}, NS)
        await world.claims.delete("deleted", NS)
        if when == "after":  # it had begun: its records say so
            for name in ("delayed", "deleted", "immediate"):
                try:
                    second.held[(await world.claims.get(name, NS)).uid] = "n1"
                except errors.NotFound:
                    continue
        async with world.driver(second):
            await world.until_allocated("immediate")
            await world.until_gone("deleted")
            await world.until_free("delayed")
        assert second.calls[0] == ("begin", "delayed", "deleted", "immediate")
        assert len(second.held) == 1
        assert ("deallocate", "immediate", "") in second.calls

    tell(story)


def test_deletion_that_wins_the_race_leaves_nothing_allocated():
    """3063-STATE-16: the driver's write fails, and it stops."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        async with world.driver(driver) as work:
            made = await world.claim(mode="Immediate")
            await world.claims.delete("c", NS)
            await world.quiet()
            del made, work
        if driver.made("allocate"):  # the driver won: then it gave back what it had
            assert driver.made("deallocate")
        assert driver.held == {}

    tell(story)


def test_a_claim_deleted_while_it_is_allocated_ends_free():
    """3063-STATE-17, ALLOC4."""

    async def story(world):
        driver = Recording()

        async def delete(asks):
            await world.claims.delete("c", NS)

        driver.pause = delete
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_gone()
        assert driver.held == {}
        assert driver.made("deallocate")

    tell(story)


def test_a_claim_made_anew_never_gets_the_result_meant_for_the_one_before():
    """3063-STATE-21, 3063-STATE-22, CLAIMS3: uid and version are part of the write."""

    async def story(world):
        driver = Recording()

        async def replace(asks):
            if driver.made("allocate") == [("c", None)]:
                await world.claims.patch("c", {"metadata": {"finalizers": None}}, NS)
                await world.claims.delete("c", NS)
                await world.claim()

        driver.pause = replace
        await world.make_class()
        old = await world.claim(mode="Immediate")
        async with world.driver(driver):

            async def is_given_back():
                return driver.made("deallocate")

            await until(is_given_back)
            await world.quiet(0.2)
            new = await world.claims.get("c", NS)
        assert new.uid != old.uid
        assert not new.fields.get("status")
        assert not new.metadata.finalizers
        assert driver.held == {}

    tell(story)


def test_what_was_deleted_by_force_is_freed():
    """3063-STATE-19, 3063-CLAIM-07: finalizers cleared by hand, while the driver runs."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            await world.claims.delete("c", NS)
            try:
                await world.claims.patch("c", {"metadata": {"finalizers": None}}, NS)
            except errors.NotFound:
                return  # the driver was faster

            async def is_free():
                return not driver.held

            await until(is_free)
        assert driver.made("deallocate") == [("c", "handle-c")]

    tell(story)


def test_a_driver_that_comes_up_against_an_empty_cluster_frees_what_its_records_have():
    """3063-STATE-20, 3063-STATE-19, 3063-PARAM-11: `begin` says what is needed, and that is nothing."""

    async def story(world):
        driver = Recording()
        driver.held = {"a-claim-of-a-cluster-that-is-gone": "n1"}
        async with world.driver(driver):
            assert driver.held == {}
        assert driver.calls == [("begin",)]

    tell(story)


def test_a_finalizer_that_somebody_took_away_comes_back():
    """3063-CLAIM-06: never without it while a resource is held."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
            await world.claims.patch("c", {"metadata": {"finalizers": None}}, NS)

            async def is_back():
                return await world.finalizers() == [FINALIZER]

            await until(is_back)
        assert driver.made("deallocate") == []

    tell(story)


def test_a_claim_that_others_change_meanwhile_gets_its_result_all_the_same():
    """3063-FLOW-01: a conflict is tried again, and the driver is asked once."""

    async def story(world):
        driver = Recording()

        async def label(asks):
            await world.claims.patch("c", {"metadata": {"labels": {"who": "cares"}}}, NS)

        driver.pause = label
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
        assert driver.made("allocate") == [("c", None)]
        assert (await world.claims.get("c", NS)).metadata.labels == {"who": "cares"}

    tell(story)


@pytest.mark.parametrize(
    "problem", [RuntimeError("the fabric does not answer"), NotUsable("what a strange claim")]
)
def test_a_driver_that_raises_is_asked_again(problem):
    """3063-FLOW-01, ALLOC3: what may have been begun is undone first."""

    async def story(world):
        driver = Recording()
        driver.fail = [problem]
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):
            await world.until_allocated()
        if isinstance(problem, NotUsable):
            assert await world.said("NotUsable") == f"{ME}: {problem}"
            assert driver.made("deallocate") == []  # it held nothing, and was unprotected
        else:
            assert driver.made("deallocate") == [("c", "")]
        assert driver.made("allocate") == [("c", None)] * 2

    tell(story)


def test_the_authors_functions_are_called_one_at_a_time():
    """CALLING1: a driver that keeps its state in memory needs no locks."""

    async def story(world):
        driver, running = Recording(), []

        async def alone(asks):
            running.append(asks)
            assert len(running) == 1
            await asyncio.sleep(0.01)
            running.remove(asks)

        driver.pause = alone
        await world.make_class()
        for n in range(10):
            await world.claim(f"c{n}", "Immediate")
        async with world.driver(driver):
            for n in range(10):
                await world.until_allocated(f"c{n}")
        assert len(driver.made("allocate")) == 10

    tell(story)


def test_the_finalizers_name_follows_from_the_drivers():
    """O-01."""
    assert kit_answers.finalizer("a.example.com") == "a.example.com/deletion-protection"
