"""What a container costs: the process runtime alone, and pods of a whole cluster. Prints one JSON object.

    bench/containers.py [alone] [pods] [--count N] [--user UID]

alone   the runtime and nothing else: from the question to the answer that a container runs, one after another
        and a hundred at once; the round trip of a command inside, with and without a terminal; beside both
        what the machine takes for a process of its own
pods    `allot up --agents 1`: a hundred pods created at once, until a client has heard of each that it runs;
        one after another is measured by bench/node.py

With --user the containers are that user's, in user namespaces; that needs root.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from up import Up

from allot.nodeagent import ContainerSpec, ProcessRuntime, SandboxSpec
from allot.nodeagent.runtimes import Attempt
from node import NS, client_of, pod, say, spread

AT_ONCE = 100
COMMAND = ("sleep", "infinity")

Figures = dict[str, Any]


class Nobody:
    """At the other end of a command: nothing is typed, and nothing read."""

    def __init__(self, tty: bool) -> None:
        self.tty = tty
        self.stdin: AsyncIterator[bytes] | None = None
        self.resizes: AsyncIterator[tuple[int, int]] | None = None

    async def write_out(self, data: bytes) -> None:
        pass

    async def write_err(self, data: bytes) -> None:
        pass


def spec(number: int) -> ContainerSpec:
    return ContainerSpec(SandboxSpec(f"pod-{number}", hostname="inside"), "main", 0, COMMAND)


@asynccontextmanager
async def runtime(user: int | None) -> AsyncIterator[ProcessRuntime]:
    with tempfile.TemporaryDirectory(prefix="bc") as folder:
        os.chmod(folder, 0o755)
        async with ProcessRuntime(Path(folder) / "containers", user=user).attached() as found:
            yield found
            await ended(found)


async def ended(found: ProcessRuntime) -> None:
    running = {one[:3] for one in await found.attempts() if one.runs}
    over = asyncio.Event()

    def hear(attempt: Attempt) -> None:
        running.discard(attempt[:3])
        if not running:
            over.set()

    found.changed(hear)
    for one in await found.attempts():
        await found.signal(one, signal.SIGKILL)
    await over.wait()


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - began)


async def alone(count: int, user: int | None) -> Figures:
    async with runtime(user) as found:
        isolates = sorted((await found.abilities()).isolates)
        start_ms = [await timed(lambda at=at: found.start(spec(at))) for at in range(count + 1)][1:]  # type: ignore[misc]
        say(f"alone: {count} started")
        (first, *_) = await found.attempts()
        execute_ms = [await timed(lambda: found.execute(first, ["true"], 10)) for _ in range(count)]
        terminal_ms = [await timed(lambda: found.stream(first, ["true"], Nobody(True))) for _ in range(count)]
    async with runtime(user) as found:
        await found.start(spec(AT_ONCE))
        took: list[float] = []

        async def one(at: int) -> Attempt:
            attempt = await found.start(spec(at))
            took.append(1000 * (time.perf_counter() - began))
            return attempt

        began = time.perf_counter()
        await asyncio.gather(*map(one, range(AT_ONCE)))
    return {
        "isolates": isolates,
        "count": count,
        **spread("asked_to_running", start_ms),
        **spread("command_inside", execute_ms),
        **spread("command_inside_with_a_terminal", terminal_ms),
        **spread("process_of_the_machine", [await timed(machine_process) for _ in range(count)]),
        f"{AT_ONCE}_at_once": {**spread("asked_to_running", took), "all_s": round(max(took) / 1000, 2)},
    }


async def machine_process() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


async def pods(count: int, user: int | None) -> Figures:
    return await crowd([])


async def crowd(more: list[str], image: str = "none") -> Figures:
    """A hundred pods at once on a cluster that is started with these options more."""
    with tempfile.TemporaryDirectory(prefix="bc") as short:
        up = Up.start(Path(short), 0, ["--fleet", "edge", "--agents", "1", *more])
        try:
            async with client_of(Path(short)) as (client, heard):
                api = client.resource("", "v1", "pods")
                await api.create(pod("first", "agent-0", image=image))
                await heard.until_running(["first"])
                names = [f"p-{at}" for at in range(AT_ONCE)]
                created: dict[str, float] = {}

                async def create(name: str) -> None:
                    created[name] = time.perf_counter()
                    await api.create(pod(name, "agent-0", image=image))

                began = time.perf_counter()
                await asyncio.gather(*map(create, names))
                await heard.until_running(names)
                took = [1000 * (heard.ran_at[name] - created[name]) for name in names]
                last_s = max(heard.ran_at[name] for name in names) - began
                return {
                    "at_once": AT_ONCE,
                    "namespace": NS,
                    "created_to_running_p50_ms": round(median(took), 1),
                    "created_to_running_p99_ms": round(quantiles(took, n=100)[98], 1),
                    "all_running_s": round(last_s, 2),
                }
        finally:
            up.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {"alone": alone, "pods": pods}
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART", help=", ".join(parts))
    parser.add_argument("--count", type=int, default=200, metavar="N", help="containers, and commands inside")
    parser.add_argument("--user", type=int, metavar="UID", help="who has the containers of `alone`")
    options = parser.parse_args()
    report: Figures = {"benchmark": "containers", "python": platform.python_version()}
    for part in options.parts or parts:
        busy = os.getloadavg()[0]
        figures = asyncio.run(parts[part](options.count, options.user))
        report[part] = {**figures, "load_before": round(busy, 1)}
    if "alone" in report and os.geteuid() == 0 and options.user is None:
        report["alone as a plain user"] = asyncio.run(alone(options.count, 65534))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
