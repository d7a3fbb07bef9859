"""The program: `main(DIRECTORY)`. It leaves whoever began it at once, and is one for each directory."""

import fcntl
import gc
import os
import signal
import sys
from pathlib import Path

from . import abilities, kernel, records
from .cgroups import Cgroups
from .loop import Shepherd

ABILITIES = "abilities.json"
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from shepherd.main import main; sys.exit(main(*sys.argv[2:]))"
)


def command(root: Path, user: int | None) -> list[str]:
    """What begins it: a Python with nothing of ours but this package."""
    here = Path(__file__).parent.parent
    as_user = [] if user is None else [str(user)]
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, str(here), str(root), *as_user]


def main(directory: str, user: str = "") -> int:
    if user:
        kernel.become(int(user))
    if os.fork():
        return 0  # whoever began it need not wait for its end
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True, mode=0o750)
    with open(root / "shepherd.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # there is one
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # It ends when nothing is left to look after. Not ignored: its containers would ignore it too.
            signal.signal(number, lambda number, frame: None)
        kernel.adopt()
        gc.freeze()  # what every fork has, and none looks through
        records.end_what_is_left(root)
        cgroups = Cgroups(root)
        found = abilities.tried(cgroups.lacks)
        records.write(root / ABILITIES, found)
        Shepherd(root, cgroups, found).run()
        cgroups.close()
        (root / "shepherd.sock").unlink(missing_ok=True)
    return 0
