"""What a container gets with its devices, from the answers of their plugins. Pure.

Of two answers that name the same variable, path or annotation the first one counts, resources in order of
name.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from allot.wire import cdi, deviceplugin

from ..runtimes import Mount
from .loans import Loan

log = logging.getLogger(__name__)

V = TypeVar("V")


class Given(NamedTuple):
    """As a runtime is asked for it."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[cdi.DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi_ids: tuple[str, ...] = ()


NOTHING = Given()


def together(loans: Iterable[Loan]) -> Given:
    """Of one container."""
    found = [(one, one.answer) for one in loans if one.answer is not None]
    if not found:
        return NOTHING
    env = _first((one, answer.envs.items()) for one, answer in found)
    mounts = _first((one, ((m.container_path, _mount(m)) for m in answer.mounts)) for one, answer in found)
    nodes = _first((one, ((n.container_path, _node(n)) for n in answer.devices)) for one, answer in found)
    annotations = _first((one, answer.annotations.items()) for one, answer in found)
    cdi_ids = dict.fromkeys(device.name for _, answer in found for device in answer.cdi_devices)
    return Given(env, tuple(mounts.values()), tuple(nodes.values()), annotations, tuple(cdi_ids))


def _mount(said: deviceplugin.Mount) -> Mount:
    return Mount(said.host_path, said.container_path, said.read_only)


def _node(said: deviceplugin.DeviceSpec) -> cdi.DeviceNode:
    return cdi.DeviceNode(said.container_path, said.host_path, permissions=said.permissions)


def _first(answers: Iterable[tuple[Loan, Iterable[tuple[str, V]]]]) -> dict[str, V]:
    known: dict[str, V] = {}
    for loan, entries in answers:
        for name, value in entries:
            if known.setdefault(name, value) != value:
                log.warning(
                    "container %s: the device plugin of %s says something else of %s than another one",
                    loan.container,
                    loan.resource,
                    name,
                )
    return known
