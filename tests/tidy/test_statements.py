"""Every statement of KEP-5004, KEP-14 and KEP-4381 is named by a test, and whatever a test names exists.

The lists of statements are not part of this repository; where they lie beside it, they are held to. What the
autoscaler (CA) does for KEP-5004 is not built yet. What is left out for good is in docs/left-out.md.
"""

import re

import pytest

from tidy.documents import ROOT

FOLDER = ROOT.parent / "shared" / "conformance" / "statements"
LATER = ("5004-CA-",)
KEPS = ("5004", "14", "4381")
LEFT_OUT = (ROOT / "docs" / "left-out.md").read_text()

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=f"{FOLDER} is not there")


def name_of(kep: str) -> re.Pattern[str]:
    return re.compile(rf"\b{kep}-[A-Z]+-\d+\b")


def stated(kep: str) -> set[str]:
    lines = (FOLDER / f"kep-{kep}.md").read_text().splitlines()
    rows = (name_of(kep).search(line) for line in lines if line.startswith(f"| {kep}-"))
    return {row[0] for row in rows if row is not None}


def named(kep: str) -> dict[str, str]:
    """Statement -> a file of a test that names it."""
    return {
        name: str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in name_of(kep).findall(path.read_text())
    }


@pytest.mark.parametrize("kep", KEPS)
def test_every_statement_that_a_test_names_exists(kep):
    unknown = {name: path for name, path in named(kep).items() if name not in stated(kep)}
    assert not unknown


@pytest.mark.parametrize("kep", KEPS)
def test_every_statement_is_named_by_a_test(kep):
    """4381-TST-06: the list of its tests, which the specification leaves empty, is that of its statements."""
    wanted = {name for name in stated(kep) if not name.startswith((*LATER, f"{kep}-OPEN-"))}
    assert len(wanted) > 100
    assert sorted(wanted - named(kep).keys() - set(name_of(kep).findall(LEFT_OUT))) == []
