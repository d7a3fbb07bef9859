"""What else may change or refuse a write, beyond the rules of its kind.

A plugin is a function that is handed an `Attempt`. It may change `attempt.new`,
join what it read to the transaction, or raise. Plugins are registered per
resource, so that a write pays only for those that concern it.

    accounts      who a new pod is: its service account
    pods          what every new pod is given: a priority, time on a failing node
    claimnames    pods whose classic claims would have names that are none
    classnames    bare names in limits and quotas: classes that may not be there yet
    limits        what a namespace lets one container, pod or volume claim ask for
    limitranges   the limit ranges of each namespace, as current as the write needs them
    rights        what a caller may not write although the request line is theirs to send
    podsecurity   how much the pods of a namespace may do to their node
    policies      what administrators demand of writes, as CEL expressions (last of all)
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from allot.api import Fields, Kind

from ..deciding.context import ServerWriteContext


class Attempt(msgspec.Struct):
    kind: Kind
    operation: str  # CREATE, UPDATE or DELETE
    subresource: str
    namespace: str
    name: str
    new: Fields | None
    old: Fields | None
    context: ServerWriteContext
    between: Fields | None = None  # of what is written with its status: the object before that


Plugin = Callable[[Attempt], Awaitable[None] | None]
"""Answers with what is to be waited for, or with nothing where it is done: as it mostly is."""


class Admission:
    def __init__(
        self,
        for_all: Sequence[Plugin],
        for_kind: Mapping[tuple[str, str], Sequence[Plugin]],
        last: Sequence[Plugin] = (),
    ) -> None:
        """`last` are asked about every write, as the others have left it."""
        self._for_all = tuple(for_all)
        self._last = tuple(last)
        self._for_kind = {kind: tuple(plugins) for kind, plugins in for_kind.items()}

    async def admit(self, attempt: Attempt) -> None:
        own = self._for_kind.get((attempt.kind.group, attempt.kind.plural), ())
        for plugin in (*self._for_all, *own, *self._last):
            if (waiting := plugin(attempt)) is not None:
                await waiting


__all__ = ["Admission", "Attempt", "Plugin"]
