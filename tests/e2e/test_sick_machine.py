"""A server on a machine that fails it: a full disk, files that vanish, records that are junk.

Whatever happens, nothing is acknowledged that would be lost, reads go on where they can, /readyz and one
line of the log say what is wrong, and the server never hangs.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit
from typing import Any

import pytest

from allot.api import errors
from allot.client import Client
from e2e.crashes import client_of
from e2e.process import ServerProcess

PATIENCE_S = 30.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "d")
    yield server
    server.stop()


def log_of(server: ServerProcess) -> list[str]:
    return Path(server.log.name).read_text().splitlines()


def with_client(server: ServerProcess, story: Callable[[Client], Any]) -> Any:
    async def run() -> Any:
        client, transport = client_of(server)
        try:
            return await asyncio.wait_for(story(client), 2 * PATIENCE_S)
        finally:
            await transport.close()

    return asyncio.run(run())


async def readiness(client: Client) -> str:
    """What /readyz says, or "ok"."""
    try:
        return (await client.send("GET", "/readyz", {})).body.decode()
    except errors.ApiError as failing:
        return failing.message


async def until(what: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not await what():
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


def test_a_full_disk_is_told_in_time_and_the_server_goes_on_when_there_is_room(server: ServerProcess):
    """A limit on the size of files, set from outside while the server runs, stands in for the disk."""

    async def story(client: Client) -> None:
        maps = client.resource("", "v1", "configmaps")

        async def write(name: str) -> Any:
            return await maps.create({"metadata": {"name": name}, "data": {"x": "." * 100_000}}, "default")

        await write("before")
        limit(server, 200_000)
        with pytest.raises(errors.Unavailable) as full:
            for number in range(10):
                await write(f"m{number}")
        assert "allot.db" in str(full.value) and not full.value.retry_after_s
        assert "[-]store failed:" in await readiness(client) and "allot.db" in await readiness(client)
        assert (await client.send("GET", "/livez", {})).body == b"ok", "another process would not help"
        assert (await maps.get("before", "default")).name == "before", "reads go on"
        for number in range(20):  # some may fit: the log of the database may begin anew meanwhile
            with contextlib.suppress(errors.Unavailable):
                await write(f"again{number}")
            await asyncio.sleep(0.1)
        limit(server, RLIM_INFINITY)
        await until(lambda: _is(readiness(client), "ok"))
        assert (await write("after")).name == "after"

    with_client(server, story)
    said = [line for line in log_of(server) if "allot.store" in line]
    assert said and len(said) % 2 == 0, said
    for refused, taken in zip(said[::2], said[1::2], strict=True):
        assert "writes are refused" in refused and "writes are taken again" in taken, said


def limit(server: ServerProcess, more: int) -> None:
    """Let no file of the server grow by more than so much."""
    assert server.process is not None
    largest = max(path.stat().st_size for path in server.data_dir.iterdir())
    soft = more if more == RLIM_INFINITY else largest + more
    prlimit(server.process.pid, RLIMIT_FSIZE, (soft, RLIM_INFINITY))


async def _is(answer: Any, wanted: str) -> bool:
    return bool(await answer == wanted)


def remove_all(folder: Path) -> None:
    for path in folder.glob("allot.db*"):
        path.unlink()


def remove_log(folder: Path) -> None:
    (folder / "allot.db-wal").unlink()


def replace_file(folder: Path) -> None:
    shutil.copy(folder / "allot.db", folder / "copy")
    (folder / "copy").rename(folder / "allot.db")


def move_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("harm", [remove_all, remove_log, replace_file, move_folder])
def test_nothing_is_acknowledged_once_the_files_are_not_there_any_more(
    server: ServerProcess, harm: Callable[[Path], None]
):
    """Writes went on into files without a name, were acknowledged, and were gone with the process."""

    async def story(client: Client) -> None:
        maps = client.resource("", "v1", "configmaps")
        await maps.create({"metadata": {"name": "before"}}, "default")
        harm(server.data_dir)
        for number in range(5):
            # What was on its way at that moment may be there or not; whatever comes later is not.
            refusal = errors.Unavailable if number else (errors.Unavailable, errors.Timeout)
            with pytest.raises(refusal, match=r"allot\.db(-wal)? was re(moved|placed)"):
                await maps.create({"metadata": {"name": f"m{number}"}}, "default")
        assert "[-]store failed:" in await readiness(client)
        assert [one.name for one in (await maps.list("default")).objects] == ["before"], "reads go on"

    with_client(server, story)
    said = [line for line in log_of(server) if "allot.store" in line]
    assert len(said) == 1 and "until the server is started again" in said[0], said
