"""Opens the context of each write: what rules and admission will be able to see."""

from collections.abc import Callable

from allot.api import Action, Decision, Gates, Kind, User, errors
from allot.base import Clock, Ids

from ..reading.cache import Caches
from ..requests.call import Call
from ..storing.pending import in_transaction
from ..storing.repository import Found, Repository, prefix_of
from .context import ServerWriteContext
from .expressions import CelExpressions, Judging

Authorize = Callable[[User, Action], Decision]
FindClass = Callable[[str], Found]
"""A resource class by name, at once."""


class WriteContexts:
    def __init__(
        self,
        repository: Repository,
        caches: Caches,
        namespaces: Kind,
        clock: Clock,
        ids: Ids,
        gates: Gates,
        authorize: Authorize,
        expressions: CelExpressions,
        find_class: FindClass,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.gates = gates
        self._repository = repository
        self._caches = caches
        self._namespaces = namespaces
        self._cache = caches.made(namespaces)  # loaded or not
        self._folder = prefix_of(namespaces)
        self._authorize = authorize
        self._expressions = expressions
        self._find_class = find_class

    async def open(self, call: Call, warnings: list[str], *, fresh: bool) -> ServerWriteContext:
        """A first attempt trusts the cache, since the commit compares, and `is_outdated` is asked
        before anybody is refused; later ones read anew."""
        namespace = None
        if call.kind.namespaced:
            namespace = await self._namespace(call.target.namespace, fresh)
        return self._opened(call, warnings, namespace)

    def open_now(self, call: Call, warnings: list[str]) -> ServerWriteContext | None:
        """For a first attempt, where nothing has to be waited for: as nearly always."""
        if not call.kind.namespaced:
            return self._opened(call, warnings, None)
        key = f"{self._folder}{call.target.namespace}"
        known = self._cache.objects.get(key)
        return self._opened(call, warnings, Found(key, known)) if known is not None else None

    def _opened(self, call: Call, warnings: list[str], namespace: Found | None) -> ServerWriteContext:
        return ServerWriteContext(
            user=call.user,
            verb=call.target.verb,
            now=self.clock.now(),
            gates=self.gates,
            version=call.served.version.name,
            authorizer=call.seat.on_loop(self._authorize),
            judging=Judging(self._expressions),
            find_class=call.seat.on_loop(in_transaction(self._find_class)),
            namespace_found=namespace,
            warnings=list(warnings),
        )

    def require_namespace(self, call: Call, context: ServerWriteContext, name: str) -> None:
        """New objects only in a namespace that exists and is not going away."""
        if not call.kind.namespaced:
            return
        namespace = context.namespace()
        if namespace is None:
            raise errors.NotFound(
                f'namespaces "{call.target.namespace}" not found',
                kind="namespaces",
                name=call.target.namespace,
            )
        if namespace["metadata"].get("deletionTimestamp"):
            text = f"namespace {call.target.namespace} is being terminated"
            raise errors.Forbidden(
                f'{call.kind.resource} "{name}" is forbidden: unable to create new content in namespace '
                f"{call.target.namespace} because it is being terminated",
                group=call.kind.group,
                kind=call.kind.plural,
                name=name,
                causes=[errors.Cause("NamespaceTerminating", text, "metadata.namespace")],
            )

    async def is_outdated(self, context: ServerWriteContext) -> bool:
        """Whether rules looked at a namespace as it was.

        A write that goes through is compared at the commit; one that is refused never gets there.
        Whoever labels a namespace and is then refused for want of the label would be told a lie.
        """
        seen = context.namespace_found
        if seen is None or seen.compare not in context.compares:
            return False
        return (await self._repository.find_key(seen.key, self._namespaces)).compare != seen.compare

    async def _namespace(self, name: str, fresh: bool) -> Found:
        key = f"{self._folder}{name}"
        if not fresh:
            known = (await self._caches.of(self._namespaces)).objects.get(key)
            if known is not None:
                return Found(key, known)
        return await self._repository.find_key(key, self._namespaces)
