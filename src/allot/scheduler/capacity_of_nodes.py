"""What nodes have of numeric models: instances by node, as their drivers publish them (KEP-4381).

Where it sits
    `mirror` tells it what is published; the numeric plugin asks what a node offers now, which is what is
    published less what the ledger knows to be taken.

What it promises
    CAPACITY1  The order of events does not matter: the same objects give the same offers.
    CAPACITY2  Several objects of one node and driver are one: an instance that two of them have counts once,
               as the object has it whose name sorts first.
    CAPACITY3  An instance that cannot be read is left out, its neighbours are not, and what is taken of it
               stays taken.
    CAPACITY4  A fork costs what is changed on it, and its parent never notices.
    CAPACITY5  Of one driver and node no more than NODE_INSTANCES_MAX instances count. Objects that would make
               it more are left out, in the order of their names; the server does the same.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from allot.allocation import Ledger, PoolId
from allot.api import numeric
from allot.base import Journal, Overlay
from allot.numeric import Instance, Offer, Registry, Unreadable, offer_of, read_instances

SOURCE = "autoscaling.k8s.io/node-resource-capacity"
"""The annotation by which a node that is not there names the one whose capacity it would have. On nodes that
are there it says nothing."""


class Published(NamedTuple):
    """One object, read."""

    node: str
    driver: str
    instances: tuple[Instance, ...]
    unreadable: tuple[Unreadable, ...]
    listed: int  # whether anybody can read them or not


class CapacityOfNodes:
    def __init__(self, models: Registry) -> None:
        self.models = models
        self._objects: Overlay[str, Published] = Overlay()
        self._by_node: Overlay[str, tuple[str, ...]] = Overlay()  # names of objects, in order
        self._journal: Journal[str] = Journal()

    def fork(self) -> "CapacityOfNodes":
        child = CapacityOfNodes(self.models)
        child._objects = self._objects.fork()
        child._by_node = self._by_node.fork()
        child._journal = Journal(self.revision)
        return child

    @property
    def revision(self) -> int:
        return self._journal.revision

    def moved_since(self, revision: int) -> frozenset[str] | None:
        return self._journal.since(revision)

    # -- hearing --------------------------------------------------------------------------------

    def put(self, object: numeric.NodeResourceCapacity) -> Published:
        instances, unreadable = read_instances(object.instances, self.models)
        listed = len(object.instances)
        read = Published(object.node_name, object.driver_name, tuple(instances), tuple(unreadable), listed)
        name = object.metadata.name
        self.drop(name)
        self._objects.set(name, read)
        self._list(read.node, (*self._names(read.node), name))
        return read

    def twice(self, name: str) -> Iterator[tuple[str, str]]:
        """Instances of an object that another one of the node and driver has as well, and which one counts
        (CAPACITY2)."""
        own = self._objects.get(name)
        if own is None:
            return
        ids = {instance.id for instance in own.instances}
        for other in self._names(own.node):
            known = self._objects.get(other)
            if other != name and known is not None and known.driver == own.driver:
                for instance in known.instances:
                    if instance.id in ids:
                        yield instance.id, min(name, other)

    def drop(self, name: str) -> None:
        known = self._objects.get(name)
        if known is not None:
            self._objects.drop(name)
            self._list(known.node, tuple(one for one in self._names(known.node) if one != name))

    # -- nodes that are not there ---------------------------------------------------------------

    def imagine(self, node: str, source: str) -> None:
        """A node has what is published under the name of another, real or not, and nothing of it is used."""
        for name in self._names(source):
            known = self._objects.get(name)
            if known is not None:
                copied = f"{name} for {node}"
                self._objects.set(copied, known._replace(node=node))
                self._list(node, (*self._names(node), copied))

    def leave(self, node: str) -> None:
        """A node is gone, with what was published for it."""
        for name in self._names(node):
            self.drop(name)

    def is_published(self, node: str) -> bool:
        return bool(self._names(node))

    def _list(self, node: str, names: tuple[str, ...]) -> None:
        if names:
            self._by_node.set(node, tuple(sorted(names)))
        else:
            self._by_node.drop(node)
        self._journal.add(node)

    # -- asking ---------------------------------------------------------------------------------

    def offers(self, node: str, ledger: Ledger) -> Mapping[str, list[Offer]]:
        """What is free on a node, by driver."""
        found: dict[str, list[Offer]] = {}
        seen: set[tuple[str, str]] = set()
        for one in self._of(node):
            taken = ledger.usage(PoolId(one.driver, numeric.limits.pool_of(node)))
            shelf = found.setdefault(one.driver, [])
            for instance in one.instances:
                if (one.driver, instance.id) in seen:  # CAPACITY2
                    continue
                seen.add((one.driver, instance.id))
                used = taken.get(instance.id)
                if used is None:
                    shelf.append(Offer(instance, instance.amounts))
                else:
                    shelf.append(offer_of(instance, used.consumed, is_whole=bool(used.owners)))
        return found

    def instance(self, node: str, driver: str, id: str) -> Instance | None:
        """As it is published now."""
        found = (
            one for published in self._of(node) if published.driver == driver for one in published.instances
        )
        return next((one for one in found if one.id == id), None)

    def unreadable(self) -> int:
        """How many instances nobody can read."""
        return sum(len(one.unreadable) for _, one in self._objects.items())

    def _of(self, node: str) -> Iterator[Published]:
        counted: dict[str, int] = {}
        for name in self._names(node):
            found = self._objects.get(name)
            if found is None:
                continue
            total = counted.get(found.driver, 0) + found.listed
            if total <= numeric.limits.NODE_INSTANCES_MAX:  # CAPACITY5
                counted[found.driver] = total
                yield found

    def _names(self, node: str) -> tuple[str, ...]:
        return self._by_node.get(node) or ()
