"""Groups of nodes in a made-up world: what their nodes have, and what is said of them.

small     some processors, cheap; its template is given
large     processors, devices, and cards where nodes export some; its template is given
learnt    nobody says what its nodes have: one is there from the beginning
boasting  its template promises more devices than its nodes have, until somebody corrects it
"""

from dataclasses import dataclass

from allot.autoscaler import LABEL, Configuration, GroupEntry

from . import things
from .compute_things import exported
from .things import Fields

POOL = {"sim.allot.dev/pool": "burst"}
"""The label of all nodes of groups, and what pods select that are to run on no other."""
LEARNT, BOASTING = "learnt", "boasting"


@dataclass(frozen=True, slots=True)
class GroupKind:
    name: str
    cpu: int
    devices: int
    price: float
    most: int
    least: int = 0
    promised: int = 0  # devices that its template names; of those that have one
    is_given: bool = True

    @property
    def has_parts(self) -> bool:
        """Devices in parts as well, and cards where nodes export some."""
        return self.name == "large"


KINDS = (
    GroupKind("small", 4, 0, 1.0, 4),
    GroupKind("large", 8, 4, 3.0, 3, promised=4),
    GroupKind(LEARNT, 6, 2, 2.0, 3, promised=2, is_given=False),
)
BOASTER = GroupKind(BOASTING, 4, 1, 0.7, 2, promised=4)


def node(kind: GroupKind, name: str, *, exports: bool) -> Fields:
    """As it registers."""
    made = things.node(name, [])
    room = {**made["status"]["allocatable"], "cpu": str(kind.cpu)}
    made["status"] |= {"capacity": room, "allocatable": room}
    made["metadata"]["labels"] |= {**POOL, LABEL: kind.name}
    if exports and kind.has_parts:
        made["status"]["computeResources"] = exported()
    return made


def only_on_groups(spec: Fields, cpu: int) -> Fields:
    """A pod that needs so many processors, and a node of a group."""
    first, *others = spec["containers"]
    resources = {**first["resources"], "requests": {"cpu": str(cpu)}}
    return {**spec, "nodeSelector": POOL, "containers": [{**first, "resources": resources}, *others]}


def configuration(kinds: tuple[GroupKind, ...], *, exports: bool, is_corrected: bool) -> Configuration:
    """The groups' file."""
    return Configuration(
        groups=tuple(_entry(kind, exports, is_corrected and kind.name == BOASTING) for kind in kinds)
    )


def _entry(kind: GroupKind, exports: bool, is_corrected: bool) -> GroupEntry:
    name = f"template-of-{kind.name}"
    devices = kind.devices if is_corrected else kind.promised
    template: Fields = {"node": node(kind, name, exports=exports)}
    slices = things.slices_of(name, devices) if devices else []
    template["slices"] = [*slices, *(things.sharing_slices(name) if kind.has_parts else ())]
    given = template if kind.is_given else None
    return GroupEntry(name=kind.name, price=kind.price, min=kind.least, max=kind.most, template=given)
