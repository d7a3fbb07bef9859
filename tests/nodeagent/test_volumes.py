"""What lies in a volume, as values, and how it comes to lie on disk."""

import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.base import MachineFiles
from allot.nodeagent import volumes
from allot.nodeagent.fields import Around
from allot.nodeagent.views import FieldFile, FieldRef, Item, Volume
from allot.nodeagent.volume_files import DATA, lay_out
from allot.nodeagent.volumes import BadVolume, File
from node.objects import pod

FILES = MachineFiles()


def tree(directory: Path) -> dict[str, bytes]:
    """As a container sees it: through the links."""
    top = [one for one in directory.iterdir() if not one.name.startswith("..")]
    every = [path for one in top for path in ([one] if one.is_file() else one.rglob("*"))]
    return {str(one.relative_to(directory)): one.read_bytes() for one in every if one.is_file()}


def test_every_key_is_a_file_or_those_that_are_named():
    data = volumes.data_of({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "/w=="}}, is_secret=False)
    assert volumes.keys(data, (), 0o600, named="m") == {
        "a": File(b"1", 0o600),
        "b": File(b"2", 0o600),
        "c": File(b"\xff", 0o600),
    }
    items = (Item(key="a", path="deep/x"), Item(key="b", path="y", mode=0o400))
    assert volumes.keys(data, items, 0o644, named="m") == {"deep/x": File(b"1"), "y": File(b"2", 0o400)}


def test_secrets_are_decoded():
    assert volumes.data_of({"data": {"a": "czNjcjN0"}}, is_secret=True) == {"a": b"s3cr3t"}


def test_a_key_that_is_not_there_is_named_unless_it_is_optional():
    wanted = (Item(key="none", path="x"), Item(key="a", path="y"))
    with pytest.raises(BadVolume, match='configmap "m" references non-existent config key: none'):
        volumes.keys({"a": b""}, wanted, 0o644, named='configmap "m"')
    assert volumes.keys({"a": b""}, wanted, 0o644, named="m", is_optional=True).keys() == {"y"}


def test_fields_are_files():
    items = (
        FieldFile(path="name", field_ref=FieldRef(field_path="metadata.name")),
        FieldFile(path="labels", field_ref=FieldRef(field_path="metadata.labels"), mode=0o400),
    )
    found = volumes.fields(pod(metadata={"labels": {"a": "b"}}), (), items, 0o644, Around("h"))
    assert found == {"name": File(b"p"), "labels": File(b'a="b"', 0o400)}
    with pytest.raises(BadVolume, match="file x: field nonsense is not known to this node"):
        wrong = FieldFile(path="x", field_ref=FieldRef(field_path="nonsense"))
        volumes.fields(pod(), (), (wrong,), 0o644, Around("h"))


def test_of_two_sources_with_one_path_the_later_one_counts():
    assert volumes.together([{"a": File(b"1"), "b": File(b"2")}, {"a": File(b"3")}]) == {
        "a": File(b"3"),
        "b": File(b"2"),
    }


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "..data", "..2/x"])
def test_nothing_of_a_volume_lies_outside_of_it(path, tmp_path):
    with pytest.raises(BadVolume, match="is not below the volume"):
        lay_out(FILES, tmp_path / "v", {path: File(b"")})
    assert not (tmp_path / "v").exists()


def test_a_volume_of_a_kind_that_is_not_known_says_what_is():
    with pytest.raises(BadVolume, match="volume data: this node has config maps"):
        volumes.require_known(Volume(name="data"))


def test_a_token_is_refreshed_after_most_of_its_time_and_after_a_day_in_any_case():
    assert volumes.token_refresh_at(1000.0, 1000.0 + 3600) == 1000.0 + 0.8 * 3600
    assert volumes.token_refresh_at(0.0, 365 * 86400.0) == 86400.0


def test_files_have_their_modes_whatever_the_umask_is(tmp_path):
    lay_out(FILES, tmp_path, {"a": File(b"1", 0o666), "deep/b": File(b"2", 0o400)})
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666
    assert stat.S_IMODE((tmp_path / "deep/b").stat().st_mode) == 0o400
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o755


def test_what_is_the_same_is_left_alone(tmp_path):
    """Else whoever watches `..data` would be told of a change that is none."""
    content = {"a": File(b"1"), "deep/b": File(b"2")}
    assert lay_out(FILES, tmp_path, content)
    before = (tmp_path / DATA).readlink()
    assert not lay_out(FILES, tmp_path, content)
    assert (tmp_path / DATA).readlink() == before


def test_who_has_a_file_open_goes_on_reading_the_old_one_and_who_opens_it_reads_the_new(tmp_path):
    lay_out(FILES, tmp_path, {"a": File(b"old"), "gone": File(b"")})
    with open(tmp_path / "a", "rb") as held:
        lay_out(FILES, tmp_path, {"a": File(b"new"), "more": File(b"!")})
        assert held.read() == b"old"
    assert tree(tmp_path) == {"a": b"new", "more": b"!"}
    assert len([one for one in tmp_path.iterdir() if one.name.startswith("..")]) == 2, "what was is gone"


NAMES = st.sampled_from(["a", "b", "c/x", "c/y/z", "d.e"])
CONTENTS = st.dictionaries(NAMES, st.builds(File, st.binary(max_size=4), st.just(0o644)))


class Stopped(Exception):
    pass


class Dying(MachineFiles):
    """The process ends before the step of that number."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Stopped

    def place(self, path, content, mode):
        self._step()
        super().place(path, content, mode)

    def _link(self, path, target):
        self._step()
        super()._link(path, target)

    def _rename(self, path, to):
        self._step()
        super()._rename(path, to)

    def remove_tree(self, path):
        self._step()
        super().remove_tree(path)


@settings(deadline=None, max_examples=60)
@given(st.lists(CONTENTS, min_size=1, max_size=4), st.integers(0, 20))
def test_an_agent_that_dies_anywhere_leaves_all_of_the_old_or_all_of_the_new(tmp_path_factory, states, steps):
    directory = tmp_path_factory.mktemp("v")
    for content in states[:-1]:
        lay_out(FILES, directory, content)
    old = {path: one.content for path, one in states[-2].items()} if len(states) > 1 else {}
    new = {path: one.content for path, one in states[-1].items()}
    try:
        lay_out(Dying(steps), directory, states[-1])
        assert tree(directory) == new
    except Stopped:
        data = directory / DATA
        there = {str(one.relative_to(data)): one.read_bytes() for one in data.rglob("*") if one.is_file()}
        assert there in (old, new)
    lay_out(FILES, directory, states[-1])
    assert tree(directory) == new
