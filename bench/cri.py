"""What a container costs: by containerd alone, by the runtime over it, as a process. Prints one JSON object.

    bench/cri.py [--pods N] [--at-once N]

alone      containerd's own calls (a sandbox, a container in it, its start), one pod after another: what
           nobody who uses containerd can do without
cri        the same container through the agent's `cri` runtime
process    the same command through the `process` runtime
at once    so many pods through each runtime, begun at one moment, until the last one has started
pods       `allot up --agents 1` on each runtime: from the moment in which a pod is created to the one in
           which a client hears that it runs, one pod after another, and a hundred created at once
exec       a command in a container that runs: by containerd's own call, by the runtime's, and as a stream

Needs root, and the containerd of `make components`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from containers import crowd
from up import Up

from allot.nodeagent import ContainerSpec, ProcessRuntime, Runtime, runtimes
from allot.nodeagent.runtimes.contract import SandboxSpec
from allot.nodeagent.runtimes.cri import asking
from allot.wire import Channel, UnixSockets, cri
from node import Figures, client_of, say, spread, started

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from containerd import IMAGE, Containerd, containerd

COMMAND = ("sleep", "infinity")
CALL_S = 120.0


async def timed(what: str, deed: Callable[[int], Awaitable[None]], count: int) -> Figures:
    took_ms = []
    for number in range(count + 1):
        began = time.perf_counter()
        await deed(number)
        took_ms.append(1000 * (time.perf_counter() - began))
    return spread(what, took_ms[1:])  # the first one meets what nobody has used yet


def spec(kind: str, number: int) -> ContainerSpec:
    sandbox = SandboxSpec(f"{kind}-{number}", f"{kind}-{number}", "bench")
    return ContainerSpec(sandbox, "main", 0, COMMAND, image=IMAGE)


# -- containerd alone -----------------------------------------------------------------------------


async def alone(daemon: Containerd, channel: Channel, count: int) -> Figures:
    sandboxes: list[str] = []
    logs = daemon.home / "logs"
    logs.mkdir()

    async def start(number: int) -> None:
        wanted = spec("alone", number)
        pod = wanted.pod._replace(log_directory=str(logs))
        config = asking.sandbox(pod, "/alone", 0, has_network=False)
        told = await channel.call(cri.RUN_SANDBOX, cri.RunPodSandboxRequest(config), timeout_s=CALL_S)
        sandboxes.append(told.pod_sandbox_id)
        container, around = asking.container(wanted, "/alone", cri.Image(IMAGE), config)
        container_log = cri.CreateContainerRequest(
            told.pod_sandbox_id, replaced(container, log_path=f"{number}.log"), around
        )
        created = await channel.call(cri.CREATE, container_log, timeout_s=CALL_S)
        await channel.call(cri.START, cri.StartContainerRequest(created.container_id), timeout_s=CALL_S)

    try:
        return await timed("start", start, count)
    finally:
        for one in sandboxes:
            await channel.call(cri.STOP_SANDBOX, cri.StopPodSandboxRequest(one), timeout_s=CALL_S)
            await channel.call(cri.REMOVE_SANDBOX, cri.RemovePodSandboxRequest(one), timeout_s=CALL_S)


def replaced(config: cri.ContainerConfig, **changes: Any) -> cri.ContainerConfig:
    fields = {name: getattr(config, name) for name in config.__struct_fields__}
    return cri.ContainerConfig(**{**fields, **changes})


# -- runtimes -------------------------------------------------------------------------------------


async def one_by_one(runtime: Runtime, count: int) -> Figures:
    async def start(number: int) -> None:
        await runtime.start(spec("one", number))

    try:
        return await timed("start", start, count)
    finally:
        await removed(runtime, [f"one-{number}" for number in range(count + 1)])


async def at_once(runtime: Runtime, count: int) -> Figures:
    began = time.perf_counter()
    try:
        await asyncio.gather(*(runtime.start(spec("many", number)) for number in range(count)))
        started_s = time.perf_counter() - began
    finally:
        began = time.perf_counter()
        await removed(runtime, [f"many-{number}" for number in range(count)])
    return {
        "pods": count,
        "all_started_s": round(started_s, 2),
        "all_removed_s": round(time.perf_counter() - began, 2),
    }


async def removed(runtime: Runtime, uids: list[str]) -> None:
    for attempt in await runtime.attempts():
        if attempt.pod_uid in uids and attempt.runs:
            await runtime.signal(attempt, 9)
    await asyncio.gather(*(runtime.remove(uid) for uid in uids))


class Mute:
    """Types nothing and reads nothing."""

    tty = False
    stdin: AsyncIterator[bytes] | None = None
    resizes: AsyncIterator[tuple[int, int]] | None = None

    async def write_out(self, data: bytes) -> None:
        pass

    async def write_err(self, data: bytes) -> None:
        pass


async def executing(runtime: Runtime, channel: Channel, count: int) -> Figures:
    attempt = await runtime.start(spec("exec", 0))
    container = attempt.id.partition("://")[2]

    async def by_itself(number: int) -> None:
        await channel.call(cri.EXEC_SYNC, cri.ExecSyncRequest(container, ("true",), 10), timeout_s=CALL_S)

    async def executed(number: int) -> None:
        await runtime.execute(attempt, ("true",), 10)

    async def streamed(number: int) -> None:
        await runtime.stream(attempt, ("true",), Mute())

    try:
        return {
            "containerd alone": await timed("exec", by_itself, count),
            "execute": await timed("exec", executed, count),
            "stream": await timed("exec", streamed, count),
        }
    finally:
        await removed(runtime, ["exec-0"])


# -- whole pods -----------------------------------------------------------------------------------


async def pods_of(runtime: str, more: list[str], count: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bc") as short:  # sockets lie below it
        up = Up.start(Path(short), 0, ["--fleet", "edge", "--agents", "1", "--runtime", runtime, *more])
        try:
            async with client_of(Path(short)) as (client, heard):
                found = await started(client, heard, runtime, "", count, IMAGE)
                return {name: one for name, one in found.items() if name not in ("limit", "holds")}
        finally:
            up.stop()


async def measured(daemon: Containerd, pods: int, many: int) -> Figures:
    found: Figures = {"runs_before": os.getloadavg()[0]}
    sockets = UnixSockets()
    channel = sockets.dial(str(daemon.socket))
    name = f"cri://{daemon.socket}"
    try:
        async with runtimes.attached(name, daemon.home / "agent", (daemon.cdi,), sockets) as runtime:
            say("containerd alone")
            found["containerd alone"] = await alone(daemon, channel, pods)
            say("cri")
            found["cri"] = await one_by_one(runtime, pods)
            found["cri at once"] = await at_once(runtime, many)
            say("exec")
            found["exec"] = await executing(runtime, channel, pods)
    finally:
        await channel.close()
    with tempfile.TemporaryDirectory(prefix="bc") as short:
        async with ProcessRuntime(Path(short)).attached() as process:
            say("process")
            found["process"] = await one_by_one(process, pods)
            found["process at once"] = await at_once(process, many)
    say("pods")
    found["pods on process"] = await pods_of("process", [], pods)
    on_containerd = ["--cdi-dir", str(daemon.cdi)]
    found["pods on containerd"] = await pods_of(name, on_containerd, pods)
    say("a hundred pods at once")
    found["a hundred pods at once on process"] = await crowd([])
    found["a hundred pods at once on containerd"] = await crowd(["--runtime", name, *on_containerd], IMAGE)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    with containerd() as daemon:
        print(json.dumps(asyncio.run(measured(daemon, options.pods, options.at_once)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
