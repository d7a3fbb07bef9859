"""One box: a cluster with one agent, and a driver of a machine's devices beside it, as a process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from components import binary
from e2e.process import Kubectl
from e2e.test_here import phase, until
from e2e.test_up import Up


class Box:
    def __init__(self, folder: Path, driver: str, *flags: str) -> None:
        data = folder / "data"
        self.up = Up(data, "--nodes", "0", "--fleet", "plain", "--agents", "1")
        self.kubectl = Kubectl(binary("kubectl"), self.up.kubeconfig)
        root = data / "agents/0"
        words = ["driver", driver, *flags, "--node", "agent-0", "--root", str(root)]
        words += ["--cdi-dir", str(root / "cdi"), "--kubeconfig", str(self.up.kubeconfig)]
        with (folder / "driver.log").open("w") as log:
            command = [sys.executable, "-m", "allot.cli", *words]
            self.driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.driver.stdout is not None
        assert self.driver.stdout.readline() == "ready\n", (folder / "driver.log").read_text()
        until(self.devices, "devices are published")

    def close(self) -> None:
        self.driver.terminate()
        self.driver.wait(30)
        self.up.stop()

    def apply(self, text: str) -> None:
        self.kubectl("apply", "-f", "-", stdin=text)

    def devices(self) -> list[dict[str, Any]]:
        slices = json.loads(self.kubectl("get", "resourceslices", "-o", "json"))["items"]
        return [device for one in slices for device in one["spec"].get("devices", ())]

    def is_at(self, pod: str, wanted: str) -> None:
        until(lambda: phase(self.kubectl, pod) == wanted, f"pod {pod} is {wanted}")

    def waits(self, pod: str) -> str:
        path = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
        return str(until(lambda: self.kubectl("get", "pod", pod, "-o", path), f"{pod} says why it waits"))
