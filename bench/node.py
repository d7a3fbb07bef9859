"""What a real node costs: pods, devices, and many agents in one process. Prints one JSON object.

    bench/node.py [starting] [preparing] [publishing] [many] [--pods N] [--agents N] [--idle S]

starting    `allot up --agents 1`: from the moment in which a pod is created to the one in which a client
            hears that it runs, one pod after another, without devices and with a claim of its own
preparing   pairs of a prepare and an unprepare a second: an agent and a driver of the kit, over the
            socket, both with their checkpoints on disk before anything else happens
publishing  10,000 devices, from the start of their driver to the last slice
many        `allot up --agents 50` with ten pods on each: memory when all run, processor time at rest; of the
            process of the agents, in which controllers and scheduler are too, and of the containers' own

Without a name all of them are measured. What is under way is said on stderr. Beside each figure that has a
limit stands whether it holds, and beside each part how many processes wanted to run before it began.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import preparing as kit
from up import Up, cpu_s, memory_mb

from allot.api import Object
from allot.base import MachineFiles, Metrics, SystemClock
from allot.client import Client, HttpsTransport, kubeconfig
from allot.driver import Device, Driver, Node, Places, Pool, Surroundings, running
from allot.informers import Change, Deleted, Informers, ResourceId
from allot.nodeagent.counting import Counts
from allot.nodeagent.keeping import Keeper
from allot.nodeagent.preparing import Preparing
from allot.nodeagent.registry_loop import Registry
from allot.testing import api_server
from allot.wire import UnixSockets

NS = "default"
PODS_ON_EACH = 10
LIMITS = {"created_to_running_p50_ms": 150, "rss_mb": 1000, "idle_cores": 0.1}
SOON_S = 120.0

Figures = dict[str, Any]


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# -- starting ------------------------------------------------------------------------------------


@dataclass
class Heard:
    """What a client hears of pods, and when."""

    phases: dict[str, str] = field(default_factory=dict)
    ran_at: dict[str, float] = field(default_factory=dict)
    turn: asyncio.Event = field(default_factory=asyncio.Event)

    def on_pod(self, change: Change) -> None:
        pod = change.object
        if isinstance(change, Deleted):
            self.phases.pop(pod.name, None)
        else:
            phase = (pod.fields.get("status") or {}).get("phase", "")
            if phase == "Running":
                self.ran_at.setdefault(pod.name, time.perf_counter())
            self.phases[pod.name] = phase
        self.turn.set()
        self.turn = asyncio.Event()

    async def until_running(self, names: Iterable[str]) -> None:
        wanted = set(names)
        async with asyncio.timeout(SOON_S):
            while not wanted <= self.ran_at.keys():
                await self.turn.wait()

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(SOON_S):
            while name in self.phases:
                await self.turn.wait()


@asynccontextmanager
async def client_of(folder: Path) -> AsyncIterator[tuple[Client, Heard]]:
    client = Client(HttpsTransport(kubeconfig.load(folder / "kubeconfig")))
    heard = Heard()
    try:
        async with Informers(client, random.Random(1)) as informers:
            pods = informers.use(ResourceId("", "v1", "pods"))
            await informers.synced(pods)
            pods.handle(heard.on_pod)
            yield client, heard
    finally:
        await client.close()


def pod(name: str, node: str, template: str = "", image: str = "none") -> Figures:
    container: Figures = {"name": "main", "image": image, "command": ["sleep", "infinity"]}
    spec: Figures = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
        "terminationGracePeriodSeconds": 1,  # the first process of a container need not heed a SIGTERM
    }
    if template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


async def starting(pods: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bn") as short:  # sockets lie below it
        up = Up.start(Path(short), 0, ["--fleet", "edge", "--agents", "1"])
        try:
            async with client_of(Path(short)) as (client, heard):
                return {
                    kind: await started(client, heard, kind, template, pods)
                    for kind, template in (("plain", ""), ("with a claim", "one-gpu"))
                }
        finally:
            up.stop()


async def started(
    client: Client, heard: Heard, kind: str, template: str, count: int, image: str = "none"
) -> Figures:
    api, took_ms, gone_ms = client.resource("", "v1", "pods"), [], []
    for number in range(count + 1):
        name = f"{'claim' if template else 'plain'}-{number}"
        began = time.perf_counter()
        await api.create(pod(name, "agent-0", template, image))
        await heard.until_running([name])
        took_ms.append(1000 * (heard.ran_at[name] - began))
        began = time.perf_counter()
        await api.delete(name, NS)
        await heard.until_gone(name)
        gone_ms.append(1000 * (time.perf_counter() - began))
        if number % 25 == 0:
            say(f"starting: {kind}: {number} of {count}")
    del took_ms[0], gone_ms[0]  # the first one meets what nobody has used yet
    return {
        "pods": count,
        **spread("created_to_running", took_ms),
        **spread("deleted_to_gone", gone_ms),
        **limited("created_to_running_p50_ms", median(took_ms)),
    }


def spread(name: str, took_ms: list[float]) -> Figures:
    return {
        f"{name}_p50_ms": round(median(took_ms), 1),
        f"{name}_p99_ms": round(quantiles(took_ms, n=100)[98], 1),
    }


def limited(name: str, found: float) -> Figures:
    return {"limit": LIMITS[name], "holds": found < LIMITS[name]}


# -- preparing -----------------------------------------------------------------------------------


async def preparing(pairs: int) -> Figures:
    """Each pod has one claim; then as many pods as there are workers at a time, as on a busy node."""
    with tempfile.TemporaryDirectory(prefix="bn") as short:
        folder = Path(short)
        async with api_server() as server:
            client = server.client()
            await client.resource("", "v1", "nodes", namespaced=False).create(
                {"metadata": {"name": kit.NODE}}
            )
            claims = [await allocated(client, number) for number in range(pairs)]
            say(f"preparing: {pairs} claims are allocated")
            async with agent(client, folder, pairs) as node:
                found = {}
                for at_once in (1, 20):
                    began = time.perf_counter()
                    for first in range(0, pairs, at_once):
                        some = claims[first : first + at_once]
                        await asyncio.gather(*(node.prepare(one.uid, [one]) for one in some))
                        await asyncio.gather(*(node.unprepare(one.uid) for one in some))
                    rate = pairs / (time.perf_counter() - began)
                    found[f"pairs_per_s_{at_once}_at_once"] = round(rate, 1)
                    say(f"preparing: {rate:.0f} pairs a second, {at_once} at once")
                return {"pairs": pairs, **found}


async def allocated(client: Client, number: int) -> Object:
    made = await kit.allocated(client, f"claim-{number}", f"gpu-{number}")
    return await client.resource("resource.k8s.io", "v1", "resourceclaims").get(made.name, NS)


@asynccontextmanager
async def agent(client: Client, folder: Path, devices: int) -> AsyncIterator[Preparing]:
    """What an agent does about claims, with a driver of the kit that is registered with it."""

    def pools(node: Node) -> list[Pool]:
        return [Pool(node.name, [Device(f"gpu-{at}") for at in range(devices)])]

    places = Places(kit.NAME, folder, folder / "cdi")
    registered = asyncio.Event()

    def on_driver(name: str) -> None:
        if registry.drivers.is_there(name):
            registered.set()

    registry = Registry(UnixSockets(), places.registry, on_driver)
    following = asyncio.create_task(registry.run())
    try:
        driver = Driver(kit.NAME, pools, kit.prepare)
        async with running(driver, Node(kit.NODE), places, Surroundings(client)):
            await registered.wait()
            yield Preparing(Keeper(folder, MachineFiles()), registry, Counts(Metrics(), SystemClock()))
    finally:
        following.cancel()
        await asyncio.wait((following,))


# -- publishing ----------------------------------------------------------------------------------


async def publishing() -> Figures:
    with tempfile.TemporaryDirectory(prefix="bn") as short:
        async with api_server() as server:
            client = server.client()
            await client.resource("", "v1", "nodes", namespaced=False).create(
                {"metadata": {"name": kit.NODE}}
            )
            say(f"publishing: {kit.DEVICES} devices")
            return {"devices": kit.DEVICES, "published_s": await kit.publishing(client, Path(short))}


# -- many ----------------------------------------------------------------------------------------


async def many(agents: int, idle_s: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bn") as short:
        folder = Path(short)
        say(f"many: {agents} agents begin")
        up = Up.start(folder, 0, ["--fleet", "edge", "--agents", str(agents)])
        try:
            async with client_of(folder) as (client, heard):
                run_s = await fill(client, heard, agents)
                await asyncio.sleep(5)  # what follows from the last start
            return {
                "agents": agents,
                "pods": agents * PODS_ON_EACH,
                "of_which_have_a_device": agents,
                "agents_ready_s": round(up.ready_s, 2),
                "all_running_s": round(run_s, 2),
                **await at_rest(up, folder, idle_s),
            }
        finally:
            up.stop()


async def fill(client: Client, heard: Heard, agents: int) -> float:
    """One pod of each agent has its device."""
    pods = client.resource("", "v1", "pods")
    names, began = [], time.perf_counter()
    for number in range(PODS_ON_EACH):
        new = [pod(f"p-{number}-{at}", f"agent-{at}", "" if number else "one-gpu") for at in range(agents)]
        await asyncio.gather(*map(pods.create, new))
        names += [one["metadata"]["name"] for one in new]
        await heard.until_running(names)
        say(f"many: {len(names)} pods run")
    return time.perf_counter() - began


async def at_rest(up: Up, folder: Path, idle_s: float) -> Figures:
    (shepherd,) = [pid for pid in mentioning(folder) if "shepherd" in command(pid)]
    (server,) = [pid for pid in children(up.process.pid) if "apiserver" in command(pid)]
    below = descendants(shepherd)
    wrappers = [pid for pid in below if is_ours(pid)]
    containers = [pid for pid in below if pid not in wrappers]
    ours = {"agents": up.process.pid, "shepherd": shepherd, "server": server}
    before, began = {name: cpu_s(pid) for name, pid in ours.items()}, time.perf_counter()
    say(f"many: at rest for {idle_s:.0f} s")
    await asyncio.sleep(idle_s)
    took_s = time.perf_counter() - began
    cores = {name: round((cpu_s(pid) - before[name]) / took_s, 4) for name, pid in ours.items()}
    rss = {name: round(memory_mb(pid, "VmRSS")) for name, pid in ours.items()}
    rss["wrappers of containers"] = round(sum(memory_mb(pid, "VmRSS") for pid in wrappers))
    wrapped_mb = rss["agents"] + rss["shepherd"] + rss["wrappers of containers"]
    idle_cores = cores["agents"] + cores["shepherd"]
    return {
        "rss_mb": {**rss, "agents, shepherd and wrappers": wrapped_mb, **limited("rss_mb", wrapped_mb)},
        "wrappers": len(wrappers),
        "containers": len(containers),
        "containers_own_rss_mb": round(sum(memory_mb(pid, "VmRSS") for pid in containers)),
        "containers_own_pss_mb": round(sum(map(pss_mb, containers))),
        "idle_s": round(took_s),
        "idle_cores": {
            **cores,
            "agents and shepherd": round(idle_cores, 4),
            **limited("idle_cores", idle_cores),
        },
    }


def is_ours(pid: int) -> bool:
    """A process that stays beside the command of a container, or has not become it."""
    return command(pid).startswith("allot container") or "shepherd" in command(pid)


def pss_mb(pid: int) -> float:
    """What a process shares with others is divided between them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


def mentioning(folder: Path) -> set[int]:
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if str(folder) in command(pid)}


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("starting", "preparing", "publishing", "many")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART", help=", ".join(parts))
    parser.add_argument(
        "--pods", type=int, default=200, metavar="N", help="of starting, and pairs of preparing"
    )
    parser.add_argument("--agents", type=int, default=50, metavar="N", help="of many")
    parser.add_argument("--idle", type=float, default=60.0, metavar="S", help="at rest, of many")
    options = parser.parse_args()
    work: dict[str, Callable[[], Coroutine[Any, Any, Figures]]] = {
        "starting": lambda: starting(options.pods),
        "preparing": lambda: preparing(options.pods),
        "publishing": publishing,
        "many": lambda: many(options.agents, options.idle),
    }
    report: Figures = {"benchmark": "node", "python": platform.python_version()}
    for part in options.parts or parts:
        busy = os.getloadavg()[0]
        report[part] = {**asyncio.run(work[part]()), "load_before": round(busy, 1)}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
