"""Planted bugs are edits of the code as it is: each must still find its text."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def planted(script: str, folder: str) -> list[tuple[str, Path, str]]:
    spec = importlib.util.spec_from_file_location(script, ROOT / "tools" / f"{script}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [(mutant.name, ROOT / folder / mutant.file, mutant.old) for mutant in module.MUTANTS]


PLANTED = [*planted("sim_mutants", ""), *planted("mutants", "src/allot/allocation")]


@pytest.mark.parametrize(("name", "file", "old"), PLANTED, ids=[name for name, _, _ in PLANTED])
def test_a_planted_bug_can_still_be_planted(name: str, file: Path, old: str):
    assert old in file.read_text(), name
