"""What the containers of a pod ask for that compute resources may serve, read once.

It is the pod's signature as far as they go: pods of one template have the same.
"""

from dataclasses import dataclass

from allot.api import Quantity, compute, core, podresources

from ...pod import PodInfo
from ...snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Ask:
    container: int  # among init containers and containers, in this order
    name: str  # as it was written
    class_name: str  # "" where it is a raw name
    amount: int
    fixed: tuple[core.AllocatedResource, ...] = ()  # what the pod's author has chosen


@dataclass(frozen=True, slots=True)
class ComputeAsk:
    asks: tuple[Ask, ...] = ()
    inits: tuple[bool, ...] = ()  # of each init container, whether it keeps running

    @property
    def class_names(self) -> list[str]:
        return list(dict.fromkeys(ask.class_name for ask in self.asks if ask.class_name))

    def phases(self) -> list[list[int]]:
        """Which asks are to be met at a time: of each init container with those that keep running before it,
        and last of everything that runs side by side."""
        beside: list[int] = []
        found: list[list[int]] = []
        for container, keeps_running in enumerate(self.inits):
            own = [at for at, ask in enumerate(self.asks) if ask.container == container]
            if own:
                found.append([*beside, *own])
            if keeps_running:
                beside += own
        rest = [at for at, ask in enumerate(self.asks) if ask.container >= len(self.inits)]
        return [*found, [*beside, *rest]]

    def keeps(self, at: int) -> bool:
        """Whether what the ask gets is kept beside later init containers."""
        container = self.asks[at].container
        return container < len(self.inits) and self.inits[container]


NOTHING = ComputeAsk()


def read_ask(pod: PodInfo, snapshot: Snapshot) -> ComputeAsk:
    """Raw names count where any node exports compute resources of that name."""
    if not snapshot.heeds_compute:
        return NOTHING
    found: list[Ask] = []
    spec = pod.spec
    records = compute.records.given(pod.view)
    for at, container in enumerate((*spec.init_containers, *spec.containers)):
        for name, written in container.resources.requests.items():
            class_name = compute.class_of(name)
            if not class_name and not _is_exported(name, snapshot):
                continue
            amount = Quantity.parse(written).as_int()
            if amount > 0:
                fixed = records.get(container.name, {}).get(name, ())
                found.append(Ask(at, name, class_name, amount, fixed))
    if not found:
        return NOTHING
    return ComputeAsk(tuple(found), tuple(one.is_sidecar for one in spec.init_containers))


def _is_exported(name: str, snapshot: Snapshot) -> bool:
    return "/" in name and name in snapshot.exported and podresources.is_extended_resource(name)
