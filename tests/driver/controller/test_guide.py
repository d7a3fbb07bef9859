"""The page for administrators, users and authors of drivers, and the driver that it shows."""

import importlib.util
import re
from pathlib import Path

from allot.base import Metrics
from allot.driver import controller as kit
from driver.controller.world import DRIVER, NS, tell
from driver.world import until

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "classic-drivers.md").read_text()
EXAMPLES = ROOT / "examples" / "classic"


def test_the_page_shows_the_example_to_the_letter():
    for name in ("controller.py", "node.py"):
        assert f"```python\n{(EXAMPLES / name).read_text()}```" in PAGE


def test_the_driver_of_the_page_works():
    """3063-STATE-11: what there is, and who has it, is the driver's own affair."""
    spec = importlib.util.spec_from_file_location("licences", EXAMPLES / "controller.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    async def story(world):
        await world.make_class("licence", "licence.example.com")
        driver = kit.Controller(
            "licence.example.com",
            example.allocate,
            example.deallocate,
            example.unsuitable_nodes,
            example.begin,
            refresh_s=0.5,
        )
        pods = []
        for name in ("a", "b", "c"):
            await world.claim(name, of="licence")
            pods.append(await world.pod(f"p-{name}", name))
        async with kit.controlling(driver, kit.Around(world.server.client(DRIVER), metrics=Metrics())):
            for pod in pods[:2]:
                await world.scheduling(pod, "n1", "n1")
            handles = {
                (await world.until_allocated(name))["allocation"]["resourceHandle"] for name in ("a", "b")
            }
            assert handles == set(example.LICENCES)
            await world.scheduling(pods[2], "n1", "n1", "n2")
            await world.until_answered({"entry-c": {"n1", "n2"}}, "p-c")
            await world.claims.patch("a", {"status": {"reservedFor": None}}, NS, subresource="status")
            await world.claims.delete("a", NS)
            await world.until_allocated("c")

            async def is_counted():
                return len(example.held) == 2

            await until(is_counted)

    tell(story)


def test_each_driver_says_what_administrators_users_and_containers_need_to_know():
    """3063-STORY-02, 3063-RISK-11, 3063-GRAD-03: parameters, what a container sees, and which privileges a
    driver of the kind needs."""
    rows = dict(re.findall(r"^\| `(mock|gpu-memory|fabric|fpga)` \|(.*)\|$", PAGE, re.M))
    assert rows.keys() == {"mock", "gpu-memory", "fabric", "fpga"}
    for name, row in rows.items():
        cells = [cell.strip() for cell in row.split("|")]
        assert len(cells) == 4 and all(cells), name
        for yaml in re.findall(r"`([a-z-]+\.yaml)`", cells[0]):
            assert (EXAMPLES / yaml).exists()
    readme = (ROOT / "README.md").read_text()
    assert "(docs/classic.md)" in readme and "(docs/classic-drivers.md)" in readme


def test_the_page_gives_authors_the_advice_that_the_specification_gives():
    """3063-GRPC-08: whatever may fail belongs into `allocate`. 3063-CLAIM-16: limits rise. 3063-SCALE-06: no
    calls to a cloud provider but a driver's own. 3063-PARAM-14: secrets. 3063-LOCAL-01: inventories."""
    for said in (
        "**Do in `allocate` whatever may fail.**",
        "may rise in later versions and never fall",
        "Nothing of this calls a cloud\nprovider",
        "Secrets have no place in claims",
        "is its own affair: no kind of the API says what is available",
    ):
        assert said in PAGE
