"""What a driver has prepared, on disk: so that a process that begins anew answers as the last one would.

    STATE1  A claim is here before the author's `prepare` is called for it, and until its `unprepare`
            has come back. So whatever was begun can be undone, whenever the process ends.
    STATE2  An answer is given after what it says is on disk.
    STATE3  A file that cannot be read is an error, not an empty one: devices would stay taken.
    STATE4  Two processes of one driver, as in a rolling update, see each other's claims: each call
            has the file to itself, and reads what the other wrote.

A machine that was started anew has forgotten what was done to its devices, and its CDI files as a
rule. Claims of an earlier boot count as begun: prepared again when they are asked for again.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec

from allot.base import Files, HeldByAnother, Lock, MachineFiles, os_reason
from allot.wire import cdi

from .claims import Claim

FILE: Final = "checkpoint.json"
LOCK: Final = "serialize.lock"
FORMAT: Final = "allot.dev/driver-checkpoint/v1"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
TURN_S: Final = 0.01
"""Between two looks whether the other instance has had its turn."""


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device of a claim, and what containers get with it."""

    request: str
    pool: str
    device: str
    share_id: str | None = None
    cdi_devices: tuple[str, ...] = ()
    edits: cdi.ContainerEdits = cdi.ContainerEdits()
    attributes: dict[str, Any] | None = None  # what containers may read of it


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    uid: str
    namespace: str
    name: str
    devices: tuple[Held, ...]
    boot: str = ""  # in which it was prepared; empty: it was begun
    handle: str = ""  # of a classic claim: what the driver's controller allocated
    pod_claim: str = ""  # what its pod calls a claim that was made for it

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _File(msgspec.Struct, frozen=True):
    format: str
    checksum: int
    data: str


class BadState(Exception):
    """The file is not what a driver wrote. The message says what to do about it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}; drain the node, remove the file, and start again")


def begun(claim: Claim) -> Entry:
    devices = tuple(Held(one.request, one.pool, one.device, one.share_id) for one in claim.devices)
    return Entry(claim.uid, claim.namespace, claim.name, devices, pod_claim=claim.pod_claim)


def boot_id() -> str:
    """Of the machine that this process runs on."""
    try:
        return (MachineFiles().read(BOOT_ID) or b"unknown").decode().strip()
    except OSError:
        return "unknown"


class State:
    def __init__(self, directory: Path, boot: str, files: Files) -> None:
        self._directory, self._files = directory, files
        self._path, self._lock_path = directory / FILE, directory / LOCK
        self.boot = boot
        self._entries: dict[str, Entry] = {}
        self._seen: Hashable | None = None
        self._turn = asyncio.Lock()

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def is_prepared(self, entry: Entry) -> bool:
        return entry.boot == self.boot

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """STATE4. Raises BadState."""
        async with self._turn:
            lock = await self._locked()
            try:
                if self._files.stamp(self._path) != self._seen:
                    await asyncio.to_thread(self._read)
                yield
            finally:
                lock.release()

    async def put(self, entries: Iterable[Entry]) -> None:
        await self._write({**self._entries, **{entry.uid: entry for entry in entries}})

    async def drop(self, uids: Iterable[str]) -> None:
        gone = frozenset(uids)
        await self._write({uid: entry for uid, entry in self._entries.items() if uid not in gone})

    async def _write(self, entries: dict[str, Entry]) -> None:
        if entries == self._entries:
            return
        await asyncio.to_thread(self._files.write, self._path, encoded(entries.values()))
        self._entries, self._seen = entries, self._files.stamp(self._path)

    async def _locked(self) -> Lock:
        self._files.make_directory(self._directory, 0o750)
        while True:
            try:
                return self._files.lock(self._lock_path)
            except HeldByAnother:
                await asyncio.sleep(TURN_S)

    def _read(self) -> None:
        now = self._files.stamp(self._path)
        try:
            content = self._files.read(self._path)
            if content is not None:
                self._files.settle(self._path)  # STATE2, also of what another process has left
        except OSError as refused:
            raise BadState(self._path, os_reason(refused)) from None
        entries = decoded(self._path, content) if content is not None else ()
        self._entries, self._seen = {entry.uid: entry for entry in entries}, now


def encoded(entries: Iterable[Entry]) -> bytes:
    data = msgspec.json.encode(tuple(entries)).decode()
    return msgspec.json.encode(_File(FORMAT, crc32(data.encode()), data))


def decoded(path: Path, content: bytes) -> tuple[Entry, ...]:
    """STATE3."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except msgspec.MsgspecError:
        raise BadState(path, "it is not the JSON of a checkpoint") from None
    if file.format != FORMAT:
        raise BadState(path, f"its format is {file.format[:100]!r}, and this driver reads {FORMAT!r}")
    found = crc32(file.data.encode())
    if found != file.checksum:
        raise BadState(path, f"its checksum is {file.checksum} and its content has {found}")
    try:
        return msgspec.json.decode(file.data, type=tuple[Entry, ...])
    except msgspec.MsgspecError as wrong:
        raise BadState(path, f"its data is not a list of claims: {wrong}") from None
