"""What a container has printed, as somebody wants to see it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from allot.api import errors
from allot.nodeagent.logs import Wanted, printed, wanted

NOW = datetime(2026, 11, 16, 12, 0, 30, tzinfo=UTC)


def entry(second: int, text: str, stream: str = "stdout", kind: str = "F") -> str:
    return f"2026-11-16T12:00:{second:02d}.000000001Z {stream} {kind} {text}\n"


def shown(path: Path, want: Wanted, runs: Callable[[], bool] = lambda: False) -> str:
    async def read() -> str:
        return b"".join([piece async for piece in printed(path, want, runs)]).decode()

    return asyncio.run(asyncio.wait_for(read(), 60))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "output.log"
    (tmp_path / "output.log.9").write_text(entry(1, "one"))
    (tmp_path / "output.log.10").write_text(entry(10, "two", "stderr"))
    path.write_text(entry(20, "thr", kind="P") + entry(20, "ee") + entry(25, "four"))
    return path


def test_all_of_it_is_shown_the_older_files_first(log):
    assert shown(log, Wanted()) == "one\ntwo\nthree\nfour\n"


def test_times_are_shown_where_somebody_asks_for_them(log):
    assert shown(log, Wanted(timestamps=True, tail=1)) == "2026-11-16T12:00:25.000000001Z four\n"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tailLines": "2"}, "ee\nfour\n"),
        ({"tailLines": "0"}, ""),
        ({"sinceSeconds": "12"}, "three\nfour\n"),
        ({"sinceTime": "2026-11-16T12:00:10Z"}, "two\nthree\nfour\n"),
        ({"sinceTime": "2026-11-16T13:00:11+01:00"}, "three\nfour\n"),
        ({"stream": "Stderr"}, "two\n"),
        ({"limitBytes": "5"}, "one\nt"),
    ],
)
def test_a_part_of_it(log, query, text):
    assert shown(log, wanted(query, NOW)) == text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"tailLines": "-1"}, "tailLines: '-1' is not a number of at least 0"),
        ({"limitBytes": "0"}, "limitBytes"),
        ({"sinceSeconds": "x"}, "sinceSeconds"),
        ({"sinceTime": "yesterday"}, "sinceTime: 'yesterday' is not a time"),
        ({"stream": "Stdin"}, "stream: 'Stdin' is not All, Stdout or Stderr"),
    ],
)
def test_what_cannot_be_meant_is_refused(query, says):
    with pytest.raises(errors.BadRequest, match=says):
        wanted(query, NOW)


def test_who_follows_sees_every_line_over_rotations_until_the_container_has_ended(tmp_path):
    """As fast as files come and go, no line is missed or told twice."""
    path = tmp_path / "output.log"

    async def story() -> str:
        ended = False

        async def write() -> None:
            nonlocal ended
            for number in range(300):
                with path.open("a") as file:
                    file.write(entry(number % 60, f"line-{number}")[:20])
                    file.flush()
                    await asyncio.sleep(0)
                    file.write(entry(number % 60, f"line-{number}")[20:])
                if number % 25 == 24:
                    path.rename(tmp_path / f"output.log.{number // 25 + 1}")
                if number % 10 == 0:
                    await asyncio.sleep(0.02)
            ended = True

        path.touch()
        writing = asyncio.create_task(write())
        reading = printed(path, Wanted(follow=True), lambda: not ended)
        text = b"".join([piece async for piece in reading]).decode()
        await writing
        return text

    text = asyncio.run(asyncio.wait_for(story(), 60))
    assert text.splitlines() == [f"line-{number}" for number in range(300)]
