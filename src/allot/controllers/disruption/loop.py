"""Hears what budgets depend on, counts, and writes what they allow."""

import contextlib
from collections.abc import Sequence

from allot.api import errors
from allot.informers import WARNING, Again, Change, Key, Reconciler, ResourceId, Updated

from ..controller import Loop, World
from ..workloads import PODS, later
from .owners import FOLLOWED, Owners
from .plan import asks_owners, budget_of, count, covered, look_again_s, matters, status

BUDGETS = ResourceId("policy", "v1", "poddisruptionbudgets")
NEEDS = (BUDGETS, PODS, *FOLLOWED.values())
MOMENT_S = 0.1
"""What happens to pods within a moment is counted together."""


def make(world: World) -> Sequence[Loop]:
    return [Budgeting(world).loop]


class Budgeting:
    def __init__(self, world: World) -> None:
        self._world = world
        self._budgets, self._pods = world.informer(BUDGETS), world.informer(PODS)
        self._writing = world.client.resource("policy", "v1", "poddisruptionbudgets")
        self.loop: Reconciler[Key] = Reconciler("disruption", self.reconcile, world.clock, world.telemetry)
        self._owners = Owners(world, self._owner_changed)
        world.on(self._budgets, lambda change: self.loop.add(Key.of(change.object)))
        world.on(self._pods, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        budgets = self._budgets.cache.objects(change.object.namespace)
        pods = (change.old, change.object) if isinstance(change, Updated) else (change.object,)
        if not budgets or (len(pods) > 1 and matters(pods[0]) == matters(pods[1])):
            return
        for budget in budgets:
            if covered(budget_of(budget), pods):
                self.loop.add_after(Key.of(budget), MOMENT_S)

    def _owner_changed(self, namespace: str) -> None:
        for budget in self._budgets.cache.objects(namespace):
            if asks_owners(budget_of(budget).spec):
                self.loop.add_after(Key.of(budget), MOMENT_S)

    async def reconcile(self, key: Key) -> Again | None:
        found = self._budgets.cache.get(key.name, key.namespace)
        if found is None:
            return None
        budget = budget_of(found)
        pods = covered(budget, self._pods.cache.objects(key.namespace))
        is_current = self._pods.has_heard(found.resource_version)
        wanted = await self._owners.wanted(pods) if asks_owners(budget.spec) else len(pods)
        now = self._world.clock.now()
        stands = count(budget, pods, wanted, now, is_current=is_current)
        due = status(found, stands, now)
        if due is not None:
            with contextlib.suppress(errors.NotFound):
                await self._writing.update_status({**found.fields, "status": due})  # this version only: PDB2
            if stands.problem:
                self._world.events.record(found, WARNING, "CalculateExpectedPodCountFailed", stands.problem)
        return later(look_again_s(stands, now))
