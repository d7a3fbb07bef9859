"""Dumps that somebody has cut, bent or written by hand: read, or refused with the place."""

import errno
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from allot.planning import BadDump, Cluster, Dump, load, save
from allot.planning import dump as dump_module

from .clusters import gathered, hardware, pod


def lines(folder: Path) -> list[dict[str, Any]]:
    save(Dump(gathered([*hardware("gpu", 1), pod("a")])), folder / "dump")
    return [json.loads(line) for line in (folder / "dump").read_bytes().splitlines()]


def written(folder: Path, documents: list[dict[str, Any]]) -> Path:
    path = folder / "bent"
    path.write_text("\n".join(json.dumps(one) for one in documents))
    return path


@pytest.mark.parametrize(
    ("spot", "value", "why"),
    [
        ("metadata", "x", r"bent:2: .*\$.metadata"),
        ("metadata", {"name": "n", "uid": None}, "metadata.uid"),
        ("metadata", {"name": "n", "labels": {"a": 7}}, "metadata.labels"),
        ("metadata", {}, "bent:2: an object without a name"),
        ("kind", None, "kind"),
    ],
)
def test_an_object_whose_metadata_is_junk_is_refused_with_its_line(
    tmp_path: Path, spot: str, value: Any, why: str
):
    documents = lines(tmp_path)
    documents[1][spot] = value
    with pytest.raises(BadDump, match=why):
        load(written(tmp_path, documents))


@pytest.mark.parametrize(
    ("spot", "value"), [("gates", 7), ("gates", {"x": "y"}), ("unread", [7]), ("unread", [{"what": "pods"}])]
)
def test_a_head_that_is_junk_is_refused(tmp_path: Path, spot: str, value: Any):
    documents = lines(tmp_path)
    documents[0][spot] = value
    with pytest.raises(BadDump):
        load(written(tmp_path, documents))


def test_a_packed_dump_that_is_damaged_or_cut_short_is_refused(tmp_path: Path):
    lines(tmp_path)
    packed = gzip.compress((tmp_path / "dump").read_bytes())
    for at in range(0, len(packed), 7):
        for bent in (packed[:at], packed[:at] + bytes([packed[at] ^ 0x40]) + packed[at + 1 :]):
            (tmp_path / "packed").write_bytes(bent)
            try:
                found = load(tmp_path / "packed")
            except BadDump:
                continue
            Cluster(found.gathered, found.gates)  # only what does not matter was bent


def test_a_line_that_nests_without_end_is_refused(tmp_path: Path):
    lines(tmp_path)
    with (tmp_path / "dump").open("a") as into:
        into.write('\n{"a":' + "[" * 100_000)
    with pytest.raises(BadDump):
        load(tmp_path / "dump")


def test_a_dump_that_does_not_fit_on_the_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Half a dump would be read as a smaller cluster: nothing in it says how much is missing."""
    path, named = tmp_path / "dump", tmp_path / "named"
    named.symlink_to(path)
    whole = Dump(gathered([*hardware("gpu", 1), pod("a")]))
    save(whole, named)
    before = path.read_bytes()

    def until_full(_: Dump):
        yield b"{}\n"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(dump_module, "written", until_full)
        with pytest.raises(OSError, match=r"No space left on device.*named"):
            save(Dump(gathered([pod("b")])), named)
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == [path, named]
    save(Dump(gathered([pod("b")])), named)
    assert named.is_symlink() and path.read_bytes() != before
    with pytest.raises(OSError, match=r"No space left on device.*/dev/full"):
        save(whole, Path("/dev/full"))
