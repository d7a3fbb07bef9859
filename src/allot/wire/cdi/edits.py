"""The edits of several devices as one, merged as container runtimes do.

variables      by name: the last value, at the place of the first
device nodes   by path in the container: the last
mounts         by path in the container: the last; then those that lie less deep come first
hooks          all of them, in order
groups         each once; the root's is left out
Intel RDT      the last
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TypeVar

from .spec import ContainerEdits

T = TypeVar("T")


def merged(several: Iterable[ContainerEdits]) -> ContainerEdits:
    edits = tuple(several)
    variables: dict[str, str] = {}
    for one in edits:
        variables.update((variable.partition("=")[0], variable) for variable in one.env)
    nodes = _last((node.path, node) for one in edits for node in one.device_nodes)
    mounts = _last((mount.container_path, mount) for one in edits for mount in one.mounts)
    groups = dict.fromkeys(gid for one in edits for gid in one.additional_gids if gid)
    rdt = [one.intel_rdt for one in edits if one.intel_rdt is not None]
    return ContainerEdits(
        env=tuple(variables.values()),
        device_nodes=tuple(nodes),
        hooks=tuple(hook for one in edits for hook in one.hooks),
        mounts=tuple(sorted(mounts, key=lambda mount: len(PurePosixPath(mount.container_path).parts))),
        intel_rdt=rdt[-1] if rdt else None,
        additional_gids=tuple(groups),
    )


def _last(keyed: Iterable[tuple[str, T]]) -> list[T]:
    """Of each key the last, in the order in which those came."""
    found: dict[str, T] = {}
    for key, value in keyed:
        found.pop(key, None)
        found[key] = value
    return list(found.values())
