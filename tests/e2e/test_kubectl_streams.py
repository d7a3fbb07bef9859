"""The real kubectl inside pods of a real node: exec, cp, port-forward and top, through a whole cluster."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from allot.testing import cluster
from components import binary
from e2e.process import Kubectl

MARK = "allot-test-of-streams"
"""In the arguments of what is run, so that what is left of it can be found."""
SERVE = (
    "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
    "while True:\n c, _ = s.accept(); c.sendall(b'pod says ' + c.recv(100)); c.close()\n"
)


@pytest.fixture(scope="module")
def kubectl():
    with cluster(fleet="plain", nodes=1, agents=1) as running:
        kubectl = Kubectl(binary("kubectl"), running.kubeconfig)
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": "agent-0"},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "command": ["python3", "-c", SERVE],
                    "env": [{"name": "ME", "value": "web"}],
                }
            ],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
        kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50s")
        yield kubectl


def until(is_so, within_s=30.0):
    end = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def left():
    """Processes of ours that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if MARK.encode() in words and b"kubectl" not in words[0]:
            found.append(words)
    return found


def test_a_command_runs_beside_the_container_with_its_variables(kubectl):
    said = kubectl("exec", "web", "-c", "main", "--", "sh", "-c", "echo $ME; echo oops >&2")
    assert said == "web\noops\n"
    failed = subprocess.run(
        [kubectl.program, "exec", "web", "-c", "main", "--", "sh", "-c", "exit 42"],
        env=kubectl.environment,
        timeout=60,
    )
    assert failed.returncode == 42
    assert (
        kubectl("exec", "-i", "web", "-c", "main", "--", "wc", "-c", stdin="x" * 1_000_000).strip()
        == "1000000"
    )


def test_attaching_reaches_the_process_of_the_container(kubectl):
    """Its own input, and what it prints from then on, which is in its log as well."""
    spec = {
        "nodeName": "agent-0",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "x",
                "stdin": True,
                "command": ["sh", "-c", "while read w; do echo heard $w; done"],
            }
        ],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ears"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", "pod/ears", "--timeout=50s")
    process = subprocess.Popen(
        [kubectl.program, "attach", "-i", "ears"],
        env=kubectl.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        for word in ("one", "two"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"heard {word}\n"
    finally:
        process.kill()
        process.communicate()
    assert kubectl("logs", "ears") == "heard one\nheard two\n"
    kubectl("delete", "pod", "ears", "--timeout=50s")


def test_a_terminal_is_one(kubectl):
    """As somebody sits at it: what is typed is echoed, and the size is that of the window."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    process = subprocess.Popen(
        [kubectl.program, "exec", "-it", "web", "-c", "main", "--", "sh"],
        env=kubectl.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    try:
        os.write(ours, b"stty size; tty; exit 7\n")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                said += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        assert process.wait(60) == 7, said
    finally:
        process.kill()
        os.close(ours)
    assert b"33 99" in said and b"/dev/pts/" in said


def test_files_go_there_and_back(kubectl, tmp_path):
    source, there, back = (tmp_path / name for name in ("source", "there", "back"))
    source.write_bytes(os.urandom(500_000))
    kubectl("cp", str(source), f"web:{there}")
    kubectl("cp", f"web:{there}", str(back))
    assert back.read_bytes() == source.read_bytes()


def test_a_port_of_the_pod_is_reached(kubectl):
    port = kubectl("logs", "web", "-c", "main").split()[0]
    process = subprocess.Popen(
        [kubectl.program, "port-forward", "web", f":{port}", "--address", "127.0.0.1"],
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", process.stdout.readline())
        for number in range(3):
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=60) as connection:
                connection.sendall(b"hello %d" % number)
                answer = b""
                while data := connection.recv(100):
                    answer += data
            assert answer == b"pod says hello %d" % number
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def heed_interrupts():
    """Also where whoever runs the tests in the background does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_client_that_leaves_leaves_no_process_on_the_node(kubectl, how):
    process = subprocess.Popen(
        [kubectl.program, "exec", "web", "-c", "main", "--", "sh", "-c", "echo begun; sleep 1000", MARK],
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        assert process.stdout.readline() == "begun\n"
        assert left()
        process.send_signal(how)
        process.wait(60)
    finally:
        process.kill()
        process.communicate()
    until(lambda: not left())


def test_what_is_used_is_shown(kubectl):
    busy = kubectl.start("exec", "web", "-c", "main", "--", "sh", "-c", "while :; do :; done", MARK)
    try:
        until(lambda: bool(left()))
        lines = kubectl("top", "node", "agent-0").splitlines()
        assert re.match(r"agent-0\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%", lines[1]), lines
        lines = kubectl("top", "pod", "web", "--containers").splitlines()
        assert any(re.match(r"web\s+main\s+\d+m\s+\d+Mi", line) for line in lines), lines
    finally:
        busy.kill()
        busy.communicate()
    until(lambda: not left())


def test_a_container_joins_the_pod_to_look_into_it(kubectl):
    """kubectl debug: what it runs is beside the others, and its output is shown."""
    look = (
        "--image=x",
        "--container=look",
        "--attach=false",
        "--",
        "sh",
        "-c",
        "echo looking; exec sleep 1000",
    )
    kubectl("debug", "web", *look)
    where = "jsonpath={.status.ephemeralContainerStatuses[?(@.name=='look')].state.running.startedAt}"
    until(lambda: bool(kubectl("get", "pod", "web", "-o", where).strip()))
    until(lambda: kubectl("logs", "web", "-c", "look") == "looking\n")
    assert kubectl("exec", "web", "-c", "look", "--", "echo", "inside") == "inside\n"
    assert kubectl("exec", "web", "-c", "main", "--", "echo", "still there") == "still there\n"
