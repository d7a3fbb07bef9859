"""Providers: what a program is run with, and what is told when one fails."""

import asyncio
import sys
from pathlib import Path

import pytest

from allot.autoscaler import CommandProvider, ProviderFailed
from allot.autoscaler.groups import GroupEntry
from allot.autoscaler.providers.hollow import _member

GROUP = GroupEntry(name="gpus")


def program(folder: Path, body: str) -> list[str]:
    path = folder / "provider.py"
    path.write_text(f"import sys, time\nwords = sys.argv[1:]\n{body}\n")
    return [sys.executable, str(path)]


def test_a_program_is_run_with_what_is_to_be_done(tmp_path: Path):
    notes = tmp_path / "notes"
    provider = CommandProvider(program(tmp_path, f"print(*words, file=open({str(notes)!r}, 'a'))"))

    async def story() -> None:
        await provider.resize(GROUP, 3)
        await provider.remove(GROUP, "gpus-1")

    asyncio.run(story())
    assert notes.read_text().splitlines() == ["resize gpus 3", "remove gpus gpus-1"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit('no machines left')", "exit status 1: no machines left"),
        ("time.sleep(60)", "no answer within 0.5 s"),
    ],
)
def test_what_goes_wrong_is_told(tmp_path: Path, body: str, why: str):
    provider = CommandProvider(program(tmp_path, body), answer_s=0.5 if "sleep" in body else 30)
    with pytest.raises(ProviderFailed, match=why):
        asyncio.run(provider.resize(GROUP, 1))


def test_a_program_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(ProviderFailed, match="No such file"):
        asyncio.run(CommandProvider([str(tmp_path / "none")]).resize(GROUP, 1))


def test_a_group_without_a_fleet_is_told_that_nobody_makes_its_nodes():
    with pytest.raises(ProviderFailed, match="group big: it has no `fleet`, and neither a command"):
        _member(GroupEntry(name="big"), "big-0")
