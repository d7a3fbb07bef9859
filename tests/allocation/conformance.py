"""The published conformance cases, where they are at hand.

They are data about Kubernetes' behaviour, kept beside the project and not in it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "conformance"
FOLDERS = (SHARED / "allocator", SHARED / "allocator-found")
"""Upstream's own test cases, and those that comparing random problems with upstream left behind."""

needed = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS), reason=f"no conformance cases in {SHARED}"
)


def cases() -> list[Any]:
    """One parameter a case."""
    return [
        pytest.param(json.loads(path.read_text()), id=path.stem)
        for folder in FOLDERS
        for path in sorted(folder.glob("*.json"))
    ]


def stated(case: Any) -> Any:
    """The problem without its answer."""
    return {key: value for key, value in case.items() if key not in ("results", "error")}


def expected_verdict(case: Any) -> str:
    if case.get("error"):
        return "error"
    return "fits" if case.get("results") or not case["claims"] else "does-not-fit"
