"""Waiting for news of objects, in place of asking for them again and again.

Where it sits
    A binding that depends on somebody else (a driver that makes devices ready) says which
    objects it looks at and how it judges them. The loop passes on what the informers tell,
    and the judge is asked again when one of its objects has changed.

Why nothing is missed
    An object is listened to before it is read, and the server's answer to a read is its
    newest. So whatever the answer does not show yet is still to be told. News may be older
    than the answer, and is then ignored; that something is gone is never taken back.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from allot.api import Object, errors
from allot.client import Client
from allot.informers import Change, Deleted, Key, ResourceId

from .claim import is_newer
from .claiming import insist

T = TypeVar("T")


class Subject(NamedTuple):
    what: ResourceId
    key: Key


Known = Mapping[Subject, Object | None]
"""The objects as last heard of; None: there is none of this name."""


class Late(NamedTuple):
    """The time was up before the judge was content."""

    known: Known


class Awaiting:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._waits: dict[Subject, list[Listener]] = {}

    def hear(self, what: ResourceId, change: Change) -> None:
        if not self._waits:
            return
        subject = Subject(what, Key.of(change.object))
        for wait in self._waits.get(subject, ()):
            if isinstance(change, Deleted):
                wait.drop(subject, change.object)
            else:
                wait.put(subject, change.object)

    async def until(
        self, subjects: Iterable[Subject], judge: Callable[[Known], T | None], timeout_s: float
    ) -> T | Late:
        """What the judge says of these objects, as soon as it says anything. What it raises ends the
        waiting too. A time without end is `math.inf`."""
        deadline_s = _deadline_s(timeout_s)
        with self.listening(subjects) as wait:
            await self.ask(wait)
            return await wait.until(judge, deadline_s)

    @contextmanager
    def listening(self, subjects: Iterable[Subject]) -> "Iterator[Listener]":
        """Hear of these objects from now on. How they are to begin with the listener must be told (`ask`)."""
        listener = Listener(subjects)
        for subject in listener.subjects:
            self._waits.setdefault(subject, []).append(listener)
        try:
            yield listener
        finally:
            for subject in listener.subjects:
                self._leave(subject, listener)

    async def ask(self, listener: "Listener") -> None:
        """How its objects are by the word of the server."""
        for subject in listener.subjects:
            listener.answer(subject, await self._read(subject))

    async def _read(self, subject: Subject) -> Object | None:
        what, key = subject
        resource = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        try:
            return await insist(lambda: resource.get(key.name, key.namespace))
        except errors.NotFound:
            return None

    def _leave(self, subject: Subject, wait: "Listener") -> None:
        waits = self._waits[subject]
        waits.remove(wait)
        if not waits:
            del self._waits[subject]


class Listener:
    """Some objects, as last heard of."""

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self.subjects = tuple(subjects)
        self.known: dict[Subject, Object | None] = {}
        self.woken = asyncio.Event()
        self._gone: set[str] = set()  # by uid

    async def until(self, judge: Callable[[Known], T | None], deadline_s: float | None) -> T | Late:
        """`deadline_s` is a moment of the event loop's clock."""
        while True:
            self.woken.clear()
            found = judge(self.known)
            if found is not None:
                return found
            try:
                async with asyncio.timeout_at(deadline_s):
                    await self.woken.wait()
            except TimeoutError:
                return Late(self.known)

    def answer(self, subject: Subject, object: Object | None) -> None:
        """What the server says, which may have been overtaken by news."""
        self.known.setdefault(subject, None)
        if object is not None:
            self.put(subject, object)

    def put(self, subject: Subject, object: Object) -> None:
        before = self.known.get(subject)
        if object.uid not in self._gone and (before is None or is_newer(object, before)):
            self.known[subject] = object
            self.woken.set()

    def drop(self, subject: Subject, object: Object) -> None:
        self._gone.add(object.uid)
        before = self.known.get(subject)
        if before is not None and before.uid == object.uid:
            self.known[subject] = None
            self.woken.set()


def _deadline_s(timeout_s: float) -> float | None:
    return None if math.isinf(timeout_s) else asyncio.get_running_loop().time() + timeout_s
