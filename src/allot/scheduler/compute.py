"""Compute resources of nodes, and which classes they belong to.

What matches is decided between a class and a set of properties, of which a cluster has few: nodes with equal
devices have compute resources of equal names. The answers are kept by class, as it is, and name.

What it promises
    MATCH1  A class is asked about a set of properties once, on however many nodes it is, until the class is
            another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from allot.api import compute, core

from .classes import Classes

HELD = "compute:"
"""Before the name of a compute resource, what pods take of it among everything else that they take."""


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A compute resource of a node."""

    name: str
    raw: str
    properties: Mapping[str, str]
    count: int  # devices that may be handed out

    @property
    def held_as(self) -> str:
        return HELD + self.name

    @classmethod
    def all_of(cls, resources: tuple[core.ComputeResource, ...]) -> "tuple[Offer, ...]":
        return tuple(
            [
                cls(one.name, one.resource_name, one.properties, len(one.allocatable_devices))
                for one in resources
            ]
        )


Member = compute.ResourceGroupMember


def members_of(spec: compute.ResourceClassSpec) -> tuple[Member, ...]:
    """What one of a class is made of: of a group several things, else a single device."""
    if spec.members:
        return spec.members
    return (Member(resource_name=spec.resource_name, resource_selector=spec.resource_selector),)


@dataclass(slots=True)
class Matching:
    """What is known of one class."""

    view: compute.ResourceClass
    answers: dict[tuple[int, str], bool] = field(default_factory=dict)  # by member and compute resource


class ComputeClasses:
    def __init__(self) -> None:
        self.classes: Classes[compute.ResourceClass] = Classes(lambda one: one.spec)
        self.evaluations = 0
        self._matchings: dict[str, Matching] = {}  # shared with forks: it says for which class it holds
        self._belongs: dict[str, tuple[tuple[str, int], ...]] = {}  # by compute resource
        self._belongs_at = -1

    def fork(self) -> "ComputeClasses":
        child = ComputeClasses()
        child.classes = self.classes.fork()
        child._matchings = self._matchings
        return child

    def get(self, name: str) -> compute.ResourceClassSpec | None:
        found = self.classes.get(name)
        return found.spec if found is not None else None

    def matches(self, name: str, member: int, offer: Offer) -> bool:
        """Whether a compute resource serves a member of the class of this name."""
        view = self.classes.get(name)
        if view is None:
            return False
        known = self._matchings.get(name)
        if known is None or known.view is not view:
            known = self._matchings[name] = Matching(view)
        answer = known.answers.get((member, offer.name))
        if answer is None:
            self.evaluations += 1
            wanted = members_of(view.spec)[member]
            answer = wanted.resource_name == offer.raw and compute.selects(
                wanted.resource_selector, offer.properties
            )
            known.answers[member, offer.name] = answer
        return answer

    def serves(self, name: str, offers: tuple[Offer, ...]) -> bool:
        """Whether a node with these has anything that is of the class, free or not."""
        spec = self.get(name)
        count = len(members_of(spec)) if spec is not None else 0
        return any(self.matches(name, member, offer) for offer in offers for member in range(count))

    def belongs_to(self, offer: Offer) -> tuple[tuple[str, int], ...]:
        """The classes that a compute resource serves, with their priorities."""
        if self._belongs_at != self.classes.changes:
            self._belongs, self._belongs_at = {}, self.classes.changes
        found = self._belongs.get(offer.name)
        if found is None:
            found = self._belongs[offer.name] = tuple(self._looked_up(offer))
        return found

    def _looked_up(self, offer: Offer) -> Iterator[tuple[str, int]]:
        for name, view in self.classes.items():
            if self.serves(name, (offer,)) and not view.spec.is_of_cluster:
                yield name, view.spec.priority
