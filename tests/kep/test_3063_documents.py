"""KEP-3063, what it wants to be written down: sentences that somebody who reads them acts on."""

import pytest

from tidy.documents import ROOT

PAGE = " ".join((ROOT / "docs" / "classic.md").read_text().split())


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("3063-CLAIM-16", "These numbers may grow in a later version and never shrink"),
        ("3063-RISK-11", "Nothing of this API needs root or a privilege"),
        ("3063-PARAM-14", "Secrets have no place in claims and classes"),
        ("3063-GRPC-08", "Whatever may fail belongs into allocation"),
        ("3063-LOCAL-01", "How a driver connects its controller with its nodes is its own affair"),
        ("3063-SCALE-06", "Nobody here calls a cloud provider; a driver may"),
        (
            "3063-PRR-10",
            "`resource_controller_create_failures_total` grows. Events on pods and claims say why",
        ),
        ("3063-GRAD-03", "## For authors of drivers, and for those who run them"),
    ],
)
def test_the_page_about_classic_claims_says_it(statement, said):
    assert said in PAGE, statement


def test_what_runs_no_containers_needs_no_cdi():
    """3063-TEST-05: the tests of API, claim controller and scheduler can be run against any cluster."""
    tests = ROOT / "tests"
    files = [
        *(tests / "api" / "classic").glob("test_*.py"),
        tests / "controllers" / "resourceclaims" / "test_classic.py",
        tests / "scheduler" / "test_classic.py",
    ]
    assert len(files) > 5
    needy = [path.name for path in files if "allot.wire" in path.read_text() or "cdi" in path.read_text()]
    assert needy == []
