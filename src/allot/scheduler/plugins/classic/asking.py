"""A pod's classic claims that are not allocated, the classes they name, and the talk about them."""

from dataclasses import dataclass

from allot.api import classic, podclaims

from ...claim import ClaimInfo
from ...framework import Rejection
from ...negotiating import Stand, Told, Want, unanswered
from ...pod import PodInfo
from ...snapshot import Snapshot
from ...talk import Talk

NAME = "ClassicResources"


@dataclass(frozen=True, slots=True)
class ClassicAsk:
    wants: tuple[Want, ...]
    classes: tuple[classic.ResourceClass, ...]  # of the wants, in their order
    talk: Talk | None

    @property
    def is_answered(self) -> bool:
        """Whether a node may be chosen: a single claim may be tried on a guess, several may not (P6)."""
        return len(self.wants) == 1 or (self.talk is not None and not unanswered(self.talk, self.wants))

    def told(self, pod: PodInfo, *, best: str = "", offered: tuple[str, ...] = ()) -> Told:
        claims = tuple([Stand(one, one.claim) for one in self.wants])
        return Told(pod.uid, self.talk, claims, best=best, offered=offered)


def read_ask(pod: PodInfo, claims: tuple[ClaimInfo, ...], snapshot: Snapshot) -> ClassicAsk | Rejection:
    entries = {use.name: use.entry for use in podclaims.used(pod.view)}
    wants: list[Want] = []
    classes: list[classic.ResourceClass] = []
    for claim in claims:
        name = claim.view.spec.resource_class_name
        found = snapshot.resource_classes.get(name)
        if found is None:
            return Rejection(NAME, f'resourceclass "{name}" of resourceclaim "{claim.key.name}" not found')
        wants.append(Want(entries[claim.key.name], claim, found.driver_name))
        classes.append(found)
    return ClassicAsk(tuple(wants), tuple(classes), snapshot.talk_of(pod))
