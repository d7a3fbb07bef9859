"""docs/differences.md says of every kind that upstream serves what becomes of it here."""

import re

import pytest

from allot.api import custom, kinds, rbac, resource
from allot.api.kinds import stored
from allot.apiserver.reviewing import REVIEWS
from tidy.documents import ROOT, section

PAGE = ROOT / "docs" / "differences.md"
LIST = ROOT.parent / "shared" / "conformance" / "api-resources-1.37.txt"


def rows() -> dict[str, str]:
    """plural -> what becomes of it."""
    found = {}
    for names, verdict in re.findall(r"^\| (.*) \| (.*) \|$", section(PAGE, "## Kinds of upstream"), re.M):
        for name in re.findall(r"[a-z]+", names):
            found.setdefault(name, verdict)
    return found


def test_every_kind_that_is_served_is_in_the_table_and_every_stored_one_is_called_so():
    told = rows()
    served = {one.plural for one in (*kinds.ALL, *rbac.KINDS, *resource.KINDS, *custom.KINDS)}
    ours = {one.plural for one in kinds.ALL if one.group.endswith(".allot.dev")}
    ours.add("resourcepoolstatusrequests")
    assert served - ours <= told.keys(), served - ours - told.keys()
    assert all("stored" in told[one.plural] for one in stored.KINDS)
    unserved = {name for name, verdict in told.items() if verdict == "not served"}
    assert not unserved & served


@pytest.mark.skipif(not LIST.exists(), reason="the list of upstream's kinds is not there")
def test_every_kind_of_upstream_has_its_verdict():
    told = rows()
    upstream = {line.split()[0] for line in LIST.read_text().splitlines() if line.strip()}
    reviews = {review[2] for review in REVIEWS}
    missing = {name for name in upstream if name not in told and not name.endswith("reviews")}
    assert not missing, missing
    assert {name for name in upstream if name.endswith("reviews")} <= reviews
