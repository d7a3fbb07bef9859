"""docs/controllers.md: what shows a behaviour is there and cites it, and every metric is explained."""

import ast
import re

import pytest

from allot.api import Gates
from allot.controllers import ALL
from controllers.world import World, tell
from tidy.documents import ROOT, section

PAGE = ROOT / "docs" / "controllers.md"
SECTIONS = re.findall(r"^### (6\.\d) ", PAGE.read_text(), re.M)


def docstrings() -> dict[str, str]:
    """Name -> docstring, of every test of the repository; a name that is used twice has both."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[node.name] = f"{found.get(node.name, '')}\n{ast.get_docstring(node) or ''}"
    return found


@pytest.mark.parametrize("number", SECTIONS)
def test_each_behaviour_is_shown_by_tests_that_cite_it(number):
    heading = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"### {number} "))
    rows = re.findall(r"^\| .* \| .* \| (.*) \|$", section(PAGE, heading), re.M)[1:]
    there = docstrings()
    assert len(rows) > 3
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row)
        assert names, row
        for name in names:
            assert name in there, f"no test is called {name}"
        cited = any(
            re.search(rf"Rule (?:\d+\.\d+ and )?{re.escape(number)}\b", there[name]) for name in names
        )
        assert cited, f"{names} do not cite {number}"


def test_every_test_that_is_named_exists():
    """Also in sections that cite nothing."""
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert named <= docstrings().keys(), named - docstrings().keys()


def test_every_metric_is_explained():
    explained = set(re.findall(r"`([a-z_]+)`", section(PAGE, "## Metrics")))

    async def story(here: World) -> None:
        await here.quiet()
        shown = set(re.findall(r"^# TYPE (\w+) ", here.metrics.text(), re.M))
        assert shown <= explained, shown - explained

    tell(story, *ALL, gates=Gates({"DRAResourcePoolStatus": True}))
