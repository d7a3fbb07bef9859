"""Which device of a device plugin which container has. Pure.

    choice   ──► the plugin may say which it likes best ──► lend ──► the plugin's answer ──► answered
                                                              ▲                                 │ a reboot
                                                              └──────── the same devices ◄──────┘
    give_back: the pod is over

Containers of a pod ask in the order in which they start. An init container ends before the next one begins,
so what it had is had first by those that come after it; sidecars and containers stay, and keep what they
have.

What it promises
    LOAN1  A device is lent to one pod at a time, and within a pod to one container of those that run at one
           moment.
    LOAN2  Only devices that can be had now are lent anew; what is lent stays so, however the device is then.
    LOAN3  A container gets as many as it asks for, or none.
    LOAN4  Who asks again has what it had: a container that restarts, an agent or a plugin that begins anew.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allot.base import require
from allot.wire import deviceplugin

from .offers import Properties

Answer = deviceplugin.ContainerAllocateResponse


class Part(NamedTuple):
    """Devices of one compute resource."""

    name: str
    number: int


class Asked(NamedTuple):
    """Of a resource, by one container."""

    container: str
    resource: str
    number: int
    ends: bool = False  # it is an init container, which ends before the next one begins
    parts: tuple[Part, ...] = ()  # which compute resources the scheduler chose; none: the devices are counted


class Lent(NamedTuple):
    id: str
    numa: tuple[int, ...] = ()
    properties: Properties | None = None  # of the compute resource as which it is lent; None: it is counted


class Loan(NamedTuple):
    pod: str
    container: str
    resource: str
    devices: tuple[Lent, ...]
    ends: bool = False
    answer: Answer | None = None  # of the plugin: what the container gets with them; None: not yet asked
    boot: str = ""  # of the machine, when it answered

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.devices)

    def is_ready(self, boot: str) -> bool:
        """The plugin has set the devices up since the machine was started."""
        return self.answer is not None and self.boot == boot


class Choice(NamedTuple):
    """What a container may have: everything in `first`, and as many of `free` as are lacking to `number`."""

    number: int
    first: tuple[str, ...]
    free: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        return self.number - len(self.first) < len(self.free)

    def taken(self, liked: Iterable[str] = ()) -> tuple[str, ...]:
        """What is liked comes before what else is free; what cannot be had is passed over."""
        known = frozenset(self.free)
        rest = dict.fromkeys((*(one for one in liked if one in known), *self.free))
        return (*self.first, *rest)[: self.number]


class TooFew(Exception):
    """In the words of a kubelet, which other programs look for."""


class Loans:
    def __init__(self, loans: Iterable[Loan] = ()) -> None:
        """`loans` are what an earlier process has left."""
        self._of: dict[str, dict[tuple[str, str], Loan]] = {}  # pod -> container, resource
        self.revision = 0  # grows with each change
        for loan in loans:
            self._put(loan)

    @property
    def all(self) -> tuple[Loan, ...]:
        return tuple(loan for pod in sorted(self._of) for loan in self.of(pod))

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(self._of)

    def of(self, pod: str, container: str = "") -> tuple[Loan, ...]:
        """Of one container, or all of them, by resource."""
        mine = sorted(self._of.get(pod, {}).items())
        return tuple(loan for (name, _), loan in mine if container in ("", name))

    def has(self, pod: str, asked: Asked) -> bool:
        """LOAN4. Raises TooFew."""
        known = self._of.get(pod, {}).get((asked.container, asked.resource))
        if known is not None and len(known.devices) != asked.number:
            raise TooFew(
                f'pod "{pod}" container "{asked.container}" changed request for resource '
                f'"{asked.resource}" from {len(known.devices)} to {asked.number}'
            )
        return known is not None

    def choice(self, pod: str, resource: str, part: Part, can_be_had: Iterable[str]) -> Choice:
        """What may be lent anew (LOAN2); `can_be_had` are devices of the part. Raises TooFew."""
        there = frozenset(can_be_had)
        first = tuple(sorted(self._left_by_earlier(pod, resource) & there))[: part.number]
        free = tuple(sorted(there - self._lent(resource)))
        lacking = part.number - len(first)
        if lacking > len(free):
            raise TooFew(
                f"requested number of devices unavailable for {part.name}. "
                f"Requested: {lacking}, Available: {len(free)}"
            )
        return Choice(part.number, first, free)

    def lend(self, pod: str, asked: Asked, devices: Sequence[Lent]) -> Loan:
        """LOAN1, LOAN3: whatever else went wrong, no device is handed out twice."""
        ids = frozenset(one.id for one in devices)
        others = self._lent(asked.resource) - self._left_by_earlier(pod, asked.resource)
        require(
            ids.isdisjoint(others),
            f"LOAN1: of {asked.resource} {sorted(ids & others)} are lent to others already",
        )
        require(
            len(ids) == asked.number,
            f"LOAN3: of {asked.resource} {asked.number} are asked for, {len(ids)} are lent",
        )
        loan = Loan(pod, asked.container, asked.resource, tuple(sorted(devices)), asked.ends)
        self._put(loan)
        return loan

    def answered(self, loan: Loan, answer: Answer, boot: str) -> None:
        """What the plugin says of devices that are given back by now is not kept."""
        known = self._of.get(loan.pod, {}).get((loan.container, loan.resource))
        if known is not None and known.devices == loan.devices:
            self._put(known._replace(answer=answer, boot=boot))

    def give_back(self, pod: str) -> bool:
        """Whether it had anything."""
        self.revision += 1
        return self._of.pop(pod, None) is not None

    def _put(self, loan: Loan) -> None:
        self.revision += 1
        self._of.setdefault(loan.pod, {})[loan.container, loan.resource] = loan

    def _lent(self, resource: str) -> frozenset[str]:
        every = (loan for mine in self._of.values() for loan in mine.values())
        return frozenset(id for loan in every if loan.resource == resource for id in loan.ids)

    def _left_by_earlier(self, pod: str, resource: str) -> frozenset[str]:
        """What init containers of the pod had, and no container that stays has by now."""
        mine = [loan for loan in self._of.get(pod, {}).values() if loan.resource == resource]
        kept = frozenset(id for loan in mine if not loan.ends for id in loan.ids)
        return frozenset(id for loan in mine if loan.ends for id in loan.ids) - kept
