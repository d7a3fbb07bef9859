"""kill -9 of agent, driver, containerd and API server during the life of a pod that has a network interface.

The interface is one end of a pair that the test makes; the other end lies in a network namespace of the
test's own. It moves into the pod by the hook of a CDI spec and is the machine's again afterwards: whoever is
killed when, neither an interface nor a namespace is left anywhere else. On both runtimes, as root.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rights
from containerd import CONTAINERD_2, containerd
from e2e.test_containerd_crashes import ContainerdMachine
from e2e.test_here import until
from e2e.test_node_crashes import NODE, Machine, _below, _kill, live_and_die

pytestmark = rights.needs_root("only root may move network interfaces")

NUMBER = os.getpid() % 100000  # names of interfaces are the whole machine's
OTHER_END = "far"
ADDRESS = "10.9.8.7/24"
OFFERS = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: net.allot.dev}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "net.allot.dev"'}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: wire}}
spec:
  spec:
    devices:
      requests: [{{name: wire, exactly: {{deviceClassName: net.allot.dev}}}}]
      config: [{{opaque: {{driver: net.allot.dev, parameters: {{kind: NetConfig, addresses: [{ADDRESS}]}}}}}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {node.allot.dev/network: own}}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: wire, resourceClaimTemplateName: wire}]
  volumes:
  - {name: marks, hostPath: {path: MARKS, type: FileOrCreate}}
  containers:
  - name: main
    image: IMAGE
    command:
    - sh
    - -c
    - echo $(env | grep ^DEVICE_) $(ip -o -4 addr show dev $NET_INTERFACE_WIRE) >> MARKS; exec sleep 300
    resources: {claims: [{name: wire}]}
    volumeMounts: [{name: marks, mountPath: MARKS}]
"""
CASES = [
    ("after", "Prepare", "agent"),
    ("before", "Run", "agent"),
    ("after", "Run", "agent"),
    ("after", "Stop", "agent"),
    ("before", "Unprepare", "agent"),
    ("after", "Unprepare", "agent"),
    ("after", "Remove", "agent"),
    ("before", "call", "driver"),
    ("after", "call", "driver"),
    ("before", "Unprepare", "driver"),
    ("before", "Run", "server"),
    ("before", "Unprepare", "server"),
]
OF_CONTAINERD = [
    ("before", "Run", "containerd"),
    ("after", "Run", "containerd"),
    ("before", "Stop", "containerd"),
    ("before", "Unprepare", "containerd"),
    ("before", "Remove", "containerd"),
]


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=30).stdout


class Wire:
    """A pair of interfaces: one end for the driver, the other far away."""

    def __init__(self, name: str) -> None:
        self.name, self.far = name, f"{name}-far"
        _ip("netns", "add", self.far)
        self.lay()

    def lay(self) -> None:
        _ip("link", "add", self.name, "type", "veth", "peer", "name", OTHER_END, "netns", self.far)

    def is_on_the_machine(self) -> bool:
        return self.name in {name for _, name in socket.if_nameindex()}

    def is_whole(self) -> bool:
        """Its other end is still there: nobody destroyed the one and made another."""
        return OTHER_END in _ip("-n", self.far, "-br", "link")

    def remove(self) -> None:
        if self.is_on_the_machine():
            _ip("link", "del", self.name)
        _ip("netns", "del", self.far)


class _WithWire(Machine):
    """What both machines have in common."""

    pod = POD
    wire: Wire

    def offers(self) -> str:
        return OFFERS

    def is_clean(self) -> bool:
        notes = self.root / "plugins/net.allot.dev/given"
        return (
            super().is_clean()
            and self.wire.is_on_the_machine()
            and self.wire.is_whole()
            and not [*notes.iterdir()]
            and _namespaces(self.root) == set()
        )


class NetMachine(_WithWire):
    interface = f"nc{NUMBER}"
    device = f"=net.allot.dev/{NODE}/{interface} "
    driver_words = ("net", "--interface", interface)


class ContainerdNetMachine(_WithWire, ContainerdMachine):
    interface = f"cc{NUMBER}"
    device = f"=net.allot.dev/{NODE}/{interface} "
    driver_words = ("net", "--interface", interface)


def _namespaces(root: Path) -> set[str]:
    """Network namespaces of processes that a folder's shepherd began."""
    own = os.readlink("/proc/self/ns/net")
    found = set()
    for pid in _below(root):
        for child in _tree(pid):
            try:
                found.add(os.readlink(f"/proc/{child}/ns/net"))
            except OSError:
                continue
    return found - {own}


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = [one.read_text().split() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return
    for child in (int(one) for several in children for one in several):
        yield from _tree(child)


@contextmanager
def _at_work(made: _WithWire) -> Iterator[_WithWire]:
    try:
        made.start_driver()
        made.revive()
        yield made
    finally:
        made.end()


@contextmanager
def _wired(interface: str) -> Iterator[tuple[Path, Wire]]:
    folder = Path(tempfile.mkdtemp(prefix="nw"))  # short: sockets lie below it
    wire = Wire(interface)
    try:
        yield folder, wire
    finally:
        wire.remove()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def machine() -> Iterator[_WithWire]:
    with _wired(NetMachine.interface) as (folder, wire):
        here = NetMachine(folder)
        here.wire = wire
        with _at_work(here):
            yield here


@pytest.fixture(scope="module", params=["", CONTAINERD_2], ids=["containerd 1.7", "containerd 2"])
def containerd_machine(request: pytest.FixtureRequest) -> Iterator[_WithWire]:
    with (
        containerd(has_networks=True, folder=request.param) as daemon,
        _wired(ContainerdNetMachine.interface) as (folder, wire),
    ):
        here = ContainerdNetMachine(folder, daemon)
        here.wire = wire
        with _at_work(here):
            yield here


@pytest.mark.parametrize(("when", "what", "victim"), CASES)
def test_somebody_is_killed_and_the_interface_comes_and_goes_all_the_same(machine, when, what, victim):
    """N1 to N8."""
    live_and_die(machine, when, what, victim)
    assert ADDRESS in machine.marks.read_text(), "N4: the pod had it, with its address"


@pytest.mark.parametrize(("when", "what", "victim"), [*CASES[2:3], *CASES[5:6], *CASES[8:10], *OF_CONTAINERD])
def test_somebody_is_killed_and_on_containerd_too(containerd_machine, when, what, victim):
    """N1 to N8."""
    live_and_die(containerd_machine, when, what, victim)
    assert ADDRESS in containerd_machine.marks.read_text(), "N4: the pod had it, with its address"


def test_after_a_reboot_the_pod_has_the_interface_again(machine):
    """N1 to N8."""

    def lose_power() -> None:
        for pid in [child for one in _below(machine.root / "containers") for child in _tree(one)]:
            os.kill(pid, signal.SIGKILL)

    reboot(machine, lose_power)


def test_after_a_reboot_the_pod_has_the_interface_again_on_containerd_too(containerd_machine):
    """N1 to N8."""
    reboot(containerd_machine, containerd_machine.daemon.lose_power)


def reboot(here: _WithWire, lose_power: Callable[[], None]) -> None:
    """Whatever ran is gone, and its namespaces with it. The kernel gives hardware back then; an end of a pair
    is gone too, so that the test lays the wire again."""
    here.marks.unlink(missing_ok=True)
    here.start_agent()
    here.apply()
    here.until(here.is_running, "it runs")
    here.until(here.has_left_its_mark, "its command has begun")
    for process in (here.agent, here.driver):
        _kill(process)
    lose_power()
    for path in here.cdi.iterdir():
        path.unlink()
    until(lambda: not here.wire.is_whole(), "the namespace is gone, and the wire with it")
    here.wire.lay()
    here.until(lambda: len(here.marks.read_text().splitlines()) == 2, "it was started again")
    assert _is_restarted_once(here), "N3"
    assert all(here.device in line and ADDRESS in line for line in here.marks.read_text().splitlines())
    here.until(lambda: bool(here.kubectl("delete", "pod", "p", "--wait=false")), "deleted")
    here.until(here.is_gone, "it is gone")
    here.until(here.is_clean, "nothing is left")
    _kill(here.agent)
    here.agent = None


def _is_restarted_once(here: _WithWire) -> bool:
    return (
        here.kubectl("get", "pod", "p", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "1"
    )
