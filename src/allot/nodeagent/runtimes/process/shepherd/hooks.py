"""Programs that CDI devices want to have run at moments of a container's life, as the OCI has them.

    prestart, createRuntime   outside, when the container's namespaces are there
    createContainer           in its namespaces, before its root is
    startContainer            inside, before its command
    poststart, poststop       outside; what they answer changes nothing

Each is told on its standard input how the container stands.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import kernel

OCI_VERSION = "1.0.2"


class Failed(Exception):
    """The message names the hook, and says what it printed."""


class State(NamedTuple):
    id: str
    bundle: Path
    pid: int
    annotations: Mapping[str, str]

    def at(self, status: str) -> bytes:
        content = {
            "ociVersion": OCI_VERSION,
            "id": self.id,
            "status": status,
            "pid": self.pid,
            "bundle": str(self.bundle),
            "annotations": dict(self.annotations),
        }
        return json.dumps(content).encode()


def write_bundle(directory: Path, wanted: Mapping[str, Any]) -> None:
    """What programs of vendors look up beside the state. Raises OSError."""
    content = {
        "ociVersion": OCI_VERSION,
        "root": {"path": str(directory / "root"), "readonly": wanted["read_only_root"]},
        "process": {
            "args": wanted["command"],
            "env": [f"{name}={value}" for name, value in wanted["env"].items()],
            "cwd": wanted["directory"] or str(directory),
        },
        "hostname": wanted["hostname"],
        "annotations": wanted["annotations"],
    }
    (directory / "config.json").write_text(json.dumps(content))


def run(name: str, hooks: Sequence[Mapping[str, Any]], state: bytes) -> None:
    """Raises Failed."""
    for one in hooks:
        _run(name, one, state)


def run_all(hooks: Sequence[Mapping[str, Any]], state: bytes) -> None:
    """Those whose failure changes nothing: it is said, and the next one runs."""
    for one in hooks:
        try:
            _run("hook", one, state)
        except Failed as failed:
            print(failed, file=sys.stderr, flush=True)


def _run(name: str, hook: Mapping[str, Any], state: bytes) -> None:
    arguments = list(hook["args"]) or [hook["path"]]
    try:
        process = subprocess.Popen(
            arguments,
            executable=hook["path"],
            env=dict(one.partition("=")[::2] for one in hook["env"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_prepare,
        )
    except OSError as failed:
        raise Failed(f"{name} hook {hook['path']}: {failed.strerror}") from None
    try:
        said, _ = process.communicate(state, timeout=hook["timeout"])
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Failed(f"{name} hook {hook['path']} took longer than {hook['timeout']} s") from None
    if process.returncode:
        words = said.decode(errors="replace").strip()
        why = f"killed by signal {-process.returncode}" if process.returncode < 0 else f"{process.returncode}"
        raise Failed(f"{name} hook {hook['path']} ended with {why}{': ' + words if words else ''}")


def _prepare() -> None:
    """In a user namespace it may do there what we may."""
    kernel.die_with_parent(signal.SIGKILL)
    if os.geteuid() != 0:
        kernel.hand_on_capabilities()
