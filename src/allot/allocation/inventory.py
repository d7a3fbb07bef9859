"""What is published, arranged by the node that may use it.

Where it sits
    Slice and taint rule events go in one at a time; `question` asks what one node
    sees. The typed slice is read once, when it arrives, and then forgotten.

What it promises
    INV1  The order of events does not matter: the same slices and rules give the same views.
    INV2  Work follows the change: an event touches one pool, and only the nodes which that
          pool reaches are looked at again.
    INV3  A fork costs what is changed on it, and its parent never notices.
    INV4  `revision` grows with every change; `moved_since` names the nodes that a change
          since then may concern.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from allot.api import resource
from allot.base import Journal, Overlay

from .features import Features
from .kind import Device, DeviceId, Kinds, PoolId, Taints
from .node import Node
from .pool import Pool, PoolView, Shelf


@dataclass(slots=True, eq=False)
class NodeView:
    """The devices that one node may use, in the order in which they are tried."""

    node: Node
    features: Features
    pools: tuple[PoolView, ...]
    devices: tuple[Device, ...]
    pool_of: tuple[int, ...]  # for each device, the place of its pool in `pools`
    index: Mapping[tuple[str, str, str], int]  # by DeviceId, or what is equal to one
    remembered: dict[object, object]
    """Answers that depend on this view alone, by the question's own key."""


class Inventory:
    def __init__(self, features: Features) -> None:
        self.features = features
        self.kinds = Kinds()
        self._shelves: Overlay[str, Shelf] = Overlay()
        self._pools: Overlay[PoolId, Pool] = Overlay()
        self._near: Overlay[str, frozenset[PoolId]] = Overlay()  # by node name
        self._roaming: frozenset[PoolId] = frozenset()
        self._rules: dict[str, resource.DeviceTaintRule] = {}
        self._views: dict[str, NodeView] = {}
        self._parent: Inventory | None = None
        self._journal: Journal[str] = Journal()

    @property
    def revision(self) -> int:
        return self._journal.revision

    def fork(self) -> "Inventory":
        """A copy that pays for its own changes only. Leave the parent alone while it is used."""
        child = Inventory.__new__(Inventory)
        child.features = self.features
        child.kinds = self.kinds
        child._shelves = self._shelves.fork()
        child._pools = self._pools.fork()
        child._near = self._near.fork()
        child._roaming = self._roaming
        child._rules = dict(self._rules)
        child._views = {}
        child._parent = self
        child._journal = Journal(self.revision)
        return child

    # Events

    def apply(self, published: resource.ResourceSlice, key: str | None = None) -> None:
        """A slice was added or changed. Raises BadSlice, and then nothing has changed.

        Slices are told apart by name; whoever has several of one name hands in keys.
        """
        key = published.metadata.name if key is None else key
        self._replace(key, Shelf(key, published, self.kinds, self._rule_taints))

    def remove(self, key: str) -> None:
        """A slice is gone."""
        self._replace(key, None)

    def apply_taint_rule(self, rule: resource.DeviceTaintRule) -> None:
        self._rules[rule.metadata.name] = rule
        self._retaint(rule)

    def remove_taint_rule(self, name: str) -> None:
        rule = self._rules.pop(name, None)
        if rule is not None:
            self._retaint(rule)

    # Questions

    def view(self, node: Node) -> NodeView:
        """What `node` may use. Raises BadNodeSelector."""
        view = self._views.get(node.name)
        if view is not None and (view.node is node or view.node == node):
            return view
        if self._parent is not None and not self._journal.touched(node.name):
            return self._parent.view(node)
        view = self._views[node.name] = self._build(node)
        return view

    def pool_ids(self, node_name: str) -> frozenset[PoolId]:
        """The pools that may concern the node."""
        return (self._near.get(node_name) or frozenset()) | self._roaming

    def nodes_of(self, pool: PoolId) -> frozenset[str] | None:
        """The nodes that a pool concerns; None when it may be any."""
        found = self._pools.get(pool)
        if found is None:
            return frozenset()
        return None if pool in self._roaming else frozenset(found.by_node)

    def moved_since(self, revision: int) -> frozenset[str] | None:
        """Nodes that may see something else than at `revision`; None when it may be any."""
        return self._journal.since(revision)

    def published_for(self, node_name: str) -> tuple[str, ...]:
        """The keys of the slices that concern this node and can concern no other."""
        pools = (self._pools.get(id) for id in sorted(self._near.get(node_name) or ()))
        return tuple(key for pool in pools if pool is not None for key in pool.by_node.get(node_name, ()))

    def __contains__(self, key: str) -> bool:
        """Whether a slice is published under this key."""
        return key in self._shelves

    def slices(self) -> Iterator[Shelf]:
        for _, shelf in self._shelves.items():
            yield shelf

    # Changes

    def _replace(self, key: str, new: Shelf | None) -> None:
        old = self._shelves.get(key)
        touched = dict.fromkeys(shelf.pool for shelf in (old, new) if shelf is not None)
        for id in touched:
            self._moved(id)  # while the pool still knows whom it reached
        if old is not None:
            self._without(old)
        if new is not None:
            self._shelves.set(key, new)
            pool = self._own_pool(new.pool)
            pool.put(new, self.features)
            self._index(pool, new)
        elif old is not None:
            self._shelves.drop(key)
        for id in touched:
            found = self._pools.get(id)
            roams = found is not None and found.roams(self.features)
            if roams != (id in self._roaming):
                self._roaming ^= {id}
            self._moved(id)

    def _without(self, shelf: Shelf) -> None:
        pool = self._own_pool(shelf.pool)
        pool.drop(shelf, self.features)
        node_name = shelf.home
        if node_name is not None and node_name not in pool.by_node:
            self._near.set(node_name, (self._near.get(node_name) or frozenset()) - {pool.id})
        if pool.is_empty:
            self._pools.drop(pool.id)

    def _index(self, pool: Pool, shelf: Shelf) -> None:
        node_name = shelf.home
        if node_name is not None:
            near = self._near.get(node_name) or frozenset()
            if pool.id not in near:
                self._near.set(node_name, near | {pool.id})

    def _own_pool(self, id: PoolId) -> Pool:
        pool = self._pools.get(id)
        if pool is None:
            pool = Pool(id)
        elif not self._pools.is_own(id):
            pool = pool.copy()
        else:
            return pool
        self._pools.set(id, pool)
        return pool

    def _moved(self, id: PoolId) -> None:
        nodes = self.nodes_of(id)
        if nodes is None:
            self._views.clear()
            self._journal.everything()
        else:
            for node_name in nodes:
                self._views.pop(node_name, None)
                self._journal.add(node_name)

    def _retaint(self, rule: resource.DeviceTaintRule) -> None:
        chosen = rule.spec.device_selector
        shelves: Iterable[Shelf] = self.slices()
        if chosen is not None and chosen.driver is not None and chosen.pool is not None:
            pool = self._pools.get(PoolId(chosen.driver, chosen.pool))
            shelves = pool.shelves() if pool else ()
        for shelf in [one for one in shelves if any(_applies(rule, device.id) for device in one.devices)]:
            self._replace(shelf.key, shelf.retainted(self._rule_taints))

    def _rule_taints(self, id: DeviceId) -> Taints:
        if not self._rules:
            return ()
        return tuple(rule.spec.taint for _, rule in sorted(self._rules.items()) if _applies(rule, id))

    def _build(self, node: Node) -> NodeView:
        seen = (self._pools.get(id) for id in sorted(self.pool_ids(node.name)))
        views = [view for pool in seen if pool and (view := pool.view(node, self.features))]
        # Devices that must be made ready first are the last choice.
        pools = tuple(sorted(views, key=lambda view: (view.binding, view.id)))
        devices = tuple(device for pool in pools for device in pool.devices)
        pool_of = tuple(at for at, pool in enumerate(pools) for _ in pool.devices)
        index: dict[tuple[str, str, str], int] = {device.id: at for at, device in enumerate(devices)}
        return NodeView(node, self.features, pools, devices, pool_of, index, {})


def _applies(rule: resource.DeviceTaintRule, id: DeviceId) -> bool:
    """A rule without a selector is about every device, as it is for upstream's scheduler."""
    chosen = rule.spec.device_selector
    return chosen is None or (
        chosen.driver in (None, id.driver)
        and chosen.pool in (None, id.pool)
        and chosen.device in (None, id.name)
    )
