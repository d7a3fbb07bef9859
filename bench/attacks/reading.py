"""Attacks by reading: answers that nobody takes, questions that are dear, watches that never end."""

import asyncio
import time
from typing import Any

from . import wire
from .scene import HERE, NAMESPACE, RBAC, Scene

_RECEIVE_BYTES = 4096
_LINE_BYTES_MAX = 65536
_HEADERS_MAX = 100
"""What Python's own client takes of an answer's head; it is among the strictest."""
_REVOKED_S = 10.0
"""How soon a watch ends whose user may watch no more."""


async def unread_answers(scene: Scene) -> None:
    """Hundreds of connections ask for a list of four megabytes, and take nothing of it."""
    for number in range(4):
        content = {"metadata": {"name": f"heavy-{number}"}, "data": {"k": "x" * 1_000_000}}
        await scene.made(f"{HERE}/configmaps", content)
    ask = wire.get(f"{HERE}/configmaps")
    await scene.begin()
    await _unread(scene, ask, scene.of(600), 15)


async def unread_watches(scene: Scene) -> None:
    """Watches that take nothing, while an object of 300 KB changes again and again."""
    await scene.made(f"{HERE}/configmaps", {"metadata": {"name": "heavy"}})
    await scene.begin()
    unread = asyncio.create_task(
        _unread(scene, wire.get(f"{HERE}/configmaps?watch=true&timeoutSeconds=600"), scene.of(200), 15)
    )
    await asyncio.sleep(3 * scene.size)
    bodies = [{"metadata": {"name": "heavy"}, "data": {"k": str(n) * 300_000}} for n in range(4)]
    shots = [wire.request("PUT", f"{HERE}/configmaps/heavy", wire.encoded(body)) for body in bodies]
    await scene.bombard(scene.mallory, shots, seconds=8)
    await unread


async def _unread(scene: Scene, ask: bytes, count: int, seconds: float) -> None:
    kept: list[wire.Connection] = []

    async def come(many: int) -> None:
        for _ in range(many):
            connection = await wire.connected(scene.port, scene.mallory, _RECEIVE_BYTES)
            if connection is None:
                scene.answers["not let in"] += 1
                continue
            kept.append(connection)
            await connection.send(ask)

    await asyncio.gather(*(come(count // 8 or 1) for _ in range(8)))
    await asyncio.sleep(seconds * scene.size)
    for connection in kept:
        connection.close()
    scene.answers["left unread"] += len(kept)


async def selector_terms(scene: Scene) -> None:
    """Lists of 500 objects with a selector of 21,000 terms, all of which are true; labels and fields."""
    for number in range(500):
        await scene.made(f"{HERE}/configmaps", {"metadata": {"name": f"o-{number}"}})
    terms = ",".join(["!a"] * scene.of(21_000))
    fields = ",".join(["metadata.name!=x"] * scene.of(3_800))
    values = f"a+notin+({','.join(f'{i:x}' for i in range(scene.of(12_000)))})"
    paths = [f"{HERE}/configmaps?labelSelector={one}" for one in (terms, values)]
    paths.append(f"{HERE}/configmaps?fieldSelector={fields}")
    await scene.begin()
    await scene.bombard(scene.mallory, [wire.get(path) for path in paths], connections=3)


async def long_watches(scene: Scene) -> None:
    """Watches that ask to live for 300 years; then their user loses the right to watch."""
    ask = wire.get(f"{HERE}/configmaps?watch=true&timeoutSeconds=9999999999")
    kept: list[wire.Connection] = []
    await scene.begin()
    for _ in range(scene.of(100)):
        connection = await wire.connected(scene.port, scene.mallory)
        answer = wire.CUT
        if connection is not None:
            kept.append(connection)
            await connection.send(ask)
            answer = await connection.head()
        scene.answers[answer.reason] += 1
    binding = f"/apis/{RBAC}/v1/namespaces/{NAMESPACE}/rolebindings/mallory-edit"
    await scene.asked(wire.request("DELETE", binding))
    await asyncio.sleep(_REVOKED_S)
    await scene.made(f"{HERE}/configmaps", {"metadata": {"name": "secret-of-the-day"}})
    told = await asyncio.gather(*(_is_told(connection, b"secret-of-the-day") for connection in kept))
    scene.notes["watches_that_outlived_their_right"] = sum(told)
    if any(told):
        scene.wrong.append(
            f"{sum(told)} watches told what happened {_REVOKED_S:.0f} s after their right ended"
        )
    for connection in kept:
        connection.close()


async def _is_told(connection: wire.Connection, name: bytes) -> bool:
    until = time.monotonic() + 2
    while (line := await connection.line(max(0.01, until - time.monotonic()))) is not None:
        if not line:
            return False
        if name in line:
            return True
    return False


async def warnings(scene: Scene) -> None:
    """Objects that deserve thousands of warnings, or one of 300 KB; ordinary clients must survive them."""
    unknown: dict[str, Any] = {f"unknown{i}": 1 for i in range(scene.of(5_000))}
    about = {"metadata": {"generateName": "w-"}}
    twice = ",".join('"a":1,"a":2' for _ in range(scene.of(5_000)))
    shots = [
        wire.post(f"{HERE}/configmaps", {**about, **unknown}),
        wire.post(f"{HERE}/configmaps", {**about, "u" * 300_000: 1}),
        wire.post(f"{HERE}/configmaps", {**about, **{f"{'u' * 20_000}{i}": 1 for i in range(50)}}),
        wire.request(
            "POST", f"{HERE}/configmaps", f'{{"metadata":{{"generateName":"w-"}},{twice}}}'.encode()
        ),
    ]
    await scene.begin()
    connection = await wire.Connection.open(scene.port, scene.mallory)
    for shot in shots:
        answer = await connection.ask(shot)
        lines = answer.head.split(b"\r\n")
        longest = max(map(len, lines))
        scene.notes["most_headers"] = max(scene.notes.get("most_headers", 0), len(lines))
        scene.notes["longest_header"] = max(scene.notes.get("longest_header", 0), longest)
        if len(lines) > _HEADERS_MAX or longest > _LINE_BYTES_MAX:
            scene.wrong.append(f"an answer has {len(lines)} headers, the longest of {longest} bytes")
    connection.close()
    await scene.bombard(scene.mallory, shots, connections=2)
