"""What a container sees: the machine's files, a /dev and a /proc of its own, and what is mounted for it.

There is no image: the machine's root is the container's, writable as far as its user may write. Where
something is to be mounted that the machine has no directory for, the nearest directory above is put together
anew: each of its entries in its place, and what is missing beside them. Nothing is made on the machine.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from typing import Any

from . import devices, kernel

_FLAGS = {
    "ro": kernel.MS_RDONLY,
    "nosuid": kernel.MS_NOSUID,
    "nodev": kernel.MS_NODEV,
    "noexec": kernel.MS_NOEXEC,
}
_OF_BINDS = {"bind", "rbind", "rw", "private", "rprivate", "slave", "rslave", "suid", "dev", "exec"}


class World:
    """Under construction, in a mount namespace of its own."""

    def __init__(self, root: str, *, is_read_only: bool) -> None:
        os.makedirs(root, exist_ok=True)
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
        kernel.bind("/", root)
        if is_read_only:
            kernel.make_read_only(root)
        self._root = root
        self._is_read_only = is_read_only
        self._is_own = {root: False}  # what lies at and below a path; the longest one counts
        self._shadows: list[str] = []

    def give_devices(self, nodes: list[Mapping[str, Any]], *, keeps_dev: bool, makes_nodes: bool) -> None:
        dev = f"{self._root}/dev"
        if not keeps_dev:
            kernel.mount("tmpfs", dev, "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=755,size=65536k")
            self._is_own[dev] = True
            devices.fill(dev, makes_nodes=makes_nodes)
        for node in nodes:
            self._give(node, makes_nodes)

    def _give(self, node: Mapping[str, Any], makes_nodes: bool) -> None:
        target = self._place(node["path"], is_directory=False)
        if self._belongs(os.path.dirname(target)):
            devices.place(node, target, makes_nodes=makes_nodes)
        else:  # over what the machine has there
            kernel.mount(node.get("host_path") or node["path"], target, flags=kernel.MS_BIND)

    def give_processes(self) -> None:
        """A /proc that shows those of the container."""
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", f"{self._root}/proc", "proc", flags)

    def mount(self, one: Mapping[str, Any]) -> None:
        source, kind, options = one["source"], one["kind"], one["options"]
        flags = sum(_FLAGS[option] for option in {*options} & _FLAGS.keys())
        if kind not in ("", "bind", "none"):
            data = ",".join(option for option in options if option not in _FLAGS and option not in _OF_BINDS)
            target = self._place(one["target"], is_directory=True)
            kernel.mount(source, target, kind, flags, data)
        else:
            if not os.path.exists(source):
                raise FileNotFoundError(f"mount at {one['target']}: this machine has nothing at {source}")
            target = self._place(one["target"], is_directory=os.path.isdir(source))
            kernel.bind(source, target)
            if not {"slave", "rslave"} & {*options}:
                kernel.mount("none", target, flags=kernel.MS_REC | kernel.MS_PRIVATE)
            if flags:
                kernel.remount(target, flags)
        self._is_own[target] = True

    def finish(self) -> None:
        """It is ready to be lived in."""
        for shadow in self._shadows if self._is_read_only else ():
            kernel.remount(shadow, kernel.MS_RDONLY)

    # -- places that the machine does not have --------------------------------------------------

    def _place(self, path: str, *, is_directory: bool) -> str:
        """Where it is under construction, made if it is not there."""
        inside = self._root + os.path.realpath(path)
        if os.path.lexists(inside):
            return inside
        above = os.path.dirname(inside)
        while not os.path.isdir(above):
            above = os.path.dirname(above)
        if not self._belongs(above):
            self._shadow(above)
        if is_directory:
            os.makedirs(inside)
        else:
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            with open(inside, "wb"):
                pass
        return inside

    def _belongs(self, path: str) -> bool:
        """To the container, and not to the machine."""
        while path not in self._is_own:
            path = os.path.dirname(path)
        return self._is_own[path]

    def _shadow(self, directory: str) -> None:
        before = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            found = os.stat(before)
            entries = [(one.name, one.is_symlink(), one.is_dir()) for one in os.scandir(directory)]
            mode = f"mode={stat.S_IMODE(found.st_mode):o}"
            kernel.mount("tmpfs", directory, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, mode)
            with contextlib.suppress(OSError):  # a plain user's namespace knows one user
                os.chown(directory, found.st_uid, found.st_gid)
            self._is_own[directory] = True
            self._shadows.append(directory)
            for name, is_link, is_directory in entries:
                self._show(f"/proc/self/fd/{before}/{name}", f"{directory}/{name}", is_link, is_directory)
        finally:
            os.close(before)

    def _show(self, source: str, target: str, is_link: bool, is_directory: bool) -> None:
        if is_link:
            os.symlink(os.readlink(source), target)
            return
        if is_directory:
            os.mkdir(target)
        else:
            with open(target, "wb"):
                pass
        kernel.bind(source, target)
        self._is_own[target] = False
