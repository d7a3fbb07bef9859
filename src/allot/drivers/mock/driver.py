"""Both halves of the mock driver."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from allot.api import Object
from allot.driver import Edits, Handed, NodePlugin
from allot.driver import controller as kit

NAME = "mock.example.com"
KINDS = frozenset(("ConfigMap",))
_VARIABLE_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Handle(msgspec.Struct, frozen=True, omit_defaults=True):
    env: dict[str, str]
    node: str = ""  # where it counts; "" where nothing does


class Mock:
    """The half in the control plane: who has how much where."""

    def __init__(self, name: str = NAME, per_node: int | None = None, shareable: bool = False) -> None:
        self._name, self._per_node, self._shareable = name, per_node, shareable
        self._held: dict[str, Handle] = {}  # by claim
        self._used: Counter[str] = Counter()

    @property
    def controller(self) -> kit.Controller:
        return kit.Controller(
            self._name,
            self.allocate,
            self.deallocate,
            self.unsuitable_nodes,
            self.begin,
            class_kinds=KINDS,
            claim_kinds=KINDS,
        )

    # Coroutine functions, though nothing waits: so they run in the kit's own loop, without a thread.

    async def begin(self, claims: Sequence[kit.Claim]) -> None:
        self._held.clear()
        self._used.clear()
        for claim in claims:
            if claim.handle:
                self._hold(claim.uid, msgspec.json.decode(claim.handle, type=Handle))

    async def allocate(self, asks: Sequence[kit.Ask], node: str | None) -> kit.Answers:
        where = node if node is not None and self._per_node is not None else ""
        if node is None and self._per_node is not None:
            return {ask.claim.uid: kit.Refused("it is for a node, and none is chosen") for ask in asks}
        new = [ask for ask in asks if ask.claim.uid not in self._held]
        if self._per_node is not None and self._used[where] + len(new) > self._per_node:
            return {ask.claim.uid: kit.Refused(f"all {self._per_node} are taken") for ask in asks}
        for ask in new:
            self._hold(ask.claim.uid, Handle(variables(ask), where))
        return {ask.claim.uid: self._allocation(self._held[ask.claim.uid]) for ask in asks}

    async def deallocate(self, claim: kit.Claim) -> None:
        handle = self._held.pop(claim.uid, None)
        if handle is not None:
            self._used[handle.node] -= 1

    async def unsuitable_nodes(self, asks: Sequence[kit.Ask], nodes: Sequence[str]) -> kit.Unsuitable:
        for ask in asks:
            variables(ask)  # what cannot be told to a container is not worth a node
        if self._per_node is None:
            return {}
        full = [node for node in nodes if self._used[node] + len(asks) > self._per_node]
        return {ask.claim.uid: full for ask in asks}

    def _hold(self, uid: str, handle: Handle) -> None:
        self._held[uid] = handle
        self._used[handle.node] += 1

    def _allocation(self, handle: Handle) -> kit.Allocation:
        encoded = msgspec.json.encode(handle).decode()
        return kit.Allocation(encoded, kit.on_nodes(handle.node) if handle.node else None, self._shareable)


def variables(ask: kit.Ask) -> dict[str, str]:
    """What containers see. Raises NotUsable."""
    found = {f"admin_{name}": value for name, value in _data(ask.class_parameters).items()}
    found |= {f"user_{name}": value for name, value in _data(ask.claim_parameters).items()}
    for name in found:
        if not _VARIABLE_LETTERS.issuperset(name):
            raise kit.NotUsable(f"claim {ask.claim}: {name!r} cannot be the name of a variable")
    return found


def _data(parameters: Object | None) -> Mapping[str, Any]:
    return parameters.fields.get("data") or {} if parameters is not None else {}


def node_plugin(name: str = NAME) -> NodePlugin:
    """The half on a node."""
    return NodePlugin(name, prepare)


def prepare(claim: Handed) -> Edits:
    handle = msgspec.json.decode(claim.handle or '{"env": {}}', type=Handle)
    return Edits(env=tuple(f"{name}={value}" for name, value in handle.env.items()))
