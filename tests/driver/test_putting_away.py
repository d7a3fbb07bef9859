"""A machine that ends its work in order: what drivers hold for claims is let go, and had again if needed."""

from allot.driver import Driver, put_away
from allot.driver.state import boot_id
from driver.world import NAME, pools, prepare, tell


def test_a_claim_that_was_put_away_is_prepared_again_and_nothing_names_its_devices_meanwhile():
    """Also when letting go fails, or ends in a crash: what is no longer sure is not given out as prepared."""
    asked, let_go = [], []

    def prepared(claim):
        asked.append(claim.name)
        return prepare(claim)

    def fail(entry):
        let_go.append(entry.name)
        raise OSError("killed here")

    async def story(world):
        one, other = await world.claim("a", "gpu-0"), await world.claim("b", "gpu-1")
        async with world.driver(prepared, boot_id()) as kubelet:
            first = await kubelet.prepare(one, other)
        await put_away(Driver(NAME, pools, prepared, put_away=fail), world.places)
        assert let_go == ["a", "b"] and world.files() == set()
        async with world.driver(prepared, boot_id()) as kubelet:
            assert await kubelet.prepare(one, other) == first and len(world.files()) == 2

    tell(story)
    assert asked == ["a", "b", "a", "b"]


def test_a_driver_that_holds_nothing_of_the_machine_is_left_as_it_is():
    asked = []

    def prepared(claim):
        asked.append(claim.name)
        return prepare(claim)

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(prepared, boot_id()) as kubelet:
            await kubelet.prepare(claim)
        await put_away(Driver(NAME, pools, prepared), world.places)
        async with world.driver(prepared, boot_id()) as kubelet:
            await kubelet.prepare(claim)

    tell(story)
    assert asked == ["a"]
