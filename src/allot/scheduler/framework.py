"""What a plugin is: the extension points, and the values that pass through them.

Where it sits
    `cycle` asks plugins in the order of `plugins.default`; the loop carries out what
    they answer. The points carry upstream's names, so that a reader of one knows the
    other. What is different is that a point is asked about a *signature*, not a pod:
    pods that are equal in everything that decides where they fit share one, and what
    was worked out for the first of them serves all.

        PreEnqueue   may the pod be tried at all?             one pod
        Sign         everything that decides where it fits    one pod
        PreFilter    a check of nodes, made for a signature   once a signature
        Filter       that check, on one node                  once a signature and state of a node
        Score        a rating of the nodes that pass          likewise
        Veto         what somebody said about this pod alone  one pod (not upstream's)
        PostFilter   nothing fits: what could be done?        one pod
        Tell         and why, in a sentence (not upstream's)   one pod
        Reserve      hold what was chosen                     one pod
        PreBind      the writes that must precede the binding (values; `binding` makes them)

What a plugin promises
    PLUGIN1  It sees only what it is handed: no client, no informer, no clock.
    PLUGIN2  Its check and rating depend on nothing but the signature and the snapshot, and
             change for a node only when `Snapshot.moved_since` names that node.
    PLUGIN3  A rejection of a node is `resolvable` when fewer pods on it could change the answer.
    PLUGIN4  What `reserve` holds, `unreserve` gives back, however far the binding came.
    PLUGIN5  What holds for one pod alone is a veto: asked for once a cycle, applied to the nodes that
             fit, and never kept on a board.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from allot.allocation import Explanation

from .node import NodeInfo
from .pod import PodInfo

if TYPE_CHECKING:
    from .board import Rank
    from .snapshot import Snapshot
    from .writes import Remedy, Write


class Event(Enum):
    """What happened in the cluster that may help a pod that did not fit, or changes why it does not."""

    NODE_ADDED = "a node was added"
    NODE_CHANGED = "a node's labels, taints or capacity changed"
    NODE_GONE = "a node is gone; whoever was told about it hears this"
    POD_GONE = "a pod left its node"
    POD_CHANGED = "the pod itself changed"
    CLAIM_ADDED = "a claim was created"
    CLAIM_CHANGED = "a claim changed, and holds what it held"
    DEVICES_FREED = "a claim gave devices back"
    USERS_LEFT = "fewer pods use a claim: whoever is left may be evicted by more pods than before"
    SLICE_CHANGED = "devices were published"
    CLASS_CHANGED = "a device class was created or changed"
    TAINT_RULE_CHANGED = "a device taint rule changed"
    CAPACITY_CHANGED = "a node published what it has of numeric models"
    PARAMETERS_CHANGED = "objects with parameters of claims changed, or can be read now"
    DRIVER_ANSWERED = "a driver said something about the pod itself"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node, or the whole cluster, does not take a pod."""

    plugin: str
    reason: str  # counted over nodes: the same words for the same cause
    resolvable: bool = False
    undecided: bool = False  # the search gave up: it may fit all the same
    unanswered: bool = False  # somebody is still to say: it may fit all the same


class LongWork:
    """What a plugin must have worked out before it can sign a pod, and what takes long. It depends on nothing
    that moves: others are decided meanwhile, and then the pod is signed anew."""

    def __init__(self, plugin: str, work_out: Callable[[], object]) -> None:
        self.plugin = plugin
        self._work_out = work_out
        self.found: object | None = None

    def __call__(self) -> None:
        if self.found is None:
            self.found = self._work_out()


class Tier(IntEnum):
    """What a rating is about. A lower tier decides only between nodes that are equal above."""

    WISH = 0  # what the user preferred: alternatives, preferred affinity, taints to avoid
    DEVICES = 1  # what keeps devices useful for others
    RESOURCES = 2  # how full the node gets


Check = Callable[[NodeInfo], Rejection | None]
Rating = float | tuple[float, ...]
Rate = Callable[[NodeInfo], Rating]
"""Less is better, so that ratings sort; numbers of one tier are added up."""


Sentence = Callable[["Snapshot"], str]
"""Worked out when it is written, since most are never; empty when there is nothing to say after all."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What PreFilter makes of a signature."""

    check: Check
    nodes: frozenset[str] | None = None  # only these can pass; None: any


@dataclass(frozen=True, slots=True)
class Veto:
    """What somebody said about one pod (PLUGIN5)."""

    refuses: Callable[[str], Rejection | None]  # by node
    first: str = ""  # the node to be tried before others


@dataclass(slots=True)
class CycleState:
    """What the plugins know in one cycle, by plugin name."""

    pod: PodInfo
    now: datetime
    read: dict[str, Any] = field(default_factory=dict)  # of the pod
    made: dict[str, Any] = field(default_factory=dict)  # for its signature: kept for the pods to come
    thorough: bool = False  # take more time for what is hard to decide
    seed: int = 0  # of whatever is left to chance: with the same seed it turns out the same
    classes: dict[str, int] = field(default_factory=dict)
    """Part of its signature, named by whoever signs: the classes and extended resources, by name, that
    checks and ratings are made from, each with its revision (`Classes.revision`)."""
    fitting: Sequence["Rank"] = ()
    """The nodes that take pods of its signature, best first: a view of the board, for while one is chosen."""


class Signature(NamedTuple):
    """Everything that decides where a pod fits."""

    parts: tuple[Hashable, ...]  # what it asks for; pods that are equal in this wait together
    classes: tuple[tuple[str, int], ...]  # what the names in it stand for now


class Plugin(Protocol):
    @property
    def name(self) -> str: ...


Point = TypeVar("Point", bound=Plugin)
_OFFERS: dict[tuple[type, object], bool] = {}
"""By class and extension point: to look at all that a protocol names takes long, and a simulation asks
about every plugin anew."""


def offering(plugins: Iterable[Plugin], point: Callable[..., Point]) -> list[Point]:
    """Those of the plugins that are asked at an extension point: what one does, all of its class do."""
    found: list[Point] = []
    for plugin in plugins:
        key = (type(plugin), point)
        offers = _OFFERS.get(key)
        if offers is None:
            offers = _OFFERS[key] = isinstance(plugin, cast("type", point))
        if offers:
            found.append(cast("Point", plugin))
    return found


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    def pre_enqueue(self, pod: PodInfo, snapshot: "Snapshot") -> str | None:
        """Why the pod cannot be tried yet, or None."""


@runtime_checkable
class SignPlugin(Plugin, Protocol):
    def sign(self, state: CycleState, snapshot: "Snapshot") -> Hashable | Rejection | LongWork:
        """Everything about the pod that this plugin's checks and ratings depend on, or what to do first.

        Classes that they are made from are named in `state.classes`, also those that are not there.
        """


@runtime_checkable
class FilterPlugin(SignPlugin, Protocol):
    @property
    def events(self) -> frozenset[Event]:
        """What may turn this plugin's rejection into consent."""

    def pre_filter(self, state: CycleState, snapshot: "Snapshot") -> Checks | None:
        """The check for this signature; None when the plugin has nothing to say about it."""


@runtime_checkable
class ScorePlugin(SignPlugin, Protocol):
    @property
    def tier(self) -> Tier: ...

    def pre_score(self, state: CycleState, snapshot: "Snapshot") -> Rate | None:
        """The rating for this signature; None when the plugin has nothing to say about it."""


@runtime_checkable
class VetoPlugin(Plugin, Protocol):
    def veto(self, state: CycleState, snapshot: "Snapshot") -> Veto | None:
        """What was said about this pod, if anything was."""


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    def post_filter(
        self, state: CycleState, snapshot: "Snapshot", rejections: Sequence[tuple[str, Rejection]]
    ) -> "Generator[None, None, Remedy | None]":
        """What would make room, given why each node said no. The first answer is carried out.

        Like a cycle it pauses wherever others may have their turn.
        """


@runtime_checkable
class TellPlugin(Plugin, Protocol):
    """What only the plugin knows about its rejections, for the pod's condition and for `allot explain`."""

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
        """What is the matter with the nodes that turned the pod down. Of them it keeps a few at most: the
        sentence may lie about for as long as the pod waits."""

    def explain(
        self,
        state: CycleState,
        snapshot: "Snapshot",
        rejections: Iterable[tuple[str, Rejection]],
        named: Callable[[str], str],
    ) -> Mapping[str, Explanation]:
        """The same in full, node by node, for somebody who asks and waits. `named` says who holds what."""


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    def reserve(
        self, state: CycleState, node: NodeInfo, snapshot: "Snapshot"
    ) -> "tuple[Write, ...] | Rejection":
        """Hold what the pod needs on the node, and say what must be written before it is bound."""

    def unreserve(self, state: CycleState, snapshot: "Snapshot") -> None:
        """Give back what was held and not written."""
