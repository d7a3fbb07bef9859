"""`allot apiserver`, `allot controllers`, `allot scheduler`, a driver of classic claims and kubectl as
processes that tests may kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


def allot(
    *arguments: str, within_s: float = 60, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, with more in its environment."""
    return subprocess.run(
        [sys.executable, "-m", "allot.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=within_s,
        env={**os.environ, **(env or {})},
    )


class ServerProcess:
    def __init__(self, data_dir: Path, store: str = "sqlite", port: int = 0, *more: str) -> None:
        self.data_dir = data_dir
        self.kubeconfig = data_dir / "kubeconfig"
        self._command = [sys.executable, "-m", "allot.cli", "apiserver", "--data-dir", str(data_dir)]
        self._command += ["--store", store, *more]
        self._port = port
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self, *more: str) -> None:
        """On the port that it had, with more options for this time."""
        self.log = (self.data_dir.parent / f"{self.data_dir.name}.log").open("a")
        self.process = subprocess.Popen(
            [*self._command, "--port", str(self._port), *more],
            stdout=subprocess.PIPE,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", Path(self.log.name).read_text()
        url = self.kubeconfig.read_text().split('server: "', 1)[1].split('"', 1)[0]
        self.url = url
        self._port = int(url.rpartition(":")[2])

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait(20)
        self.process.stdout.close()
        self.log.close()
        return code


@dataclass(frozen=True)
class Lease:
    """How long a dead leader is waited for."""

    duration_s: int = 3
    renew_deadline_s: float = 2
    retry_period_s: float = 0.3

    def options(self) -> list[str]:
        options = {
            "--lease-duration": self.duration_s,
            "--renew-deadline": self.renew_deadline_s,
            "--retry-period": self.retry_period_s,
        }
        return [part for name, value in options.items() for part in (name, str(value))]


class Component:
    """One copy of a component, with the rights of its user and no more."""

    command: str
    user: str

    def __init__(self, server: ServerProcess, name: str, lease: Lease | None = None, *more: str) -> None:
        self.name = name
        self._log = (server.data_dir.parent / f"{name}.log").open("a")
        access = server.data_dir.parent / f"{self.user.replace(':', '-')}.kubeconfig"
        if not access.exists():
            command = [sys.executable, "-m", "allot.cli", "credentials", self.user]
            options = ["--data-dir", str(server.data_dir), "--out", str(access)]
            subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, "-m", "allot.cli", *self.command.split(), "--kubeconfig", str(access)]
        self.process = subprocess.Popen(
            [*command, *self._leads(lease or Lease()), *more],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def _leads(self, lease: Lease) -> list[str]:
        return ["--identity", self.name, *lease.options()]

    def await_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", Path(self._log.name).read_text()

    def log_text(self) -> str:
        return Path(self._log.name).read_text()

    def pause(self) -> None:
        """Between two instructions, wherever that is. `resume`, or `end` with SIGKILL."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self, how: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code


class Controllers(Component):
    """`allot controllers`."""

    command, user = "controllers", "system:kube-controller-manager"


class Scheduler(Component):
    """`allot scheduler`."""

    command, user = "scheduler", "system:kube-scheduler"


class MockDriver(Component):
    """`allot driver mock controller`, alone."""

    command, user = "driver mock controller", "mock-driver"

    def _leads(self, lease: Lease) -> list[str]:
        return ["--no-leader-election"]


class Kubectl:
    """The real one. Calling it returns what it printed; it must succeed unless `fails`."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self.program = program
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}

    def __call__(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=60,
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"kubectl {' '.join(arguments)}: {said}"
        return said

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *arguments], stdout=subprocess.PIPE, text=True, env=self.environment
        )
