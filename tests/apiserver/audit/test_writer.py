"""The thread that writes the audit log, with disks that are slow, full, or gone."""

import json
import threading
import time

from allot.apiserver.audit import writer as writing
from allot.apiserver.audit.event import lost_line
from allot.apiserver.audit.logfile import LogFile
from allot.apiserver.audit.writer import Writer
from allot.base import SystemClock

PATIENCE_S = 30.0


def writer_on(file):
    return Writer(file, lambda count, why: lost_line(count, why, SystemClock().now()))


def eventually(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_disk_that_hangs_holds_nobody_and_what_finds_no_room_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "QUEUE_BYTES_MAX", 10_000)
    file = LogFile(tmp_path / "audit.log", 1 << 20, 1)
    hanging, plain = threading.Event(), file.append

    def append(lines):
        assert hanging.wait(PATIENCE_S)
        plain(lines)

    monkeypatch.setattr(file, "append", append)
    writer = writer_on(file)
    began = time.monotonic()
    for number in range(1000):
        writer.put(b'{"n":"%04d","kind":"Event"}\n' % number)
    assert time.monotonic() - began < PATIENCE_S / 2  # a thousand lines, with nobody to take them
    assert writer.waiting_bytes <= 10_000 and writer.lost > 0
    lost = writer.lost
    hanging.set()
    eventually(lambda: writer.waiting_bytes == 0)
    writer.put(b'{"n":"1000","kind":"Event"}\n')
    writer.close()
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    events = [int(line["n"]) for line in lines if line["kind"] == "Event"]
    assert events == [*range(1000 - lost), 1000]
    assert sum(line["count"] for line in lines if line["kind"] == "EventsLost") == lost


def test_a_file_that_cannot_be_had_is_tried_again_and_said_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writing, "_RETRY_S", 0.01)
    folder = tmp_path / "logs"
    folder.mkdir()
    writer = writer_on(LogFile(folder / "audit.log", 1 << 20, 1))
    folder.rename(tmp_path / "elsewhere")
    writer.put(b"{}\n")
    eventually(lambda: writer.failures > 3)
    folder.mkdir()
    eventually(lambda: writer.waiting_bytes == 0)
    writer.close()
    assert (folder / "audit.log").read_bytes() == b"{}\n"
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2 and "No such file or directory" in said[0] and "is written again" in said[1]


def test_closing_writes_what_waits_and_does_not_wait_for_a_disk_that_is_gone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writing, "_LAST_WORDS_S", 1.0)
    whole = writer_on(LogFile(tmp_path / "whole.log", 1 << 20, 1))
    for _ in range(500):
        whole.put(b"{}\n")
    whole.close()
    assert (tmp_path / "whole.log").read_bytes() == b"{}\n" * 500
    folder = tmp_path / "logs"
    folder.mkdir()
    gone = writer_on(LogFile(folder / "audit.log", 1 << 20, 1))
    folder.rename(tmp_path / "elsewhere")
    gone.put(b"{}\n")
    began = time.monotonic()
    gone.close()
    assert time.monotonic() - began < PATIENCE_S
    assert "ends with 3 bytes that could not be written" in caplog.text
