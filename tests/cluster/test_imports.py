"""What a process imports is most of its start."""

import subprocess
import sys

PARENT = "import allot.cli.up, allot.cluster.whole, sys; print('\\n'.join(sys.modules))"
SERVER = "import allot.cli.apiserver_of_up, sys; print('\\n'.join(sys.modules))"


def imported(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return {".".join(name.split(".")[:3]) for name in done.stdout.split() if name.startswith("allot.")}


def test_a_cluster_whose_server_is_elsewhere_imports_no_server():
    assert not imported(PARENT) & {
        "allot.apiserver.assembly",
        "allot.apiserver.serving",
        "allot.apiserver.writing",
    }


def test_the_process_of_the_server_imports_nothing_of_the_rest():
    found = {name.split(".")[1] for name in imported(SERVER)}
    assert "apiserver" in found
    assert not found & {"controllers", "scheduler", "hollow", "node", "allocation", "informers"}
