"""An event loop whose time is made up.

Where it sits
    A simulated cluster runs on it: the same server, clients and controllers as in
    production, on one loop, with a memory store and no sockets. An hour passes in
    as long as it takes to do what happens in it.

What it promises
    VTIME1  Time moves only when nobody has anything to do, and then to the next moment at
            which somebody wants to be woken.
    VTIME2  Same program, same seed, same run: nothing depends on the wall clock, on the
            address of an object or on the order of a set.
    VTIME3  When everybody waits and nobody is due, that is an error, with the names of
            those who wait.
    VTIME4  Whoever is frozen does not get to run: not one step of its tasks, until it thaws.
            Then all that it missed comes at once, in the order in which it came due.

How VTIME2 is kept
    asyncio keeps tasks in sets, and sets are ordered by hash. Tasks of this loop are
    numbered and hash to their number.

How VTIME4 is kept
    Whose a task is stands in its context (`OWNER`), which the tasks that it makes inherit.
    Every step of a task comes through `call_soon` with that context; while somebody is
    frozen, steps of the frozen are kept aside.
"""

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Coroutine, Generator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

BIRTH = datetime(2030, 1, 1, tzinfo=UTC)
"""When every simulated world begins."""

OWNER: contextvars.ContextVar[str] = contextvars.ContextVar("OWNER", default="")
"""Which component a task belongs to."""


TURNS_AT_ONCE_MAX = 200_000
"""Of the loop, without any time passing: more than any world needs, and some seconds of ours."""


class Spinning(Exception):
    """Somebody asks again and again at one moment, which in real time would merely burn a core."""


class NothingToDo(Exception):
    """Every task waits for something that will never come (VTIME3)."""


class NumberedTask(asyncio.Task[Any]):
    """A task that hashes to its number, so that sets of tasks have an order (VTIME2)."""

    def __init__(self, coroutine: Any, *, number: int, owner: str, **more: Any) -> None:
        self._number = number  # before anything puts the task into a set
        self.owner = owner
        super().__init__(coroutine, **more)

    def __hash__(self) -> int:
        return self._number


class _Timeless(selectors.BaseSelector):
    """Watches nothing. Waiting for a time is letting it pass."""

    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        self.loop.pass_time(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        self._turns_at_once = 0
        self._tasks_made = 0
        self._held: dict[str, list[asyncio.Handle]] = {}
        self._ready: Any  # what asyncio runs next
        selector = _Timeless()
        super().__init__(selector)
        selector.loop = self
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float | None) -> None:
        if seconds is None:
            waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
            raise NothingToDo(f"nobody is due; waiting: {', '.join(waiting)}")
        before, self._now = self._now, self._now + max(0.0, seconds)
        self._turns_at_once = self._turns_at_once + 1 if self._now == before else 0
        if self._turns_at_once > TURNS_AT_ONCE_MAX:
            busy = sorted({task.get_name() for task in asyncio.all_tasks(self)})
            raise Spinning(
                f"{self._now:.6f} s does not pass; among {', '.join(busy)} somebody waits for nothing"
            )

    def jump(self, seconds: float) -> None:
        """Let time pass at once, as a suspended machine does: everything due is late."""
        self._now += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """At once: when a thread comes back is nothing that a seed could decide (VTIME2)."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def freeze(self, owner: str) -> None:
        """VTIME4. As a machine that is suspended, or a process that gets no time."""
        self._held.setdefault(owner, [])
        self.call_soon = self._call_soon_unless_frozen  # type: ignore[method-assign, assignment]

    def thaw(self, owner: str) -> None:
        for handle in self._held.pop(owner, ()):
            if not handle.cancelled():
                self._ready.append(handle)
        if not self._held and "call_soon" in self.__dict__:
            del self.call_soon

    def cancel_all(self, owner: str) -> None:
        """Whatever a component left running, also what nobody waits for."""
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, NumberedTask)]
        for task in sorted((one for one in tasks if one.owner == owner), key=hash):
            task.cancel()

    def _call_soon_unless_frozen(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        owner = context.get(OWNER, "") if context is not None else OWNER.get()
        held = self._held.get(owner)
        if held is None:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        held.append(handle)
        return handle

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **more: Any,
    ) -> asyncio.Future[Any]:
        self._tasks_made += 1
        context = more.get("context")
        owner = context.get(OWNER, "") if context is not None else OWNER.get()
        return NumberedTask(coroutine, number=self._tasks_made, owner=owner, loop=loop, **more)


class VirtualClock:
    """`allot.base.Clock` for a virtual loop. The wall clock of a machine may be off by `skew`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.skew = timedelta()

    def now(self) -> datetime:
        return BIRTH + timedelta(seconds=self._loop.time()) + self.skew

    def monotonic_s(self) -> float:
        return self._loop.time()


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run `main` in a world of its own and return what it returns."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        _end_everything(loop)
        asyncio.set_event_loop(None)
        loop.close()


def _end_everything(loop: VirtualLoop) -> None:
    left = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
