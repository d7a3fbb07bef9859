"""One machine with a GPU and no Kubernetes: what `allot up --here` makes of it, seen and checked.

    bench/gpu_box.py --torch PYTHON [--out DIR]

PYTHON has PyTorch with CUDA. Needs root, and an NVIDIA GPU that nothing else uses. Prints JSON; exit status 1
if something was not as it should be.

    published    the GPU stands in a slice as NVML describes it
    computes     a pod with a claim multiplies two matrices on it, and the product is right
    shut out     a pod without a claim cannot open the device, nor one that it makes a node for
    one by one   two pods with claims never run at once
    in trouble   an XID is rehearsed: the device is tainted and the next pod waits, until all is well again

What was asked and answered lies in DIR/gpu-box.txt; DIR/gpu-inventory.json is what `allot driver nvidia
--replay` runs on.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig

Fields = dict[str, Any]
SOON_S = 120.0
DRIVER = "gpu.nvidia.com"
ALLOT = [sys.executable, "-m", "allot.cli"]

PRODUCT = """
import torch, time
a = torch.arange(16384 * 256, device="cuda", dtype=torch.float64).reshape(16384, 256) % 7
began = time.monotonic()
product = a.T @ a
torch.cuda.synchronize()
here = a.cpu()
print("device", torch.cuda.get_device_name(0))
print("difference", float((product.cpu() - here.T @ here).abs().max()))
print("sum", float(product.sum()))
"""
OPEN = """
import os, stat
def made(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(195, 0))
    return path
for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/mine", "/tmp/mine"):
    try:
        if path.endswith("mine"):
            made(path)
        os.close(os.open(path, os.O_RDWR))
        print(path, "opened")
    except OSError as refused:
        print(path, "refused:", refused.strerror)
"""
HOLD = """
import time, torch
torch.zeros(1, device="cuda")
print("began", time.time(), flush=True)
time.sleep(3)
print("ended", time.time(), flush=True)
"""


class Box:
    """A cluster on this machine, and a record of what was said."""

    def __init__(self, client: Client, say: Callable[[str], None]) -> None:
        self.pods = client.resource("", "v1", "pods")
        self.slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
        self.say = say

    async def until(self, what: str, question: Callable[[], Awaitable[Any]]) -> Any:
        end_s = time.monotonic() + SOON_S
        while True:
            with contextlib.suppress(errors.ApiError):
                if answer := await question():
                    return answer
            if time.monotonic() > end_s:
                raise AssertionError(f"{what}: it did not become so in {SOON_S:.0f} s")
            await asyncio.sleep(0.1)

    async def devices(self) -> list[Fields]:
        found = (await self.slices.list()).objects
        mine = [one.fields["spec"] for one in found if one.fields["spec"]["driver"] == DRIVER]
        return [device for spec in mine for device in spec.get("devices", ())]

    async def run(self, name: str, python: str, program: str, *, claims: bool) -> None:
        container: Fields = {"name": "main", "image": "none", "command": [python, "-c", program]}
        spec: Fields = {"restartPolicy": "Never", "containers": [container]}
        if claims:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        await self.pods.create({"metadata": {"name": name}, "spec": spec}, "default")

    async def ended(self, name: str) -> tuple[str, str]:
        """The phase in which the pod ended, and what it printed."""

        async def over() -> str:
            phase = (await self.pods.get(name, "default")).fields["status"].get("phase", "")
            return phase if phase in ("Succeeded", "Failed") else ""

        phase = await self.until(f"the end of pod {name}", over)
        text = b"".join([piece async for piece in self.pods.log(name, "default")]).decode()
        self.say(f"pod {name} {phase}:\n{text}")
        return phase, text

    async def furnish(self) -> None:
        exactly = {"deviceClassName": DRIVER}
        devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
        await self.templates.create(
            {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": devices}}}, "default"
        )


def started(command: Sequence[str], log: Path) -> subprocess.Popen[str]:
    with log.open("w") as said:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)


@contextlib.asynccontextmanager
async def cluster(folder: Path, say: Callable[[str], None], *flags: str) -> AsyncIterator[tuple[Box, Path]]:
    data, log = folder / "data", folder / "up.log"
    command = [*ALLOT, "up", "--data-dir", str(data), *flags]
    say(f"$ allot {' '.join(command[3:])}")
    process = started(command, log)
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert line.strip() == "ready", f"{line}{log.read_text()}"
        say(log.read_text())
        client = Client(HttpsTransport(kubeconfig.load(data / "kubeconfig")))
        try:
            yield Box(client, say), data
        finally:
            await client.close()
    finally:
        process.send_signal(signal.SIGTERM)
        say(f"`allot up` ended with {await asyncio.to_thread(process.wait, 60)}")


async def here(folder: Path, torch: str, say: Callable[[str], None]) -> Fields:
    async with cluster(folder, say, "--here") as (box, _):
        devices = await box.until("a published GPU", box.devices)
        say(json.dumps(devices, indent=1))
        await box.furnish()
        began_s = time.monotonic()
        await box.run("computes", torch, PRODUCT, claims=True)
        phase, text = await box.ended("computes")
        took_s = time.monotonic() - began_s
        printed = dict(line.split(" ", 1) for line in text.strip().splitlines())
        assert phase == "Succeeded" and float(printed["difference"]) == 0.0, text
        await box.run("shut-out", torch, OPEN, claims=False)
        phase, text = await box.ended("shut-out")
        assert "opened" not in text and text.count("refused") == 4, text
        two = ("first", "second")
        for name in two:
            await box.run(name, torch, HOLD, claims=True)
        printed_by = [(await box.ended(name))[1] for name in two]
        times = [dict(line.split() for line in text.splitlines()) for text in printed_by]
        earlier, later = sorted(times, key=lambda one: float(one["began"]))
        apart_s = float(later["began"]) - float(earlier["ended"])
        assert apart_s >= 0, f"both had the GPU at once: {times}"
        return {
            "devices": [one["name"] for one in devices],
            "device": printed["device"],
            "computed_s": round(took_s, 2),
            "second_began_after_first_ended_s": round(apart_s, 2),
        }


async def in_trouble(folder: Path, torch: str, say: Callable[[str], None]) -> Fields:
    async with cluster(folder, say, "--agents", "1", "--nodes", "1") as (box, data):
        events, node = folder / "events", "agent-0"
        root = data / "agents" / "0"
        command = [*ALLOT, "driver", "nvidia", "--node", node, "--root", str(root)]
        command += ["--kubeconfig", str(data / "kubeconfig"), "--cdi-dir", str(root / "cdi")]
        command += ["--events", str(events)]
        say(f"$ allot {' '.join(command[3:])}")
        events.touch()
        driver = started(command, folder / "driver.log")
        try:
            expression = f'device.driver == "{DRIVER}"'
            spec = {"selectors": [{"cel": {"expression": expression}}]}
            await box.classes.create({"metadata": {"name": DRIVER}, "spec": spec})
            await box.furnish()
            await box.until("a published GPU", box.devices)
            with events.open("a") as file:
                file.write("gpu-0 xid 79\n")
            tainted = await box.until("a taint", lambda: _tainted(box))
            say(f"after `gpu-0 xid 79`: {json.dumps(tainted)}")
            await box.run("waits", torch, PRODUCT, claims=True)
            waits = await box.until("a pod that cannot be placed", lambda: _why(box, "waits"))
            say(f"pod waits: {waits}")
            with events.open("a") as file:
                file.write("gpu-0 well\n")
            phase, _ = await box.ended("waits")
            assert phase == "Succeeded"
            return {"taints": tainted, "the pod waited": waits, "then": phase}
        finally:
            driver.terminate()
            await asyncio.to_thread(driver.wait, 30)
            say((folder / "driver.log").read_text())


async def _tainted(box: Box) -> list[Fields]:
    return [taint for device in await box.devices() for taint in device.get("taints", ())]


async def _why(box: Box, name: str) -> str:
    status = (await box.pods.get(name, "default")).fields["status"]
    found = [one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]
    return str(found[0].get("message", "")) if found and found[0]["status"] == "False" else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", required=True, metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    with (options.out / "gpu-box.txt").open("w") as transcript:

        def say(text: str) -> None:
            for line in text.rstrip().splitlines():
                print(f"{time.monotonic() - began_s:7.2f}  {line}", file=transcript, flush=True)
                print(line, file=sys.stderr, flush=True)

        inventory = options.out / "gpu-inventory.json"
        command = [*ALLOT, "driver", "nvidia", "--record", str(inventory)]
        record = subprocess.run(command, capture_output=True, text=True)
        say(f"$ allot driver nvidia --record gpu-inventory.json\n{record.stdout}{record.stderr}")
        figures: Fields = {"recorded": record.returncode == 0}
        for name, part in {"here": here, "in trouble": in_trouble}.items():
            with tempfile.TemporaryDirectory(prefix="box") as folder:
                try:
                    figures[name] = asyncio.run(part(Path(folder), options.torch, say))
                except Exception as wrong:
                    say(f"{name}: {type(wrong).__name__}: {wrong}")
                    figures[name] = {"failed": str(wrong)}
                    for log in sorted(Path(folder).glob("*.log")):
                        say(f"{log.name}:\n{log.read_text()}")
    parts = (figures["here"], figures["in trouble"])
    figures["holds"] = figures["recorded"] and not any("failed" in one for one in parts)
    print(json.dumps(figures, indent=1))
    (options.out / "gpu-box.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if figures["holds"] else 1


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
