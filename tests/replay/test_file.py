"""The file of a record: whole whenever its writer ends, within its bounds, without secrets."""

import asyncio
import resource
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from allot.api import Gates, Object, encode
from allot.base import SystemClock
from allot.informers import Added
from allot.replay import BadRecord, Bounds, Keeper, RecordFile, Writing, read
from allot.replay import file as file_module
from allot.replay.keeping import Scrubber, term_of
from allot.replay.lines import HEAD, Decided, Ended, Set, Term, Verdict, encoded
from allot.scheduler import NODES, News, Settings
from scheduler.cluster import NS, Cluster, pod
from scheduler.cluster import tell as plainly
from scheduler.numeric import Numeric

from .recorded import LARGE, again, scheduling, tell
from .stories import come_and_go

SECRET = "hunter2"


def test_nothing_secret_stands_in_a_record(tmp_path: Path):
    """RECORD1: not what pods run with, not what drivers are told, not what a template does not read."""

    async def story(here: Cluster) -> None:
        await here.device_class(
            config=[{"opaque": {"driver": "gpu.example.com", "parameters": {"token": SECRET}}}]
        )
        await here.node("a")
        await here.devices("a", 1)
        opaque = {"opaque": {"driver": "gpu.example.com", "parameters": {"password": SECRET}}}
        spec = {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}],
                "config": [opaque],
            }
        }
        await here.create("resourceclaims", {"metadata": {"name": "c", "namespace": NS}, "spec": spec})
        fields = pod("p", claim="c")
        container = fields["spec"]["containers"][0]
        container["env"] = [{"name": "PASSWORD", "value": SECRET}]
        container["args"] = [f"--token={SECRET}"]
        container["image"] = f"registry.example.com/{SECRET}"
        fields["metadata"]["annotations"] = {"note": SECRET}
        await here.create("pods", fields)
        await here.bound("p")
        numeric = await Numeric(here).furnish({"b": 4})
        await numeric.wanting("q", 1, env={"PASSWORD": SECRET})
        await numeric.claim("q", made=False)
        await numeric.pod("q", "q")
        await here.bound("q")

    tell(tmp_path / "record", story)
    text = (tmp_path / "record").read_text()
    assert "numberOfFrobnicators" in text and "gpu-0" in text
    assert SECRET not in text
    assert not again(tmp_path / "record").differences


def test_heartbeats_of_nodes_are_left_out(tmp_path: Path):
    async def story(here: Cluster) -> None:
        await here.node("a")
        for number in range(20):
            node = await here.resource("nodes").get("a")
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:{number:02}Z"}
            await here.resource("nodes").update_status(node.changed({"status": {"conditions": [beat]}}))
        await here.pod("p")
        await here.bound("p")

    tell(tmp_path / "record", story)
    nodes = [one for one in read(tmp_path / "record") if isinstance(one, Set) and one.what.plural == "nodes"]
    assert 1 <= len(nodes) <= 3


def test_half_a_line_at_its_end_is_passed_over_and_cut_off_by_whoever_goes_on(tmp_path: Path):
    """RECORD2: as kill -9 leaves it."""
    path = tmp_path / "record"
    line = encoded(Ended("uid", bound=True))
    for cut in range(1, len(line)):
        path.write_bytes(HEAD + line + line[:cut])
        assert list(read(path)) == [Ended("uid", bound=True)]
    file = RecordFile(path, LARGE)
    file.append(line)
    file.close()
    assert list(read(path)) == [Ended("uid", bound=True)] * 2


def test_a_scheduler_that_begins_anew_goes_on_with_its_record(tmp_path: Path):
    path = tmp_path / "record"
    for number in range(2):
        tell(path, come_and_go(number, 20))
    lines = list(read(path))
    assert sum(isinstance(one, Term) for one in lines) == 2
    found = again(path)
    assert not found.differences and found.decisions == sum(isinstance(one, Decided) for one in lines)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"{}\n", "is no record"),
        (b"\xff\xfe binary", "is no record"),
        (b'{"kind":"Dump","apiVersion":"allot.dev/v1"}\n', "is no record"),
        (b'{"kind":"Record","apiVersion":"allot.dev/v2"}\n', "is of format allot.dev/v2"),
        (HEAD + b"junk\n" + encoded(Ended("u")), ":2: the record is damaged"),
        (HEAD + encoded(Ended("u")) + b'{"is":"Other"}\n', ":3: the record is damaged"),
    ],
)
def test_what_is_no_record_or_a_damaged_one_is_said_clearly(tmp_path: Path, content: bytes, words: str):
    path = tmp_path / "record"
    path.write_bytes(content)
    with pytest.raises(BadRecord) as told:
        list(read(path))
    assert words in str(told.value) and str(path) in str(told.value)


def test_what_is_no_record_is_not_written_to(tmp_path: Path):
    path = tmp_path / "notes"
    path.write_text("dear diary\n")
    with pytest.raises(BadRecord, match="is no record"):
        RecordFile(path, LARGE)
    assert path.read_text() == "dear diary\n"


def test_a_full_disk_ends_the_record_and_not_the_scheduler(tmp_path: Path):
    """RECORD4, with a limit to how large a file may become."""
    path, troubles = tmp_path / "record", list[str]()
    most, hard = 40 * 1024, resource.getrlimit(resource.RLIMIT_FSIZE)

    async def whole(here: Cluster) -> None:
        writing = Writing(RecordFile(path, LARGE), LARGE, SystemClock(), troubles.append)
        writing.start()
        work = asyncio.ensure_future(scheduling(here, writing, Settings(), 1, late=False))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard[1]))
        try:
            await here.node("a", pods="110")
            for number in range(40):
                await here.pod(f"p{number}")
            await here.bound(*(f"p{number}" for number in range(40)))

            async def is_told() -> bool:
                return bool(troubles)

            await here.until(is_told, "that the record ends is told")
            await here.pod("later")
            await here.bound("later")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, hard)
            work.cancel()
            await asyncio.wait([work])
            await asyncio.to_thread(writing.close)

    plainly(whole, started=False)
    (told,) = troubles
    assert str(path) in told and "cannot be written" in told
    assert path.stat().st_size <= most
    assert not again(path).differences


def test_a_cluster_that_is_larger_than_its_record_may_be_ends_it(tmp_path: Path):
    troubles: list[str] = []
    bounds = Bounds(4096, timedelta(days=1))
    writing = Writing(RecordFile(tmp_path / "record", bounds), bounds, SystemClock(), troubles.append)
    keeper = Keeper(writing.put, SystemClock())
    keeper.begin(Settings(), Gates())
    for number in range(40):
        keeper.learned(news_of(number))
    writing.start()
    writing.close()
    (told,) = troubles
    assert "what is in the cluster takes" in told
    assert len(list(read(tmp_path / "record"))) == 41
    assert not (tmp_path / "record.new").exists()


def test_what_is_older_than_it_may_be_is_folded(tmp_path: Path):
    """Of two decisions the one of yesterday alone is gone, and what it heard is still there."""
    clock, bounds = SystemClock(), Bounds(1024 * 1024, timedelta(hours=1))
    now = clock.now()
    file = RecordFile(tmp_path / "record", bounds)
    yesterday = replace(term_of(Settings(), Gates(), now), at=now - timedelta(days=1))
    node = Scrubber().line(news_of(1))
    assert node is not None
    old = Decided("u", "default/old", now - timedelta(days=1), Verdict(remedy="nothing"))
    new = Decided("v", "default/new", now, Verdict(remedy="nothing"))
    for line in (yesterday, node, old, new):
        file.append(encoded(line))
    file.fold(clock)
    file.append(encoded(new))
    file.close()
    assert list(read(tmp_path / "record")) == [yesterday, node, new, new]


def test_nobody_else_reads_a_record_and_whoever_reads_it_finds_it_whole(tmp_path: Path):
    """RECORD2: a reader who opened it before it was folded reads what it was."""
    path = tmp_path / "record"
    bounds = Bounds(64 * 1024, timedelta(days=1))
    file = RecordFile(path, bounds)
    file.append(encoded(term_of(Settings(), Gates(), SystemClock().now())))
    for number in range(60):
        file.append(
            encoded(Decided("u", f"default/p{number}", SystemClock().now(), Verdict(remedy="x" * 1000)))
        )
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    with path.open("rb") as reader:
        first = reader.read(100)
        file.fold(SystemClock())
        assert first + reader.read() == before
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size < len(before)
    file.close()


def test_a_record_becomes_no_older_than_it_may_be_while_it_is_written(tmp_path: Path):
    """RECORD3: though it stays small."""
    clock, bounds, troubles = LateClock(), Bounds(1024 * 1024, timedelta(hours=1)), list[str]()
    writing = Writing(RecordFile(tmp_path / "record", bounds), bounds, clock, troubles.append)
    keeper = Keeper(writing.put, clock)
    keeper.begin(Settings(), Gates())
    keeper.learned(news_of(1))
    writing.put(lambda _: Decided("u", "default/old", clock.now(), Verdict(remedy="nothing")))
    writing._write()
    clock.late_s = 7200
    writing.put(lambda _: Decided("v", "default/new", clock.now(), Verdict(remedy="nothing")))
    writing.start()
    writing.close()
    assert not troubles
    assert [one.name for one in read(tmp_path / "record") if isinstance(one, Decided)] == ["default/new"]


class LateClock(SystemClock):
    late_s = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.late_s)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.late_s


def test_more_than_can_be_written_ends_the_record_and_takes_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """RECORD4: a disk that is too slow."""
    monkeypatch.setattr(file_module, "PENDING_MAX", 10)
    troubles: list[str] = []
    writing = Writing(RecordFile(tmp_path / "record", LARGE), LARGE, SystemClock(), troubles.append)
    for _ in range(30):
        writing.put(lambda _: Ended("u"))
    assert troubles == ["more is decided than can be written"] and not writing._pending
    writing.start()
    writing.close()
    assert not list(read(tmp_path / "record"))


def news_of(number: int) -> News:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": {"a": "b" * 40}}}
    return News(NODES, Added(Object(encode(node))))
