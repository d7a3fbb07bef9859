"""Agents and drivers touch their machine through ports alone, or no simulator could stand in for it.

Files, sockets, containers and clocks are handed in. What is named below is the real side of a port, or a
program that puts real sides together.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "allot"
BEHIND_PORTS = ("nodeagent", "driver", "drivers")
REAL_SIDES = {
    "nodeagent/runtimes/process": "containers as processes, and what they print",
    "nodeagent/runtimes/cri/hostfiles.py": "what containers of containerd print, and what is mounted",
    "nodeagent/runtimes/cri/streaming.py": "streams of commands and ports, at an address of containerd's",
    "nodeagent/logs.py": "reads what such containers have printed",
    "nodeagent/serving.py": "the agent's own HTTPS server",
    "nodeagent/dialing.py": "connections of the node to whatever a probe names",
    "nodeagent/registering.py": "measures the machine, for whoever does not hand in a measure",
    "driver/main.py": "a driver as a program",
    "driver/controller/run.py": "a driver's controller as a program",
    "drivers/fabric/enclosure.py": "the fabric's manager, as a file",
    "drivers/fpga/board.py": "the registers of cards, as files",
    "drivers/gpu_memory/node.py": "runs what the administrator wants to have run",
    "drivers/nvidia/nvml.py": "NVIDIA's library, and what the machine says of its GPUs",
    "drivers/nvidia/driverfiles.py": "where the machine has the files of NVIDIA's driver",
    "drivers/loop/attaching.py": "loop devices of the machine",
    "drivers/net/interfaces.py": "interfaces of the machine",
    "drivers/net/moving.py": "a hook that container runtimes run",
    "drivers/cpu/machine.py": "the cores of the machine",
    "drivers/cpu/pinning.py": "a hook that container runtimes run",
    "drivers/pcie.py": "where devices of the machine hang",
}
MODULES = {
    "fcntl",
    "multiprocessing",
    "os",
    "select",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "time",
}
CALLS = {
    "chmod",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "exists",
    "glob",
    "is_dir",
    "is_file",
    "iterdir",
    "mkdir",
    "open",
    "open_connection",
    "open_unix_connection",
    "read_bytes",
    "read_text",
    "rglob",
    "rmdir",
    "start_server",
    "start_unix_server",
    "stat",
    "today",
    "touch",
    "unlink",
    "utcnow",
    "write_bytes",
    "write_file",
    "write_text",
}


def touching(text: str) -> Iterator[str]:
    """What a file does to the machine by itself."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (f"line {node.lineno}: {one.name}" for one in names if one.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield f"line {node.lineno}: {module}"
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
                yield f"line {node.lineno}: {name}()"
            case ast.Call(func=ast.Attribute(attr="now", value=ast.Name(id="datetime"))):
                yield f"line {node.lineno}: datetime.now()"


def files() -> list[Path]:
    found = [path for package in BEHIND_PORTS for path in sorted((SRC / package).rglob("*.py"))]
    return [path for path in found if not any(path.is_relative_to(SRC / one) for one in REAL_SIDES)]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SRC)))
def test_agents_and_drivers_touch_their_machine_through_ports(path: Path):
    assert list(touching(path.read_text())) == []


@pytest.mark.parametrize("name", REAL_SIDES)
def test_what_is_named_as_a_real_side_is_one(name: str):
    """Else the list would let through what nobody meant."""
    path = SRC / name
    assert any([*touching(one.read_text())] for one in (path.rglob("*.py") if path.is_dir() else [path]))


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from os.path import join",
        "import subprocess as s",
        "Path('a').read_text()",
        "open('a')",
        "datetime.now(UTC)",
        "asyncio.start_server(talk)",
        "write_file(path, b'')",
    ],
)
def test_each_way_around_a_port_is_seen(text: str):
    assert [*touching(text)]
