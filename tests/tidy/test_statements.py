"""Every statement of KEP-5004 is named by a test, and every one that a test names exists.

The list of statements is not part of this repository; where it lies beside it, it is held to. What the
autoscaler (CA) does is not built yet.
"""

import re

import pytest

from tidy.documents import ROOT

STATEMENTS = ROOT.parent / "shared" / "conformance" / "statements" / "kep-5004.md"
NAME = re.compile(r"\b5004-[A-Z]+-\d+\b")
LATER = ("5004-CA-",)
DECISIONS = "5004-OPEN-"

pytestmark = pytest.mark.skipif(not STATEMENTS.exists(), reason=f"{STATEMENTS} is not there")


def stated() -> set[str]:
    rows = (NAME.search(line) for line in STATEMENTS.read_text().splitlines() if line.startswith("| 5004-"))
    return {row[0] for row in rows if row is not None}


def named() -> dict[str, str]:
    """Statement -> a file of a test that names it."""
    return {
        name: str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in NAME.findall(path.read_text())
    }


def test_every_statement_that_a_test_names_exists():
    unknown = {name: path for name, path in named().items() if name not in stated()}
    assert not unknown


def test_every_statement_is_named_by_a_test():
    wanted = {name for name in stated() if not name.startswith((*LATER, DECISIONS))}
    assert len(wanted) > 100
    assert sorted(wanted - named().keys()) == []
