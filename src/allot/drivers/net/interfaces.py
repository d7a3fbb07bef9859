"""The network interfaces of this machine, and the moves of one: by `moving`, in a process of its own, since
whoever enters a network namespace leaves the machine's."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from allot.driver import Hook, NotUsable

from .. import pcie
from . import moving
from .making import Interface

SYSTEM: Final = Path("/sys/class/net")
_BACK_S: Final = 20.0
_DOWN: Final = "down"


class MachineInterfaces:
    def __init__(self, notes: Path) -> None:
        """`notes` is where hooks note which interface is in which container."""
        self._notes = notes

    def found(self, names: Iterable[str]) -> tuple[Interface, ...]:
        """Those of the names that are here now."""
        return tuple(one for name in names if (one := _read(name)) is not None)

    def hook(
        self,
        interface: str,
        claim: str,
        is_pair: bool,
        addresses: Iterable[str],
        host_addresses: Iterable[str] = (),
    ) -> Hook:
        self._notes.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = [*_words("give", interface, self._note(interface, claim), is_pair)]
        for address in addresses:
            words += ["--address", address]
        for address in host_addresses:
            words += ["--host-address", address]
        return Hook("createRuntime", words[0], tuple(words), timeout=30)

    def back(self, interface: str, claim: str, is_pair: bool) -> None:
        """Raises OSError."""
        note = self._note(interface, claim)
        if not note.exists():
            return  # no container has had it
        done = subprocess.run(
            [*_words("back", interface, note, is_pair)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BACK_S,
        )
        if done.returncode:
            raise OSError(f"{interface} does not come back: {done.stderr.strip()[-500:]}")

    def is_given(self, interface: str) -> bool:
        return any(self._notes.glob(f"*.{interface}.json"))

    def _note(self, interface: str, claim: str) -> Path:
        return self._notes / f"{claim}.{interface}.json"


def require_root() -> None:
    """Raises NotUsable."""
    if os.geteuid() != 0:
        raise NotUsable("only root may move network interfaces")


def spare() -> tuple[str, ...]:
    """Hardware that nobody uses: it is switched off. What is in use is only taken when it is named."""
    names = (
        sorted(path.name for path in SYSTEM.iterdir() if (path / "device").exists())
        if SYSTEM.exists()
        else []
    )
    return tuple(
        name for name in names if _text(name, "operstate") == _DOWN and not int(_text(name, "flags"), 16) & 1
    )


def _read(name: str) -> Interface | None:
    path = SYSTEM / name
    if not path.exists():
        return None
    device = path / "device"
    return Interface(
        name,
        _text(name, "address"),
        int(_text(name, "mtu") or 0),
        int(_text(name, "speed") or 0),
        os.path.realpath(device).rpartition("/")[2] if (device / "vendor").exists() else "",
        pcie.root(device),
    )


def _text(interface: str, field: str) -> str:
    try:
        return (SYSTEM / interface / field).read_text().strip()
    except OSError:  # the speed of one that is down, say
        return ""


def _words(deed: str, interface: str, note: Path, is_pair: bool) -> list[str]:
    kind = ["--pair"] if is_pair else []
    machine = str(os.stat(moving.OWN).st_ino)
    program = [sys.executable, "-I", "-S", str(moving.__file__)]
    return [*program, deed, interface, "--machine", machine, "--note", str(note), *kind]
