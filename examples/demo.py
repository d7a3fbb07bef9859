"""The demo: a whole cluster in this process, and what it promises, seen through its API.

It runs what `allot up` runs (API server on SQLite, controllers, scheduler, nodes without a
machine, and this machine) on a data directory that is gone afterwards, and talks to it over HTTPS as anybody
would: it applies the files beside it, watches, and compares what it sees with what was asked.
Nothing is known beforehand. It ends with status 0 only if every promise was seen.

    make demo            # or: make demo KEEP=1, to look around afterwards
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import uvloop
import yaml

from allot.api import Quantity, errors
from allot.apiserver import ServingOptions
from allot.client import Client, HttpsTransport, Resource, kubeconfig
from allot.cluster import ClusterOptions, cluster, this_machine, way_to_nodes
from allot.fleet import Fleet, fleet
from allot.sim import checkers
from onlooker import Fields, NotSeen, Onlooker, devices_in, name_of, node_of, runs, why_it_waits
from story import Story

HERE = Path(__file__).parent
KUBECTL_BESIDE = HERE.parent / ".cache/components/bin"  # where `make components` puts one
NAMESPACE = "default"
APP, EXTENDED = "inference", "example.com/gpu"
PCIE_ROOT, NUMA_NODE = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"
MIXED = fleet("mixed", nodes=4)
PATIENCE_S = COMMAND_S = 30.0
LOOK_AROUND = (
    "get nodes",
    "get resourceslices,deviceclasses,resourceclaimtemplates",
    "apply -f examples/deployment.yaml",
    "get pods,resourceclaims -o wide",
)


class Demo:
    """The steps, in the order in which they are played (`STEPS` below names their promises)."""

    def __init__(self, config: Path, client: Client, story: Story, patience_s: float) -> None:
        self._config = config
        self._client = client
        self._story = story
        self._patience_s = patience_s
        self._look: Onlooker
        self._applied: list[Fields] = []
        self._room = ""

    async def play(self) -> None:
        """Up to the first promise that is not seen."""
        async with Onlooker(self._client, self._patience_s) as self._look:
            for promise, step in STEPS.items():
                self._story.begin(promise)
                try:
                    await step(self)
                except (NotSeen, errors.ApiError) as wrong:
                    self._story.end(promise, str(wrong))
                    return
                self._story.end(promise)

    # -- the steps ------------------------------------------------------------------------------

    async def nodes(self) -> None:
        self._asked("nothing yet: these nodes have devices, but no machine")
        await self._look.until("there are nodes of each kind", lambda: all(self._nodes()))
        by_dra, by_plugin, neither = self._nodes()
        self._saw(f"GPUs: {_list(by_dra)} (DRA), {_list(by_plugin)} (device plugin); none: {_list(neither)}")
        self._room = await self._allot("capacity", "--template", "one-gpu")
        self._saw(f"GPUs by DRA: {self._room.splitlines()[-1]} (allot capacity --template one-gpu)")

    async def deployment(self) -> None:
        await self._apply("deployment.yaml", f"{EXTENDED}: 1, once, then more often than DRA has GPUs")
        await self._look.until("the pod of the Deployment runs", lambda: self._served(1))
        many = 1 + len(self._gpus())
        await self._scale(many)
        pods = await self._look.until(f"{many} pods of the Deployment run", lambda: self._served(many))
        by_dra, by_plugin, neither = self._nodes()
        claiming = [pod for pod in pods if self._look.claims_of(pod)]
        others = [pod for pod in pods if not self._look.claims_of(pod)]
        for pod in claiming:
            places = [device.get("node") for device in self._look.devices_of(pod).values()]
            require(places == [node_of(pod)], f"{name_of(pod)} on {node_of(pod)} has devices of {places}")
        require(bool(claiming) and {*map(node_of, claiming)} <= by_dra, "nobody got a GPU by DRA")
        require(bool(others) and {*map(node_of, others)} <= by_plugin, "nobody got a GPU of a device plugin")
        self._saw(
            f"{len(claiming)} run by DRA ({_list(map(node_of, claiming))}),"
            f" {len(others)} by device plugin ({_list(map(node_of, others))});"
            f" {_list(neither)} was passed over"
        )
        await self._scale(1)
        await self._look.until(
            "GPUs come back with the pods", lambda: self._served(1) and len(self._held()) <= 1
        )

    async def template(self) -> None:
        await self._apply("trainer.yaml", "two GPUs of NUMA node 1 with 40Gi or more, on one PCIe root")
        (pod,) = await self._look.until("trainer runs", lambda: self._look.running("trainer"))
        devices = self._look.devices_of(pod)
        sizes = [device["capacity"]["memory"]["value"] for device in devices.values()]
        numa = {device["attributes"][NUMA_NODE]["int"] for device in devices.values()}
        roots = {device["attributes"][PCIE_ROOT]["string"] for device in devices.values()}
        require(len(devices) == 2, f"trainer got {_list(devices)}")
        require(all(Quantity.parse(size) >= Quantity.parse("40Gi") for size in sizes), f"they have {sizes}")
        require(numa == {1}, f"{_list(devices)} are on the NUMA nodes {numa}")
        require(len(roots) == 1, f"{_list(devices)} are on {_list(roots)}")
        self._saw(f"{_list(devices)}, with {' and '.join(sizes)}, on NUMA node 1, {_list(roots)}")

    async def shared(self) -> None:
        await self._apply("shared.yaml", "one claim, named by two pods")
        pods = await self._look.until("writer and reader run", lambda: self._look.running("writer", "reader"))
        require(len({*map(node_of, pods)}) == 1, "they are on different nodes")
        (claim,) = self._look.claims_of(pods[0])
        users = {one["name"] for one in claim["status"]["reservedFor"]}
        require(users == {"writer", "reader"}, f"the claim is reserved for {_list(users)}")
        self._saw(f"{_list(devices_in(claim))} for {_list(users)}, both on {node_of(pods[0])}")

    async def partition(self) -> None:
        await self._apply("halves.yaml", "half a GPU each, of the profile 3g.40gb")
        pods = await self._look.until("left and right run", lambda: self._look.running("left", "right"))
        parts = {name: device for pod in pods for name, device in self._look.devices_of(pod).items()}
        profiles = [device["attributes"]["profile"]["string"] for device in parts.values()]
        require(profiles == ["3g.40gb"] * 2, f"the parts are {_list(parts)}")
        drawn = self._look.draws()
        over = [" ".join(counter) for counter, (used, has) in drawn.items() if used > has]
        require(not over, f"more is drawn than there is: {_list(over)}")
        told = [
            f"{used} of {has} multiprocessors of {gpu}"
            for (_, gpu, name), (used, has) in drawn.items()
            if used and name == "multiprocessors"
        ]
        self._saw(f"{_list(parts)}; drawn: {_list(told)}")

    async def explanation(self) -> None:
        many = len(self._gpus()) + sum(self._plugin_gpus().values())
        await asyncio.sleep(1.0)  # starts are told in whole seconds, and of equals the youngest goes
        await self._scale(many)
        full = f"of {many} pods of the Deployment those that cannot run say why"
        await self._look.until(full, lambda: self._settled(many))
        await self._apply("latecomer.yaml", "one GPU, while the Deployment takes all that are left")
        told = await self._look.until("latecomer says why it waits", lambda: self._why("latecomer"))
        self._saw(told)
        tree = await self._allot("explain", "pod/latecomer")
        nodes = [name_of(node) for node in self._look.all("nodes")]
        require(f"none of {len(nodes)} nodes takes it" in tree and all(node in tree for node in nodes), tree)
        self._story.say("", f"$ allot explain pod/latecomer\n{tree}")

    async def preemption(self) -> None:
        holders = {device: name_of(pod) for pod in self._look.pods() for device in self._look.devices_of(pod)}
        await self._apply("urgent.yaml", "the same, with a priority of 1000")
        (pod,) = await self._look.until("urgent runs", lambda: self._look.running("urgent"))
        (device,) = self._look.devices_of(pod)
        victim = holders.get(device, "")
        require(bool(victim), f"urgent got {device}, which nobody had")
        require(self._look.was_evicted(victim), f"{victim} had {device} and was not evicted")
        require(bool(self._why("latecomer")), "the latecomer, of no priority, got a GPU too")
        self._saw(f"{victim} had to go, and urgent has its {device}; the latecomer still waits")

    async def machine(self) -> None:
        drivers = {name.partition("/")[0] for name, _ in self._look.devices()}
        if "loop.allot.dev" in drivers:
            await self._apply("own-disk.yaml", "a disk of 8 MiB, on the machine that this runs on")
        elif "cpu.allot.dev" in drivers:
            await self._apply("own-core.yaml", "a core, on the machine that this runs on")
        else:
            raise NotSeen("no driver of this machine has published anything")
        (pod,) = await self._look.until("scribe runs", lambda: self._look.running("scribe"))
        told = await self._printed("scribe")
        require(told.startswith("has ") and "sees" not in told, f"it printed\n{told}")
        self._saw(f"on {node_of(pod)}: {_list(self._look.devices_of(pod))}; its log: {told.strip()}")
        kubectl = shutil.which("kubectl", path=f"{os.environ.get('PATH', '')}:{KUBECTL_BESIDE}")
        if kubectl is None:
            self._saw("no kubectl is installed, so nothing was asked inside the container")
            return
        words = ("exec", "scribe", "--", "sh", "-c", "echo asked inside by $(id -un)")
        answer = await self._run(kubectl, "--kubeconfig", str(self._config), *words)
        require(answer.startswith("asked inside by"), f"kubectl exec printed {answer}")
        self._saw(f"kubectl exec: {answer}")

    async def deletion(self) -> None:
        self._asked("everything that was applied is deleted")
        for one in reversed(self._applied):
            await self._resource(one).delete(name_of(one), _namespace(one))
        await self._look.until("no pod and no claim is left", self._is_empty)
        resources = ("resource.k8s.io", "v1", "resourceclaims"), ("", "v1", "pods")
        for resource in resources:
            left = (await self._client.resource(*resource).list()).objects
            require(not left, f"{resource[2]} are left: {_list(one.name for one in left)}")
        room = await self._allot("capacity", "--template", "one-gpu")
        require(room == self._room, f"allot capacity said\n{self._room}\nand says\n{room}")
        self._saw(
            f"no pod, no claim, nothing prepared on any node; {room.splitlines()[-1]}, as at the beginning"
        )

    async def judgement(self) -> None:
        history = await self._look.history()
        self._asked(
            f"the {len(history)} events that the API told are read again, against the promises about claims"
        )
        broken = checkers.judge(history, checkers.for_any_cluster())
        require(not broken, "\n".join(broken))
        self._saw(
            "one holder a device (D1), what was asked for (D4), protected while in use (C1), no leak (C3)"
        )

    # -- asking ---------------------------------------------------------------------------------

    def _asked(self, text: str) -> None:
        self._story.say("asked", text)

    def _saw(self, text: str) -> None:
        self._story.say("saw", text)

    async def _apply(self, file: str, wish: str) -> None:
        self._asked(f"{wish} (examples/{file})")
        for one in yaml.safe_load_all((HERE / file).read_text()):
            await self._resource(one).create(one, _namespace(one))
            self._applied.append(one)

    def _resource(self, one: Fields) -> Resource:
        group, _, version = one["apiVersion"].rpartition("/")
        plural = f"{one['kind'].lower()}{'es' if one['kind'].endswith('s') else 's'}"
        return self._client.resource(group, version, plural, namespaced=bool(_namespace(one)))

    async def _scale(self, replicas: int) -> None:
        deployments = self._client.resource("apps", "v1", "deployments")
        await deployments.patch(APP, {"spec": {"replicas": replicas}}, NAMESPACE, subresource="scale")

    async def _printed(self, pod: str) -> str:
        """The pod's log, once there is something in it."""
        pods = self._client.resource("", "v1", "pods")
        for _ in range(round(self._patience_s / 0.1)):
            text = b"".join([piece async for piece in pods.log(pod, NAMESPACE)]).decode()
            if text:
                return text
            await asyncio.sleep(0.1)
        raise NotSeen(f"pod {pod} printed nothing within {self._patience_s:g} s")

    async def _allot(self, *words: str) -> str:
        """What our command prints."""
        config = ("--kubeconfig", str(self._config))
        return await self._run(sys.executable, "-m", "allot.cli", *words, *config)

    async def _run(self, *command: str) -> str:
        """What a command prints, run as anybody would run it."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        try:
            async with asyncio.timeout(COMMAND_S):
                printed, complained = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NotSeen(f"{' '.join(command)} did not answer within {COMMAND_S:g} s") from None
        require(process.returncode == 0, f"{' '.join(command)}: {complained.decode()}")
        return printed.decode().rstrip()

    # -- looking --------------------------------------------------------------------------------

    def _gpus(self) -> list[str]:
        """Whole GPUs that are published."""
        kinds = {name: (one.get("attributes") or {}).get("type", {}) for name, one in self._look.devices()}
        return [name for name, kind in kinds.items() if kind.get("string") == "gpu"]

    def _plugin_gpus(self) -> dict[str, int]:
        amounts = {name_of(node): node["status"]["allocatable"] for node in self._look.all("nodes")}
        return {
            node: int(amount[EXTENDED]) for node, amount in amounts.items() if int(amount.get(EXTENDED, 0))
        }

    def _nodes(self) -> tuple[set[str], set[str], set[str]]:
        """Those with GPUs by DRA, by device plugin, and the others."""
        published = dict(self._look.devices())
        by_dra = {published[gpu]["node"] for gpu in self._gpus()}
        by_plugin = set(self._plugin_gpus())
        return by_dra, by_plugin, {name_of(node) for node in self._look.all("nodes")} - by_dra - by_plugin

    def _served(self, count: int) -> list[Fields]:
        """The pods of the Deployment, once there are so many and all run."""
        pods = self._look.pods(app=APP)
        return pods if len(pods) == count and all(map(self._look.is_served, pods)) else []

    def _settled(self, count: int) -> bool:
        """So many pods of the Deployment run or say why not, and some do not."""
        pods = self._look.pods(app=APP)
        waiting = [pod for pod in pods if why_it_waits(pod)]
        return bool(waiting) and len(waiting) + sum(map(runs, pods)) == len(pods) == count

    def _why(self, pod: str) -> str:
        return "".join(map(why_it_waits, self._look.pods(pod)))

    def _held(self) -> list[str]:
        return [device for claim in self._look.all("resourceclaims") for device in devices_in(claim)]

    def _is_empty(self) -> bool:
        prepared = [(one.get("status") or {}).get("claims") for one in self._look.all("preparedclaims")]
        return not self._look.pods() and not self._look.all("resourceclaims") and not any(prepared)


STEPS: dict[str, Callable[[Demo], Awaitable[None]]] = {
    "Nodes of three kinds: with DRA, with a device plugin, with neither": Demo.nodes,
    "KEP-5004: a Deployment runs unmodified on both kinds of nodes with GPUs": Demo.deployment,
    "A claim template with a selector: the devices are of that kind": Demo.template,
    "A shared claim: two pods use one device": Demo.shared,
    "Partitions: two halves of GPUs, within the counters of what they are cut from": Demo.partition,
    "A pod that does not fit says why": Demo.explanation,
    "Preemption: a more important pod gets the device of a lesser one": Demo.preemption,
    "A real agent beside hollow nodes: a container has its device and no other, logs and exec": Demo.machine,
    "After deletion every device has been given back": Demo.deletion,
    "At no moment was a promise about claims and devices broken": Demo.judgement,
}


def require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise NotSeen(otherwise)


def _namespace(one: Fields) -> str:
    return "" if one["kind"] == "PriorityClass" else NAMESPACE


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted({*names})) or "none"


async def run(of: Fleet = MIXED, *, patience_s: float = PATIENCE_S, keep: bool = False) -> bool:
    """Play the demo on a fleet. Whether every promise was seen."""
    story, began_s = Story([*STEPS]), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="allot-demo-") as folder:
        serving = ServingOptions(Path(folder) / "data", way_to_nodes=way_to_nodes)
        machine = this_machine(serving.data_dir)
        async with cluster(ClusterOptions(serving, of, machine=machine)) as running:
            print(
                f"API server, controllers, scheduler and {of.size} nodes in this process:"
                f" ready in {time.monotonic() - began_s:.1f} s\n{machine.sentence}",
                flush=True,
            )
            config = running.server.kubeconfig
            client = Client(HttpsTransport(kubeconfig.load(config)), user_agent="demo")
            try:
                await _keep_apart(client, machine.name)
                await Demo(config, client, story, patience_s).play()
            finally:
                await client.close()
            is_true = story.summary()
            if keep:
                await _stay(config)
            else:
                print("\nTo look around: make up, or make demo KEEP=1 for these nodes. In another terminal:")
                _show_around("$PWD/allot-data/kubeconfig")
    return is_true


async def _keep_apart(client: Client, node: str) -> None:
    """Pods whose containers are made up have nothing to do on a machine that runs what they say."""
    taints = [{"key": "allot.dev/real", "effect": "NoSchedule"}]
    await client.resource("", "v1", "nodes", namespaced=False).patch(node, {"spec": {"taints": taints}})


async def _stay(config: Path) -> None:
    """Until interrupted."""
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    print("\nThe cluster stays until you interrupt it. In another terminal:")
    _show_around(str(config))
    await interrupted.wait()


def _show_around(config: str) -> None:
    print(f"   export KUBECONFIG={config}")
    for command in LOOK_AROUND if shutil.which("kubectl") else ():
        print(f"   kubectl {command}")
    print("   .venv/bin/allot capacity --template half-gpu", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="A whole cluster, and what it promises.")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running until interrupted")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        return 0 if uvloop.run(run(keep=options.keep)) else 1
    return 130


if __name__ == "__main__":
    sys.exit(main())
