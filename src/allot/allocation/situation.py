"""What decides an answer on a node, without its name: equal devices, used equally.

Where it sits
    `outline` asks in which situation a node is and looks up what is known of it. Whoever
    keeps answers for many demands asks about the same nodes again and again, so a node's
    situation is worked out once and kept until the node's pools change hands.

What it promises
    SITU1  Two nodes have the same number only if every search on them goes the same way,
           device by device, for every demand and every policy that does not care for names.
    SITU2  A number is true at the moment it is asked for, whatever happened to the ledger.
"""

from collections.abc import Hashable
from itertools import count

from .inventory import NodeView
from .kind import PoolId
from .ledger import Ledger
from .question import OPTIONAL_NODE_OPERATIONS

SITUATIONS_MAX = 8_192
NODES_MAX = 20_000
"""Nodes whose situation is kept: more than there are, but for those that came and went."""


class Situations:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = ledger.revision
        self._nodes: dict[str, tuple[NodeView, int | None]] = {}
        self._near: dict[PoolId, set[str]] = {}  # the nodes in `_nodes` that see a pool
        self._numbers: dict[Hashable, int] = {}
        self._next = count()

    @classmethod
    def under(cls, ledger: Ledger) -> "Situations":
        """Those that are shared by everybody who asks about this ledger."""
        found = ledger.remembered.get(cls)
        if not isinstance(found, Situations):
            found = ledger.remembered[cls] = cls(ledger)
        return found

    def of(self, view: NodeView) -> int | None:
        """The number of the node's situation; None where answers depend on names as well."""
        if self._seen != self._ledger.revision:
            self._forget_what_moved()
        known = self._nodes.get(view.node.name)
        if known is not None and known[0] is view:
            return known[1]
        if len(self._nodes) >= NODES_MAX:
            self._forget()
        number = self._number(view)
        self._nodes[view.node.name] = (view, number)
        for pool in view.pools:
            self._near.setdefault(pool.id, set()).add(view.node.name)
        return number

    def _forget_what_moved(self) -> None:
        moved = self._ledger.moved_since(self._seen)
        self._seen = self._ledger.revision
        if moved is None:
            self._forget()
            return
        for pool in moved:
            for name in self._near.pop(pool, ()):
                self._nodes.pop(name, None)

    def _forget(self) -> None:
        self._nodes.clear()
        self._near.clear()

    def _number(self, view: NodeView) -> int | None:
        situation = _situation(view, self._ledger)
        if situation is None:
            return None
        number = self._numbers.get(situation)
        if number is None:
            if len(self._numbers) >= SITUATIONS_MAX:
                self._numbers.clear()  # numbers are not given twice: what is forgotten is only met anew
            number = self._numbers[situation] = next(self._next)
        return number


def _situation(view: NodeView, ledger: Ledger) -> Hashable:
    devices = _devices_of(view)
    if devices is None:
        return None
    taken: list[tuple[int, bool, int, tuple[tuple[str, int], ...]]] = []
    for place, pool in enumerate(view.pools):
        used = ledger.usage(pool.id)
        if used and pool.elsewhere:
            return None
        for name, usage in used.items():
            at = view.index.get((*pool.id, name))
            if at is None:
                if pool.totals:
                    return None
                at = -1 - place  # a device that is no longer published still fills its pool
            shares = tuple(sorted(usage.consumed.items())) if usage.consumed else ()
            taken.append((at, bool(usage.owners), len(usage.sharers), shares))
    return (devices, tuple(sorted(taken)))


def _devices_of(view: NodeView) -> Hashable:
    """The devices of a view without their names; None where being on this very node matters."""
    key = "devices without names"
    if key not in view.remembered:
        view.remembered[key] = _anonymous(view)
    return view.remembered[key]


def _anonymous(view: NodeView) -> Hashable:
    if any(pool.incomplete or pool.invalid for pool in view.pools):
        return None
    if any(device.place.per_device for device in view.devices):
        return None
    return (
        view.pool_of,
        tuple(frozenset(pool.totals.items()) for pool in view.pools),
        # A kind is known by itself: it lives at least as long as the view.
        tuple((device.kind, device.taints, device.place.skip_node_operations) for device in view.devices),
        OPTIONAL_NODE_OPERATIONS in view.node.declared_features,
    )
