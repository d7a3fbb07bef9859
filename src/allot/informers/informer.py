"""One resource, copied once for everybody in this process who wants it.

An informer is a cache, its reflector, and the handlers that hear of changes. The
contract is written at the top of `reflector`.
"""

import asyncio
from collections.abc import Callable

import msgspec

from allot.base import InvariantBroken

from .aside import SetAside
from .cache import Added, Cache, Change, Deleted, Key
from .reflector import Audience, Report

Handler = Callable[[Change], None]


class ResourceId(msgspec.Struct, frozen=True):
    """Which resource, in which version, and which of its objects. Hashable, so that one process
    watches it once.

    Selectors are written as in a request ("spec.nodeName=gpu-0"). Who may not read everything, as a
    node may not, reads what it selects.
    """

    group: str
    version: str
    plural: str
    namespaced: bool = True
    field_selector: str = ""
    label_selector: str = ""

    def __str__(self) -> str:
        name = f"{self.plural}.{self.version}.{self.group}" if self.group else f"{self.plural}.{self.version}"
        chosen = ", ".join(one for one in (self.field_selector, self.label_selector) if one)
        return f"{name} ({chosen})" if chosen else name


class Informer:
    def __init__(self, what: ResourceId) -> None:
        self.what = what
        self.aside = SetAside(f"whoever follows {what}")
        self.cache = Cache(self.aside)
        self._handlers: dict[int, Handler] = {}
        self._next_handler = 0
        self._lists = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._report: Callable[[], Report] = Report
        self._position: Callable[[], str] = str

    # -- for those who listen -------------------------------------------------------------------

    def handle(self, handler: Handler) -> Callable[[], None]:
        """Hear of every change, and first of everything that is there (REFL5). Returns how to stop."""
        number = self._next_handler
        self._next_handler += 1
        self._handlers[number] = handler
        for object in self.cache:
            self._tell(handler, Added(object))

        def stop() -> None:
            self._handlers.pop(number, None)

        return stop

    @property
    def synced(self) -> bool:
        """REFL6."""
        return self._lists > 0

    async def wait_synced(self) -> None:
        await self.wait_lists(1)

    async def wait_lists(self, count: int) -> None:
        """Until that many complete lists have been taken over, counted from the beginning."""
        if self._lists < count:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append((count, waiter))
            await waiter

    @property
    def lists(self) -> int:
        return self._lists

    @property
    def served(self) -> bool:
        """The server knew the resource when it last said anything about it."""
        return self._report().served

    @property
    def report(self) -> Report:
        return self._report()

    def has_heard(self, version: str) -> bool:
        """REFL8: whether the cache shows every write up to that version, of whatever resource."""
        position = self._position()
        return position.isdigit() and version.isdigit() and int(position) >= int(version)

    # -- for the reflector ----------------------------------------------------------------------

    def audience(
        self, report: Callable[[], Report], position: Callable[[], str], absent: Callable[[], None]
    ) -> Audience:
        self._report = report
        self._position = position
        return Audience(self._changed, self._listed, absent)

    def _changed(self, change: Change) -> None:
        for handler in tuple(self._handlers.values()):
            self._tell(handler, change)

    def _tell(self, handler: Handler, change: Change) -> None:
        """REFL9: what one handler cannot take in stops neither the others nor what comes next."""
        try:
            handler(change)
        except InvariantBroken:
            raise
        except Exception as bug:
            self.aside.add(_name(handler), change.object, bug)
            if isinstance(change, Deleted):
                self.aside.well(_name(handler), Key.of(change.object))
        else:
            if self.aside:
                self.aside.well(_name(handler), Key.of(change.object))

    def _listed(self) -> None:
        self._lists += 1
        due = [waiter for count, waiter in self._waiting if count <= self._lists]
        self._waiting = [(count, waiter) for count, waiter in self._waiting if count > self._lists]
        for waiter in due:
            if not waiter.done():
                waiter.set_result(None)


def _name(handler: Handler) -> str:
    return getattr(handler, "__qualname__", repr(handler))
