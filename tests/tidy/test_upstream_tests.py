"""What docs/upstream-tests.md calls covered is covered by tests that exist."""

import re

from tidy.documents import ROOT

TEXT = (ROOT / "docs" / "upstream-tests.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_is_named_exists():
    for path, name in NAMED.findall(TEXT):
        source = ROOT / path
        assert source.exists(), path
        assert re.search(rf"^(?:async )?def {name}\b", source.read_text(), re.M), f"{path}::{name}"


def test_every_row_says_what_covers_it():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "---" not in line]
    heads = ("| section |", "| upstream |")
    for row in rows:
        if not row.startswith(heads):
            last = row.rstrip(" |").rsplit("|", 1)[1].strip()
            known = ("open", "likewise", "not served", "not applicable")
            assert NAMED.search(last) or last.startswith(known), row
