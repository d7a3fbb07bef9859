"""Which drivers are registered, and through which of its instances each one is called. Pure.

What it promises
    DRIVER1  Of several instances of a driver the newest that is connected is called; if none is, the newest.
             So a driver is replaced without a moment in which nobody answers.
    DRIVER2  One endpoint, one instance.
    DRIVER3  A plugin is spoken to in the first version of its own list that the agent knows, and its
             health is followed in the newest version that both know.
    DRIVER4  Plugins of both types may have one name, as the halves of a driver that serves claims of both
             shapes: a claim is told to an instance of its own type.
    DRIVER5  Of those that say they tell what they have, the newest that is connected is asked; where none
             says so, the newest of all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from allot.api import names
from allot.wire import capacity, classic, dra, health, registration


class BadPlugin(Exception):
    """The plugin cannot be registered. The message is what it is told."""


@dataclass(frozen=True, slots=True)
class Instance:
    socket: str  # the path of its registration socket
    driver: str
    endpoint: str
    version: dra.Version | None  # None: it takes classic claims, one a call
    followed: health.Version | None = None  # how its health is told
    tells_capacity: bool = False  # it says that it does
    is_connected: bool = False
    turn: int = 0  # which registration of all it was: one that comes again is another one

    @property
    def is_classic(self) -> bool:
        return self.version is None


def introduced(socket: str, info: registration.PluginInfo) -> Instance:
    """A plugin by what it says of itself. Raises BadPlugin."""
    if info.type not in (registration.DRA_PLUGIN, classic.RESOURCE_PLUGIN):
        raise BadPlugin(f"no handler registered for plugin type: {info.type} at socket {socket}")
    if not info.name:
        raise BadPlugin(f"the DRA driver at socket {socket} does not say its name")
    if names.subdomain(info.name.lower()):
        # No claim can name it, and selectors and logs would have to bear what it is.
        raise BadPlugin(
            f"the DRA driver at socket {socket} has a name that no claim can have: {info.name[:80]!r}"
        )
    tells = capacity.VERSION in info.supported_versions
    if info.type == classic.RESOURCE_PLUGIN:
        return Instance(socket, info.name, info.endpoint or socket, None, tells_capacity=tells)
    ours = {version.name: version for version in dra.VERSIONS}
    version = next((ours[name] for name in info.supported_versions if name in ours), None)
    if version is None:
        raise BadPlugin(
            f"DRA driver {info.name} supports {_listed(info.supported_versions)}, "
            f"and this node supports {_listed(ours)}"
        )
    followed = next((one for one in health.VERSIONS if one.name in info.supported_versions), None)
    return Instance(socket, info.name, info.endpoint or socket, version, followed, tells)


class Drivers:
    def __init__(self) -> None:
        self._instances: dict[str, Instance] = {}  # by registration socket, the newest last
        self._turns = 0

    def add(self, instance: Instance) -> None:
        """Raises BadPlugin (DRIVER2)."""
        for other in self._instances.values():
            if other.endpoint == instance.endpoint and other.socket != instance.socket:
                raise BadPlugin(
                    f"endpoint {instance.endpoint} of DRA driver {instance.driver} is already registered "
                    f"by {other.driver} at socket {other.socket}"
                )
        self.remove(instance.socket)
        self._turns += 1
        self._instances[instance.socket] = replace(instance, turn=self._turns)

    def at(self, socket: str) -> Instance | None:
        return self._instances.get(socket)

    def remove(self, socket: str) -> None:
        self._instances.pop(socket, None)

    def connected(self, socket: str, is_connected: bool) -> None:
        if socket in self._instances:
            self._instances[socket] = replace(self._instances[socket], is_connected=is_connected)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(one.driver for one in self._instances.values() if not one.is_classic)

    @property
    def classic_names(self) -> frozenset[str]:
        return frozenset(one.driver for one in self._instances.values() if one.is_classic)

    def called(self, driver: str, *, classic: bool = False) -> Instance | None:
        """DRIVER1, DRIVER4."""
        own = (one for one in self._instances.values() if one.driver == driver)
        return _newest([one for one in own if one.is_classic == classic])

    def source(self, driver: str) -> Instance | None:
        """DRIVER5."""
        own = [one for one in self._instances.values() if one.driver == driver]
        return _newest([one for one in own if one.tells_capacity] or own)

    def is_there(self, driver: str) -> bool:
        """Some instance of it is connected."""
        return any(one.driver == driver and one.is_connected for one in self._instances.values())


def _newest(found: Sequence[Instance]) -> Instance | None:
    """Of those that are connected; if none is, of all."""
    return next((one for one in reversed(found) if one.is_connected), found[-1] if found else None)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no version"
