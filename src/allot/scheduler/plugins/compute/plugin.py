"""ComputeResources: classes of compute resources, and raw names of what device plugins export with
properties.

A node fits when everything that the containers ask for can be had at once from free devices of compute
resources that match (`placing`). What was chosen is written with the binding and is what the pod takes of
its node from then on, so a class that changes later moves nothing. Of several choices it is the one that
keeps what is dear for others:

    1  compute resources that belong to no class of higher priority than the one that is asked for
    2  those that belong to the fewest other classes
    3  those with the most free devices

Who has written a choice into the pod beforehand gets that or nothing, and only if it is of the class.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from allot.allocation import Explanation
from allot.api import Quantity, core

from ...amounts import native_amount
from ...compute import ComputeClasses, Offer, members_of
from ...framework import Checks, CycleState, Event, Rejection, Sentence
from ...node import NodeInfo
from ...snapshot import Snapshot
from ...writes import TakeCompute, Write
from .asking import NOTHING, Ask, ComputeAsk, read_ask
from .choosing import Wish, is_met
from .placing import Answer, Options, Part, Parts, Undecided, group_options, place
from .telling import tell

NAME = "ComputeResources"
KNOWN_MAX = 4096
UNDECIDED = Rejection(NAME, "could not be decided whether compute resources suffice", undecided=True)


class ComputeResources:
    name = NAME
    events = frozenset(
        {Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_GONE, Event.POD_CHANGED, Event.CLASS_CHANGED}
    )

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        asked = read_ask(state.pod, snapshot)
        if asked is NOTHING:
            state.read.pop(NAME, None)
            return None
        classes = snapshot.compute.classes
        state.classes |= {f"compute:{name}": classes.revision(name) for name in asked.class_names}
        missing = [name for name in asked.class_names if name not in classes]
        if missing:
            return Rejection(NAME, f"resource class {', '.join(missing)} does not exist")
        state.read[NAME] = asked
        return asked

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        asked: ComputeAsk | None = state.read.get(NAME)
        if asked is None:
            return None
        return Checks(ComputeCheck(asked, snapshot, state.pod.requests))

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        asked: ComputeAsk | None = state.read.get(NAME)
        if asked is None:
            return ()
        check = ComputeCheck(asked, snapshot, state.pod.requests)
        found = check.chosen(node)
        if isinstance(found, Rejection):
            return found
        given = check.given(found, node, state.pod.view)
        return (TakeCompute(given),) if given else ()

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        """What was chosen is held by the pod's place in the snapshot, and goes with it."""

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
        asked: ComputeAsk | None = state.read.get(NAME)
        if asked is None or not any(why.plugin == NAME for _, why in rejections):
            return None
        return tell(asked)

    def explain(
        self, state: CycleState, snapshot: Snapshot, rejections: object, named: object
    ) -> Mapping[str, Explanation]:
        return {}


class ComputeCheck:
    """For the pods of a signature, and the classes of one moment."""

    def __init__(self, asked: ComputeAsk, snapshot: Snapshot, requests: Mapping[str, int]) -> None:
        self._asked = asked
        self._classes = snapshot.compute
        self._snapshot = snapshot
        self._requests = requests
        self._known: dict[tuple[object, ...], Rejection | None] = {}
        self._specs = [snapshot.compute.get(ask.class_name) for ask in asked.asks]

    def __call__(self, node: NodeInfo) -> Rejection | None:
        free = tuple([one.count - node.used.get(one.held_as, 0) for one in node.compute])
        if self._has_natives():
            return self._judge(node, free)
        key = (tuple([one.name for one in node.compute]), tuple([one.count for one in node.compute]), free)
        if key not in self._known:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = self._judge(node, free)
        return self._known[key]

    def chosen(self, node: NodeInfo) -> Answer | Rejection:
        """What serves the pod on the node, at least cost."""
        free = [max(0, one.count - node.used.get(one.held_as, 0)) for one in node.compute]
        ours = self._ours(node)
        why = self._misfit(node, ours) or self._lacks_natives(node)
        if why is not None:
            return why
        try:
            answer = self._placed(ours, node, free)
        except Undecided:
            return UNDECIDED
        return answer if answer is not None else self._short(node, ours, free)

    def given(
        self, answer: Answer, node: NodeInfo, pod: core.Pod
    ) -> dict[str, dict[str, tuple[core.AllocatedResource, ...]]]:
        """The record, by container. What the author wrote stays as it is."""
        names = [one.name for one in (*pod.spec.init_containers, *pod.spec.containers)]
        found: dict[str, dict[str, tuple[core.AllocatedResource, ...]]] = {}
        for at, ask in enumerate(self._asked.asks):
            entries = ask.fixed or tuple(self._entries(at, answer, node))
            if entries:
                found.setdefault(names[ask.container], {})[ask.name] = entries
        return found

    def _entries(self, at: int, answer: Answer, node: NodeInfo) -> Iterable[core.AllocatedResource]:
        own = sorted((key[1:], count) for key, count in answer.items() if key[0] == at)
        for (member, place_at), count in own:
            name = node.compute[place_at].name
            yield core.AllocatedResource(compute_resource_name=name, count=count, member=member)
        spec, amount = self._specs[at], self._asked.asks[at].amount
        if own and spec is not None:
            for member, one in enumerate(spec.members):
                if one.amount:
                    unit = Quantity.parse(one.amount)
                    total = str(Quantity(unit.nano * amount, unit.format))
                    yield core.AllocatedResource(member=member, resource_name=one.resource_name, amount=total)

    # -- deciding -------------------------------------------------------------------------------

    def _judge(self, node: NodeInfo, free: Sequence[int]) -> Rejection | None:
        free = [max(0, one) for one in free]
        ours = self._ours(node)
        why = self._misfit(node, ours) or self._lacks_natives(node)
        if why is not None or not ours:
            return why
        single = self._single(ours, node)
        if single is not None:
            return None if is_met([single], free) else self._short(node, ours, free)
        try:
            found = self._placed(ours, node, free)
        except Undecided:
            return UNDECIDED
        return None if found is not None else self._short(node, ours, free)

    def _ours(self, node: NodeInfo) -> list[int]:
        """The asks that compute resources of this node are to serve."""
        found = []
        for at, ask in enumerate(self._asked.asks):
            spec = self._specs[at]
            if not ask.class_name:
                if any(one.raw == ask.name for one in node.compute):
                    found.append(at)
            elif spec is not None and not spec.is_of_cluster and not self._is_delegated(ask, spec, node):
                found.append(at)
        return found

    def _is_delegated(self, ask: Ask, spec: object, node: NodeInfo) -> bool:
        """Whether DRA serves the name on this node, as it serves an extended resource."""
        return self._snapshot.extended.class_for(ask.name) is not None and not self._classes.serves(
            ask.class_name, node.compute
        )

    def _misfit(self, node: NodeInfo, ours: Sequence[int]) -> Rejection | None:
        """What no smaller load of the node would change."""
        for at in ours:
            ask = self._asked.asks[at]
            if ask.fixed:
                wrong = self._wrongly_fixed(ask, node)
                if wrong:
                    return Rejection(NAME, wrong)
            elif ask.class_name and not self._classes.serves(ask.class_name, node.compute):
                return Rejection(NAME, f"node(s) without compute resources of class {ask.class_name}")
        return None

    def _wrongly_fixed(self, ask: Ask, node: NodeInfo) -> str:
        offers = {one.name: one for one in node.compute}
        for entry in ask.fixed:
            if entry.amount:
                continue
            offer = offers.get(entry.compute_resource_name)
            if offer is None:
                return f"node(s) without the compute resource that the pod names for {ask.name}"
            if not self._is_of(ask, entry.member or 0, offer):
                return f"node(s) where what the pod names for {ask.name} is not of that class"
        return ""

    def _is_of(self, ask: Ask, member: int, offer: Offer) -> bool:
        if not ask.class_name:
            return offer.raw == ask.name
        spec = self._classes.get(ask.class_name)
        in_range = spec is not None and member < len(members_of(spec))
        return in_range and self._classes.matches(ask.class_name, member, offer)

    def _short(self, node: NodeInfo, ours: Sequence[int], free: Sequence[int]) -> Rejection:
        """Which names lack devices, and whether an empty node would do."""
        alone = [at for at in ours if not self._fits([at], node, free)]
        names = list(dict.fromkeys(self._asked.asks[at].name for at in alone or ours))
        ever = self._fits(ours, node, [one.count for one in node.compute])
        together = "" if alone else " together"
        return Rejection(NAME, f"Insufficient {' and '.join(names)}{together}", resolvable=ever)

    def _fits(self, ours: Sequence[int], node: NodeInfo, free: Sequence[int]) -> bool:
        try:
            return self._placed(ours, node, free) is not None
        except Undecided:
            return True

    def _placed(self, ours: Sequence[int], node: NodeInfo, free: Sequence[int]) -> Answer | None:
        return place(self._asked, self._options(set(ours), node, free), free)

    def _single(self, ours: Sequence[int], node: NodeInfo) -> Wish | None:
        """Nearly all pods: one container asks for one thing, of which any will do."""
        if len(ours) != 1:
            return None
        ask, spec = self._asked.asks[ours[0]], self._specs[ours[0]]
        if ask.fixed or (spec is not None and spec.members):
            return None
        return Wish(ask.amount, {at: 0 for at, one in enumerate(node.compute) if self._is_of(ask, 0, one)})

    # -- the ways to serve ----------------------------------------------------------------------

    def _options(self, ours: set[int], node: NodeInfo, free: Sequence[int]) -> Options:
        costs = _Costs(self._classes, node, free, sum(ask.amount for ask in self._asked.asks))
        return [
            self._ways(at, node, free, costs) if at in ours else ((),) for at in range(len(self._asked.asks))
        ]

    def _ways(self, at: int, node: NodeInfo, free: Sequence[int], costs: "_Costs") -> Sequence[Parts]:
        ask, spec = self._asked.asks[at], self._specs[at]
        index = {one.name: place_at for place_at, one in enumerate(node.compute)}
        if ask.fixed:
            entries = [one for one in ask.fixed if not one.amount]
            if any(one.compute_resource_name not in index for one in entries):
                return ()
            return (
                tuple(Part(one.member, one.count, {index[one.compute_resource_name]: 0}) for one in entries),
            )
        members = members_of(spec) if spec is not None else ()
        if spec is None or not spec.members:
            own = {
                place_at: costs.of(ask, spec.priority if spec is not None else 0, one, place_at)
                for place_at, one in enumerate(node.compute)
                if self._is_of(ask, 0, one)
            }
            return ((Part(None, ask.amount, own),),)
        wanted = [
            (
                member,
                one.count,
                {
                    place_at: costs.of(ask, spec.priority, offer, place_at)
                    for place_at, offer in enumerate(node.compute)
                    if self._classes.matches(ask.class_name, member, offer)
                },
            )
            for member, one in enumerate(members)
            if not one.amount
        ]
        shared = spec.same_property

        def value_of(place_at: int) -> object:
            properties = node.compute[place_at].properties
            return (
                None if any(key not in properties for key in shared) else tuple(map(properties.get, shared))
            )

        return group_options(ask.amount, wanted, value_of, free)

    # -- native members of groups ---------------------------------------------------------------

    def _has_natives(self) -> bool:
        return any(one.amount for spec in self._specs if spec is not None for one in spec.members)

    def _lacks_natives(self, node: NodeInfo) -> Rejection | None:
        """Of cpu and memory that groups bring with them, beside what the pod requests itself."""
        extra: dict[str, int] = {}
        for ask, spec in zip(self._asked.asks, self._specs, strict=True):
            for one in spec.members if spec is not None else ():
                if one.amount:
                    amount = native_amount(one.resource_name, one.amount) * ask.amount
                    extra[one.resource_name] = extra.get(one.resource_name, 0) + amount
        for name, amount in extra.items():
            wanted, has = amount + self._requests.get(name, 0), node.allocatable.get(name, 0)
            if node.used.get(name, 0) + wanted > has:
                return Rejection(NAME, f"Insufficient {name}", resolvable=wanted <= has)
        return None


class _Costs:
    """What a device of each compute resource costs a request: the order of the three rules, as numbers.

    A step of a higher rule outweighs all devices of the pod in the lower ones.
    """

    def __init__(self, classes: ComputeClasses, node: NodeInfo, free: Sequence[int], amount: int) -> None:
        self._belongs = [classes.belongs_to(one) for one in node.compute]
        by_free = sorted(range(len(node.compute)), key=lambda at: (-free[at], node.compute[at].name))
        self._rank = {at: rank for rank, at in enumerate(by_free)}
        self._levels = sorted({priority for own in self._belongs for _, priority in own})
        most = max((len(own) for own in self._belongs), default=0)
        self._others = amount * len(by_free) + 1
        self._level = self._others * (amount * most + 1)
        self._step = amount + 1

    def of(self, ask: Ask, priority: int, offer: Offer, at: int) -> int:
        others = [one for name, one in self._belongs[at] if name != ask.class_name]
        higher = [one for one in others if one > priority]
        level = self._level * self._step ** self._levels.index(max(higher)) if higher else 0
        return level + self._others * len(others) + self._rank[at]
