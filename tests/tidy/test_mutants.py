"""Planted bugs are edits of the code as it is: each must still find its text, and leave code that runs."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Planted = tuple[str, Path, str, str]


def planted(script: str, folder: str) -> list[Planted]:
    spec = importlib.util.spec_from_file_location(script, ROOT / "tools" / f"{script}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [(one.name, ROOT / folder / one.file, one.old, one.new) for one in module.MUTANTS]


IN_THE_SIMULATOR = planted("sim_mutants", "")
IN_THE_ALLOCATOR = planted("mutants", "src/allot/allocation")
ALL = [*IN_THE_SIMULATOR, *IN_THE_ALLOCATOR]


@pytest.mark.parametrize(("name", "file", "old", "new"), ALL, ids=[one[0] for one in ALL])
def test_a_planted_bug_can_still_be_planted(name: str, file: Path, old: str, new: str):
    text = file.read_text()
    assert old in text, name
    assert old != new, name
    compile(text.replace(old, new), str(file), "exec")  # what cannot be read is found by anything


@pytest.mark.parametrize("table", [IN_THE_SIMULATOR, IN_THE_ALLOCATOR], ids=["simulator", "allocator"])
def test_a_planted_bug_can_be_asked_for_by_its_name(table: list[Planted]):
    assert [name for name, times in Counter(one[0] for one in table).items() if times > 1] == []
