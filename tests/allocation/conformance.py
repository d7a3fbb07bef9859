"""The published conformance cases, where they are at hand.

They are data about Kubernetes' behaviour, kept beside the project and not in it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "conformance" / "allocator"

CONTRADICTORY = "optional-node-operations"
"""This case and `optional-node-operations-missing-feature` state the same problem, word for
word, and expect different answers: the node's declared features were lost when they were
written down. The rule decides: a node that declares nothing cannot skip node operations."""

needed = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance cases in {FOLDER}")


def cases() -> list[Any]:
    """One parameter a case."""
    return [
        pytest.param(
            json.loads(path.read_text()),
            id=path.stem,
            marks=pytest.mark.xfail(reason="contradicts another case of the same input", strict=True)
            if path.stem == CONTRADICTORY
            else (),
        )
        for path in sorted(FOLDER.glob("*.json"))
    ]


def stated(case: Any) -> Any:
    """The problem without its answer."""
    return {key: value for key, value in case.items() if key not in ("results", "error")}


def expected_verdict(case: Any) -> str:
    if case.get("error"):
        return "error"
    return "fits" if case.get("results") or not case["claims"] else "does-not-fit"
