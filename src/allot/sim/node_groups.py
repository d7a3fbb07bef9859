"""Whoever has nodes to give, in a made-up world: groups whose nodes follow a script.

What it is asked for is carried out as production would: a node takes its time, registers, and its driver
publishes a while later. By lot things go wrong while faults last:

    provider refused      it was not done, and it is said so
    provider unanswered   it was done, and it is said that it was not
    provider repeated     it is done once more a while later, when nobody expects it
    node late             it comes minutes later than others
    node never            it does not come, and after a while is not counted any more
    node less             it comes with fewer devices than others of its group

and the script has nodes vanish. Everything that is asked for and comes of it is noted (`recording.Notes`):

    GROUP      a group as its template has it        SETTINGS   how long an autoscaler waits
    TERM       an autoscaler begins to lead          CORRECTED  a template promises now what nodes have
    RESIZE     so many are wanted, so many it had    REMOVE     this node is not wanted any more
    BEGUN      a node was begun                      VANISHED   a node went, and nobody asked for it
    FAILED     who asked was told that it failed     STILL      nobody asks any more
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from allot.autoscaler import Configuration, GroupEntry, ProviderFailed

from .faults import Faults
from .group_things import LEARNT, GroupKind, configuration, node
from .lots import Draw, Lots
from .nodes import Nodes
from .recording import Notes

RATES: Mapping[str, float] = {
    "provider refused": 0.1,
    "provider unanswered": 0.1,
    "provider repeated": 0.1,
    "node late": 0.15,
    "node never": 0.1,
    "node less": 0.1,
}
_PLACE = {name: place for place, name in enumerate(RATES)}
_AMOUNT = len(RATES)
FAULTS = (*RATES, "node vanished")
COMES_S, LATE_S, GIVEN_UP_S, AGAIN_S = (8.0, 40.0), (120.0, 260.0), (60.0, 140.0), (5.0, 60.0)
PUBLISHES_S = (0.0, 15.0)
SLOW_S_MAX = 3.0


class NodeGroups:
    """Groups and their nodes; outlives every autoscaler."""

    def __init__(
        self,
        nodes: Nodes,
        lots: Lots,
        faults: Faults,
        notes: Notes,
        kinds: Iterable[GroupKind],
        *,
        exports: bool,
    ) -> None:
        self._nodes, self._lots, self._faults, self._notes = nodes, lots, faults, notes
        self._kinds = {kind.name: kind for kind in kinds}
        self._exports = exports
        self._members: dict[str, list[str]] = {name: [] for name in self._kinds}
        self._made = 0
        self._reuses_names = lots.draw("names of nodes")[0] < 0.5
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_corrected = False

    # -- what people do -------------------------------------------------------------------------

    async def furnish(self) -> None:
        for kind in self._kinds.values():
            self._say(kind)
        first = self._begun(self._kinds[LEARNT], is_expected=False)
        await self._nodes.join_as(node(self._kinds[LEARNT], first, exports=self._exports))
        await self._publish(self._kinds[LEARNT], first, self._kinds[LEARNT].devices)

    def _say(self, kind: GroupKind) -> None:
        of = {"cpu": kind.cpu, "devices": kind.promised, "is_given": kind.is_given}
        self._notes.note(kind.name, "GROUP", **of, least=kind.least, most=kind.most)

    def correct(self) -> bool:
        """The groups' file says from now on what nodes have. Whether it did not before."""
        was, self._is_corrected = self._is_corrected, True
        for kind in self._kinds.values():
            if kind.devices != kind.promised and not was:
                self._notes.note(kind.name, "CORRECTED", devices=kind.devices)
        return not was

    def configuration(self) -> Configuration:
        kinds = tuple(self._kinds.values())
        return configuration(kinds, exports=self._exports, is_corrected=self._is_corrected)

    async def vanish(self, lot: int) -> None:
        """A machine is gone, whatever ran there."""
        there = [name for names in self._members.values() for name in names if self._nodes.is_up(name)]
        if there and self._faults.strike("node vanished", "provider", f"vanishing {lot}"):
            await self._gone(there[lot % len(there)], "VANISHED")

    async def still(self) -> None:
        """Nobody asks any more: what has not come does not come."""
        self._notes.note("", "STILL")
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- what autoscalers ask for ---------------------------------------------------------------

    def resize(self, group: str, wanted: int) -> None:
        self._notes.note(group, "RESIZE", wanted=wanted, had=len(self._members[group]))
        self._enlarge(group, wanted, is_expected=True)

    def _enlarge(self, group: str, wanted: int, *, is_expected: bool) -> None:
        kind = self._kinds[group]
        while len(self._members[group]) < min(wanted, kind.most):
            self._task(self._start(kind, self._begun(kind, is_expected=is_expected)))

    def failed(self, group: str) -> None:
        """Whoever asked believes that nothing comes."""
        self._notes.note(group, "FAILED")

    def remove(self, group: str, name: str) -> None:
        self._notes.note(group, "REMOVE", node=name)
        self._task(self._removed(group, name))

    async def _removed(self, group: str, name: str) -> None:
        if name in self._members[group]:
            await self._gone(name, "")

    async def _gone(self, name: str, note: str) -> None:
        for group, names in self._members.items():
            if name in names:
                names.remove(name)
                if note:
                    self._notes.note(group, note, node=name)
        await self._nodes.lose(name)

    def again(self, wait_s: float, group: str, wanted: int) -> None:
        """The same request is carried out once more, later."""

        async def later() -> None:
            await asyncio.sleep(wait_s)
            self._enlarge(group, wanted, is_expected=False)

        self._task(later())

    # -- nodes ----------------------------------------------------------------------------------

    def _begun(self, kind: GroupKind, *, is_expected: bool) -> str:
        self._made += 1
        taken = {name for names in self._members.values() for name in names}
        numbers = (number for number in range(len(taken) + 1) if f"{kind.name}-{number}" not in taken)
        name = f"{kind.name}-{next(numbers) if self._reuses_names else 100 + self._made}"
        self._members[kind.name].append(name)
        self._notes.note(kind.name, "BEGUN", node=name, is_expected=is_expected)
        return name

    async def _start(self, kind: GroupKind, name: str) -> None:
        about = f"{name} #{self._made}"
        lot = self._lots.draw(f"start of {about}")
        if self._strikes("node never", lot, about):
            await asyncio.sleep(_between(lot, GIVEN_UP_S))
            if name in self._members[kind.name]:
                self._members[kind.name].remove(name)
            return
        late = self._strikes("node late", lot, about)
        await asyncio.sleep(_between(lot, LATE_S if late else COMES_S))
        if name not in self._members[kind.name]:
            return
        await self._nodes.join_as(node(kind, name, exports=self._exports))
        await asyncio.sleep(_between(lot, PUBLISHES_S, 1))
        less = kind.devices > 1 and self._strikes("node less", lot, about)
        if self._nodes.is_up(name):
            await self._publish(kind, name, kind.devices // 2 if less else kind.devices)

    async def _publish(self, kind: GroupKind, name: str, devices: int) -> None:
        if devices:
            await self._nodes.publish(name, devices)
        if kind.has_parts:
            await self._nodes.share(name)

    def _strikes(self, kind: str, lot: Draw, about: str) -> bool:
        if not self._faults.active or lot[_PLACE[kind]] >= RATES[kind]:
            return False
        return self._faults.strike(kind, "provider", about)

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        """It is nobody's but the provider's: whoever asked may die."""
        task = asyncio.get_running_loop().create_task(work, context=self._faults.server)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def way(self, component: str) -> "WayToProvider":
        return WayToProvider(component, self, self._lots, self._faults)


class WayToProvider:
    """One autoscaler's way to the provider, on which things go wrong: an `allot.autoscaler.Provider`."""

    def __init__(self, component: str, groups: NodeGroups, lots: Lots, faults: Faults) -> None:
        self._component, self._groups, self._lots, self._faults = component, groups, lots, faults

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        lot, about = self._lot(f"resize {group.name} {nodes}")
        self._refuse(lot, about)
        self._groups.resize(group.name, nodes)
        if self._strikes("provider repeated", lot, about):
            self._groups.again(_between(lot, AGAIN_S), group.name, nodes)
        await self._answer(lot, about, group.name)

    async def remove(self, group: GroupEntry, node: str) -> None:
        lot, about = self._lot(f"remove {node}")
        self._refuse(lot, about)
        self._groups.remove(group.name, node)
        await self._answer(lot, about, group.name)

    def _lot(self, words: str) -> tuple[Draw, str]:
        about = self._faults.numbered(self._component, words)
        return self._lots.draw(f"{self._component} {about}"), about

    def _refuse(self, lot: Draw, about: str) -> None:
        if self._strikes("provider refused", lot, about):
            raise ProviderFailed("made up: it was not done")

    async def _answer(self, lot: Draw, about: str, group: str) -> None:
        await asyncio.sleep(lot[_AMOUNT] * SLOW_S_MAX)
        if self._strikes("provider unanswered", lot, about):
            self._groups.failed(group)
            raise ProviderFailed("made up: nobody knows whether it was done")

    def _strikes(self, kind: str, lot: Draw, about: str) -> bool:
        if not self._faults.active or lot[_PLACE[kind]] >= RATES[kind]:
            return False
        return self._faults.strike(kind, self._component, about)


def _between(lot: Draw, bounds: tuple[float, float], more: int = 0) -> float:
    least, most = bounds
    return least + lot[_AMOUNT + more] * (most - least)
