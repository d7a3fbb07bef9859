"""Pools: the slices that belong together, and which of their devices a node may use.

A pool is published in pieces, by drivers that restart, replace and forget. What a
node may allocate from is decided here, from all pieces that are known:

    newest      of the slices that reach the node only the highest generation counts
    obsolete    a higher generation elsewhere hides the node's devices, unless the
                node's own slices already make up the whole pool
    incomplete  fewer or more slices than the pool announced
    invalid     a device name or counter set twice, or counters that do not exist

D3: nothing is allocated from a pool that is obsolete, incomplete or invalid.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from allot.api import meta, resource

from .features import Features
from .kind import BadSlice, Device, DeviceId, Kinds, Place, PoolId, Taints, nano
from .node import BadNodeSelector, Node, selects

CounterKey = tuple[str, str]  # counter set, counter

NO_MEMBERS = None
SPLIT: frozenset[str] = frozenset(("",))
"""Devices without a group in common share a counter set already: nothing may join them."""

Groups = frozenset[str] | None
"""What the devices drawing from a counter set agree on: NO_MEMBERS, the groups they all
name, or the empty set when none of them names one."""


def joined(groups: Groups, newcomer: frozenset[str]) -> Groups:
    """The agreement once `newcomer` has joined; SPLIT where it may not.

    Devices that name no group get on with each other only.
    """
    if groups is NO_MEMBERS:
        return newcomer
    if not groups or not newcomer:
        return SPLIT if groups or newcomer else groups
    return (groups & newcomer) or SPLIT


class Shelf:
    """One slice, read."""

    __slots__ = (
        "announced",
        "counters",
        "devices",
        "generation",
        "has_groups",
        "key",
        "name",
        "place",
        "pool",
    )

    def __init__(
        self,
        key: str,
        published: resource.ResourceSlice,
        kinds: Kinds,
        taints: Callable[[DeviceId], Taints],
    ) -> None:
        spec = published.spec
        self.key = key
        self.name = published.metadata.name
        self.pool = PoolId(spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.announced = spec.pool.resource_slice_count
        self.place = Place(
            node_name=spec.node_name or None,
            node_selector=spec.node_selector,
            all_nodes=bool(spec.all_nodes),
            per_device=spec.per_device_node_selection,
            skip_node_operations=spec.skip_node_operations,
        )
        try:
            self.counters = tuple((one.name, _totals(one)) for one in spec.shared_counters)
        except ValueError as error:
            raise BadSlice(f"slice {self.name}: {error}") from None
        self.devices = tuple(self._device(one, kinds, taints) for one in spec.devices)
        self.has_groups = any(part.groups for device in self.devices for part in device.kind.consumption)

    @property
    def home(self) -> str | None:
        """The only node that the slice can concern, if there is one."""
        return self.place.node_name

    def _device(
        self, published: resource.Device, kinds: Kinds, taints: Callable[[DeviceId], Taints]
    ) -> Device:
        try:
            kind = kinds.of(self.pool.driver, published)
        except ValueError as error:
            raise BadSlice(f"slice {self.name}, device {published.name}: {error}") from None
        id = DeviceId(self.pool.driver, self.pool.name, published.name)
        return Device(id, kind, self.place, kind.taints + taints(id))

    def retainted(self, taints: Callable[[DeviceId], Taints]) -> "Shelf":
        """The same shelf under other taint rules. The old one stays as it is: forks may hold it."""
        shelf = Shelf.__new__(Shelf)
        for name in self.__slots__:
            setattr(shelf, name, getattr(self, name))
        shelf.devices = tuple(
            Device(one.id, one.kind, one.place, one.kind.taints + taints(one.id)) for one in self.devices
        )
        return shelf

    def reaches(self, node: Node) -> bool:
        """Whether the slice concerns `node`. Raises BadNodeSelector."""
        place = self.place
        if place.node_name is not None:
            return place.node_name == node.name
        if self.counters:  # needed wherever the pool is used, whatever nodes are selected
            return True
        if place.all_nodes:
            return True
        if place.node_selector is not None:
            return _selects(place.node_selector, node, f"slice {self.name}")
        return bool(place.per_device) and any(usable(device, node) for device in self.devices)


def usable(device: Device, node: Node) -> bool:
    """Whether a device that chooses its nodes itself chooses `node`. Raises BadNodeSelector."""
    if not device.place.per_device:
        return True
    chosen = device.kind.description
    if chosen.node_name:
        return chosen.node_name == node.name
    if chosen.all_nodes:
        return True
    return chosen.node_selector is not None and _selects(chosen.node_selector, node, f"device {device.id}")


@dataclass(frozen=True, slots=True, eq=False)
class PoolView:
    """A pool as one node sees it."""

    id: PoolId
    incomplete: bool = False
    invalid: str = ""
    devices: tuple[Device, ...] = ()
    elsewhere: Mapping[str, Sequence[Device]] = field(default_factory=dict)
    """Devices of the pool on slices that do not reach the node: they draw from its counters too."""
    totals: Mapping[CounterKey, int] = field(default_factory=dict)
    binding: bool = False

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid

    def drawing(self, names: Iterable[str]) -> Iterator[Device]:
        """The devices of these names that draw from counters, wherever they are."""
        wanted = set(names)
        for device in self.devices:
            if device.kind.consumption and device.id.name in wanted:
                yield device
        for name in wanted & self.elsewhere.keys():
            yield from self.elsewhere[name]


class Pool:
    """All known slices of one pool, of every generation, for every node."""

    def __init__(self, id: PoolId) -> None:
        self.id = id
        self.by_node: dict[str, dict[str, Shelf]] = {}
        self.roaming: dict[str, Shelf] = {}  # slices that are not bound to one node
        self._generations: Counter[int] = Counter()
        self._views: dict[tuple[str, ...], PoolView | None] = {}

    def copy(self) -> "Pool":
        pool = Pool(self.id)
        pool.by_node = {node: dict(shelves) for node, shelves in self.by_node.items()}
        pool.roaming = dict(self.roaming)
        pool._generations = self._generations.copy()
        return pool

    def put(self, shelf: Shelf, features: Features) -> None:
        self._home(shelf)[shelf.key] = shelf
        if _counts(shelf, features):
            self._generations[shelf.generation] += 1
        self._views.clear()

    def drop(self, shelf: Shelf, features: Features) -> None:
        home = self._home(shelf)
        del home[shelf.key]
        if not home and shelf.home is not None:
            del self.by_node[shelf.home]
        if _counts(shelf, features):
            self._generations[shelf.generation] -= 1
            if not self._generations[shelf.generation]:
                del self._generations[shelf.generation]
        self._views.clear()

    def shelves(self) -> Iterator[Shelf]:
        for home in self.by_node.values():
            yield from home.values()
        yield from self.roaming.values()

    @property
    def is_empty(self) -> bool:
        return not self.by_node and not self.roaming

    def roams(self, features: Features) -> bool:
        """Whether the pool may concern any node, not only those that its slices name.

        Counters that no node owns reach every node, but where nothing of the pool draws from them
        they tell a node something only while they show that the pool is incomplete or invalid.
        """
        if any(not shelf.counters for shelf in self.roaming.values()):
            return True
        counters = [shelf for shelf in self.roaming.values() if _visible(shelf, features)]
        view = self._seen(counters, features) if counters else None
        return view is not None and not view.usable

    def view(self, node: Node, features: Features) -> PoolView | None:
        """What `node` sees, or None if the pool does not concern it. Raises BadNodeSelector."""
        near = self.by_node.get(node.name)
        reaching = [s for s in near.values() if _visible(s, features)] if near else []
        reaching += [s for s in self.roaming.values() if _visible(s, features) and s.reaches(node)]
        return self._seen(reaching, features) if reaching else None

    def _seen(self, reaching: Sequence[Shelf], features: Features) -> PoolView | None:
        key = tuple(shelf.key for shelf in reaching)
        if key not in self._views:
            self._views[key] = self._build(reaching, features)
        return self._views[key]

    def _home(self, shelf: Shelf) -> dict[str, Shelf]:
        return self.roaming if shelf.home is None else self.by_node.setdefault(shelf.home, {})

    def _build(self, reaching: Sequence[Shelf], features: Features) -> PoolView | None:
        newest = max(shelf.generation for shelf in reaching)
        kept = [shelf for shelf in reaching if shelf.generation == newest]
        kept.sort(key=lambda shelf: shelf.name)
        announced = kept[0].announced  # they should all say the same
        others: list[Shelf] = []
        if len(kept) != announced:
            if any(generation > newest for generation in self._generations):
                return None
            if self._generations[newest] != announced:
                return PoolView(self.id, incomplete=True)
            keys = {shelf.key for shelf in kept}
            others = [s for s in self.shelves() if s.generation == newest and s.key not in keys]
        return _validated(self.id, kept, others, features)


def _validated(id: PoolId, kept: list[Shelf], others: list[Shelf], features: Features) -> PoolView:
    partitionable = features.partitionable_devices
    stocked = [shelf for shelf in kept if not (partitionable and shelf.counters)]
    devices = tuple(device for shelf in stocked for device in shelf.devices)
    names = [device.id.name for device in devices]
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        return PoolView(id, invalid=f"duplicate device name {twice}")
    totals: dict[CounterKey, int] = {}
    elsewhere: dict[str, list[Device]] = {}
    if partitionable:
        seen: set[str] = set()
        for counter_set, amounts in (one for shelf in (*kept, *others) for one in shelf.counters):
            if counter_set in seen:
                return PoolView(id, invalid=f"duplicate counter set name {counter_set}")
            seen.add(counter_set)
            totals.update(((counter_set, counter), amount) for counter, amount in amounts.items())
        far = [device for shelf in others for device in shelf.devices if device.kind.consumption]
        wrong = next(filter(None, (_misdrawn(device, seen, totals) for device in (*devices, *far))), None)
        if wrong is not None:
            return PoolView(id, invalid=wrong)
        for device in far:
            elsewhere.setdefault(device.id.name, []).append(device)
    binding = any(device.kind.binding for device in devices)
    return PoolView(id, devices=devices, elsewhere=elsewhere, totals=totals, binding=binding)


def _misdrawn(device: Device, sets: set[str], totals: Mapping[CounterKey, int]) -> str | None:
    for counter_set, amounts, _ in device.kind.consumption:
        if counter_set not in sets:
            return f"counter set {counter_set} not found"
        for counter, _ in amounts:
            if (counter_set, counter) not in totals:
                return f"counter {counter} not found in counter set {counter_set}"
    return None


def _counts(shelf: Shelf, features: Features) -> bool:
    """Whether the slice is there at all: without the gate, grouped slices are not."""
    return features.compatibility_groups or not shelf.has_groups


def _visible(shelf: Shelf, features: Features) -> bool:
    if not features.partitionable_devices and (shelf.place.per_device is not None or shelf.counters):
        return False
    return _counts(shelf, features)


def _selects(selector: meta.NodeSelector, node: Node, where: str) -> bool:
    try:
        return selects(selector, node)
    except BadNodeSelector as error:
        raise BadNodeSelector(f"failed to perform node selection for {where}: {error}") from None


def _totals(published: resource.CounterSet) -> dict[str, int]:
    where = f"sharedCounters[{published.name}]"
    return {name: nano(f"{where}[{name}]", counter.value) for name, counter in published.counters.items()}
