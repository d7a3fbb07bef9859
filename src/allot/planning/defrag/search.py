"""The fewest moves after which something fits.

How it is found
    With one move more each time: which few pods, were they gone from a node, would let it fit there? Those
    are moved, in some order, each by a step of the course. Where a replacement finds no place, or one that is
    in the way, room is made for it first, in the same way, with the moves that are left.

    The scheduler decides where replacements go, and a move may help by turning its head. That is not found in
    this way, so where there are few pods every sequence of them is tried as well.

    That a pod would fit were others gone is asked of the real checks, node by node: the pods are taken away,
    the node is looked at, and they are put back.

What it promises
    FEW1  A plan is a course of steps that was run: each safe by itself, and at its end what is wanted fits.
    FEW2  Nothing is moved that need not be: without any one of its moves the plan would not do.
    FEW3  Where `is_certain`, every sequence of fewer moves was tried, and none would do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, permutations
from math import comb, perm
from typing import Any

from allot.scheduler import PodInfo, why_closed

from ..future import comes_back
from .course import Course, Misfit, Step, ends_first, movable

LOOKS_MAX = 60_000
STEPS_MAX = 5_000
SEQUENCES_MAX = 1_500
"""Of so many moves, that all of them are tried."""
SETS_OF_NODE_MAX = 500
"""Of one size: on a node with very many pods, what is needed is found by leaving out what is not."""
ORDERED_MAX = 3
"""So many pods are moved in every order; more, in two."""


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]
    places: Mapping[str, str]  # of what was to fit, by pod
    is_certain: bool = True  # that no fewer moves would do

    def as_json(self) -> dict[str, Any]:
        return {
            "fits": True,
            "moves": [one.as_json() for one in self.steps],
            "places": dict(self.places),
            "fewest": self.is_certain,
        }


@dataclass(frozen=True, slots=True)
class NoPlan:
    why: str  # it does not fit now
    stays: Mapping[str, str] = field(default_factory=dict)  # pods in the way that may not be moved
    moves_max: int = 0
    is_certain: bool = True  # that there is none with so many moves at most

    def as_json(self) -> dict[str, Any]:
        return {
            "fits": False,
            "why": self.why,
            "stays": dict(self.stays),
            "movesMax": self.moves_max,
            "certain": self.is_certain,
        }


Moves = tuple[PodInfo, ...]


def plan(course: Course, moves_max: int) -> Plan | NoPlan:
    return _Search(course).plan(moves_max)


class _Spent(Exception):
    """The bounds are reached."""


class _Search:
    def __init__(self, course: Course) -> None:
        self._course = course
        self._looks = 0
        self._dead: set[tuple[object, ...]] = set()  # moves after which nothing was found, with how many left
        self._sets: dict[tuple[object, ...], list[Moves]] = {}
        self._sorts: dict[str, object] = {}  # by uid
        self._placeless: set[object] = set()  # moves, and sorts of pods that had no place after them

    def plan(self, moves_max: int) -> Plan | NoPlan:
        course = self._course
        course.run(())
        places = course.places()
        if not isinstance(places, Misfit):
            return Plan((), places)
        why, certain = course.explained(places), True
        pods = movable(course, [pod for node in course.snapshot.nodes() for pod in node.pods.values()])
        for pod in pods:
            self._sort(pod)
        try:
            for left in range(1, min(moves_max, len(pods)) + 1):
                found = self._solved((), left)
                if found is None and perm(len(pods), left) <= SEQUENCES_MAX:
                    found = self._tried(pods, (), left)
                elif found is None:
                    certain = False
                if found is not None:
                    return self._told(found, certain)
        except _Spent:
            certain = False
        return NoPlan(why, self._in_the_way(), moves_max, certain)

    def _tried(self, pods: Sequence[PodInfo], before: Moves, left: int) -> Moves | None:
        """Every sequence of so many."""
        for pod in pods:
            if pod in before:
                continue
            longer = (*before, pod)
            if left > 1:
                found = self._tried(pods, longer, left - 1) if self._steps(before, pod) else None
            else:
                found = longer if self._steps(before, pod) and self._reaches(longer) else None
            if found is not None:
                return found
        return None

    def _told(self, moves: Moves, certain: bool) -> Plan:
        moves = self._needed(moves)
        steps = self._course.run(moves)
        places = self._course.places()
        assert not isinstance(steps, str) and not isinstance(places, Misfit)  # it was run before (STEP3)
        return Plan(steps, places, certain)

    def _needed(self, moves: Moves) -> Moves:
        """FEW2."""
        for at in range(len(moves)):
            fewer = (*moves[:at], *moves[at + 1 :])
            if self._reaches(fewer):
                return self._needed(fewer)
        return moves

    def _reaches(self, moves: Moves) -> bool:
        self._pay_step()
        return not isinstance(self._course.run(moves), str) and not isinstance(self._course.places(), Misfit)

    # -- what is wanted -------------------------------------------------------------------------

    def _solved(self, before: Moves, left: int) -> Moves | None:
        """`before`, and at most `left` more, after which everything wanted has a place."""
        state = (tuple(one.uid for one in before), left)
        if state in self._dead:
            return None
        self._dead.add(state)
        for target in self._unplaced(before):
            for more in self._making_room(target, before, left, frozenset()):
                if self._reaches(more):
                    return more
                spare = left - (len(more) - len(before))
                if spare > 0 and (found := self._solved(more, spare)) is not None:
                    return found
        return None

    def _unplaced(self, before: Moves) -> list[PodInfo]:
        """The first of those wanted that has no place then: room is made for one after the other."""
        self._course.run(before)
        places = self._course.places()
        return [places.pod] if isinstance(places, Misfit) else []

    # -- room for one pod -----------------------------------------------------------------------

    def _making_room(
        self, target: PodInfo, before: Moves, left: int, kept: frozenset[str]
    ) -> Iterator[Moves]:
        """`before`, and at most `left` more, that may let `target` fit somewhere. `kept` are not to move."""
        for goes_round in (False, True):
            for size in range(1, left + 1 - goes_round):
                for pods in self._sets_of(target, before, size, kept):
                    for order in _orders(pods):
                        yield from self._moved(order, before, left if goes_round else size, kept)

    def _moved(self, pods: Moves, done: Moves, left: int, kept: frozenset[str]) -> Iterator[Moves]:
        """`done`, and these, with whatever must make room for their replacements first: `left` at most."""
        if not pods:
            yield done
            return
        pod, *rest = pods
        if self._steps(done, pod):
            yield from self._moved(tuple(rest), (*done, pod), left - 1, kept)
        if left == len(pods):
            return
        # It had no place; or it has one that is in the way of what comes after, and another may do.
        still = kept | {one.uid for one in pods} | self._like(pod)
        for aside in self._making_room(self._course.replacement(pod), done, left - len(pods), still):
            if self._steps(aside, pod):
                spent = len(aside) - len(done) + 1
                yield from self._moved(tuple(rest), (*aside, pod), left - spent, kept)

    def _steps(self, done: Moves, pod: PodInfo) -> bool:
        """Whether the pod can move after these. Where one like it had no place, it has none."""
        state = (tuple(one.uid for one in done), self._sort(pod))
        if state in self._placeless:
            return False
        self._pay_step()
        runs = not isinstance(self._course.run((*done, pod)), str)
        if not runs and self._sort(pod) is not None:
            self._placeless.add(state)
        return runs

    def _sort(self, pod: PodInfo) -> object:
        """Equal for pods whose replacements fit in the same places, while the first ones are still there."""
        if pod.uid not in self._sorts:
            is_alone = ends_first(pod) or not comes_back(pod)
            other = None if is_alone else self._course.replacement(pod)
            self._sorts[pod.uid] = None if other is None else self._course.simulation.signature(other)
        return self._sorts[pod.uid] or pod.uid

    def _like(self, pod: PodInfo) -> frozenset[str]:
        """Pods that are no help to this one: wherever they could go, it could go itself."""
        sort = self._sort(pod)
        return frozenset(uid for uid, known in self._sorts.items() if known == sort)

    # -- which pods -----------------------------------------------------------------------------

    def _sets_of(self, target: PodInfo, before: Moves, size: int, kept: frozenset[str]) -> Iterator[Moves]:
        """Sets of so many pods without which the target would fit on a node, and with any of them not."""
        key = (target.uid, tuple(one.uid for one in before), size, kept)
        known = self._sets.get(key)
        if known is not None:
            yield from known
            return
        found: dict[frozenset[str], Moves] = {}
        for name, pods in self._candidates(before, kept):
            for one in self._sets_on(name, target, pods, size):
                chosen = frozenset(pod.uid for pod in one)
                if chosen not in found:
                    found[chosen] = one
                    yield one
                    self._arrange(before)  # others have used the course meanwhile
        self._sets[key] = [*found.values()]

    def _arrange(self, before: Moves) -> None:
        self._pay_step()
        self._course.run(before)

    def _candidates(self, before: Moves, kept: frozenset[str]) -> list[tuple[str, list[PodInfo]]]:
        """Nodes that are open, with the pods that could be moved for them: those with the fewest first."""
        self._arrange(before)
        course = self._course
        roaming = self._holders_of_what_roams(kept)
        found = []
        for node in course.snapshot.nodes():
            if not why_closed(node):
                pods = [one for one in movable(course, node.pods.values()) if one.uid not in kept]
                pods += [one for one in self._reached(node.name, roaming) if one.uid not in node.pods]
                if pods:
                    found.append((node.name, sorted(pods, key=_least_important)))
        return sorted(found, key=lambda one: (len(one[1]), one[0]))

    def _holders_of_what_roams(self, kept: frozenset[str]) -> dict[object, list[PodInfo]]:
        """Pods that hold devices which several nodes reach, by pool."""
        snapshot = self._course.snapshot
        found: dict[object, list[PodInfo]] = {}
        for claim in snapshot.claims():
            hold = snapshot.ledger.hold(claim.uid)
            for pool in {one.device.pool_id for one in hold.devices} if hold is not None else ():
                if snapshot.inventory.nodes_of(pool) is None:
                    users = [snapshot.pod(one.uid) for one in claim.reserved_for]
                    pods = movable(self._course, [one for one in users if one is not None])
                    found.setdefault(pool, []).extend(one for one in pods if one.uid not in kept)
        return found

    def _reached(self, name: str, roaming: Mapping[object, list[PodInfo]]) -> list[PodInfo]:
        if not roaming:
            return []
        pools = self._course.snapshot.inventory.pool_ids(name)
        return [pod for pool in sorted(pools) for pod in roaming.get(pool, ())]

    def _sets_on(self, name: str, target: PodInfo, pods: Sequence[PodInfo], size: int) -> list[Moves]:
        if size > len(pods) or not self._fits_without(pods, name, target):
            return []
        if self._fits_without((), name, target):
            return []
        if size > 1 and comb(len(pods), size) > SETS_OF_NODE_MAX:
            needed = self._reprieved(pods, name, target)
            return [needed] if len(needed) == size else []
        found: list[Moves] = []
        for chosen in combinations(pods, size):
            if self._fits_without(chosen, name, target) and self._is_least(chosen, name, target):
                found.append(chosen)
        return found

    def _is_least(self, pods: Moves, name: str, target: PodInfo) -> bool:
        return len(pods) == 1 or not any(
            self._fits_without(fewer, name, target) for fewer in combinations(pods, len(pods) - 1)
        )

    def _reprieved(self, pods: Sequence[PodInfo], name: str, target: PodInfo) -> Moves:
        """All but those that can stay, the most important asked first."""
        going = list(pods)
        for pod in reversed(pods):
            rest = [one for one in going if one.uid != pod.uid]
            if rest and self._fits_without(rest, name, target):
                going = rest
        return tuple(going)

    def _fits_without(self, pods: Sequence[PodInfo], name: str, target: PodInfo) -> bool:
        self._looks += 1
        if self._looks > LOOKS_MAX:
            raise _Spent
        simulation = self._course.simulation
        for pod in pods:
            simulation.evict(pod)
        fits = isinstance(simulation.fits(target, (name,)), str)
        for pod in reversed(pods):
            simulation.restore(pod)
        return fits

    def _pay_step(self) -> None:
        if self._course.steps_tried > STEPS_MAX:
            raise _Spent

    # -- why not --------------------------------------------------------------------------------

    def _in_the_way(self) -> dict[str, str]:
        """Pods that may not be moved, on the nodes where what is wanted would fit without them."""
        course = self._course
        course.run(())
        misfit = course.places()
        assert isinstance(misfit, Misfit)
        found: dict[str, str] = {}
        for node in islice(course.snapshot.nodes(), NODES_TOLD_MAX):
            pods = [one for one in node.pods.values() if course.is_as_it_was(one)]
            try:
                if not why_closed(node) and pods and self._fits_without(pods, node.name, misfit.pod):
                    found |= {str(one.key): why for one in pods if (why := course.why_it_stays(one))}
            except _Spent:
                break
        return dict(islice(found.items(), PODS_TOLD_MAX))


NODES_TOLD_MAX = 200
PODS_TOLD_MAX = 50


def _orders(pods: Moves) -> Iterator[Moves]:
    if len(pods) <= ORDERED_MAX:
        yield from permutations(pods)
    else:
        yield pods
        yield tuple(reversed(pods))


def _least_important(pod: PodInfo) -> tuple[int, str]:
    return pod.priority, str(pod.key)
