"""Nobody gets more than the quotas of a namespace allow, whoever asks and however many at once (Q1).

What an object uses is added to `status.used` of every quota that counts it, in the transaction
that stores the object. Two writers of one quota therefore cannot both take the last of it,
also on two servers. What is given back is counted by the quota controller: an object that is gone
is charged a moment too long, never too short.

Why no quota is overlooked
    Every new object compares its namespace. Whoever makes a quota, or changes what it counts,
    writes the namespace anew, unchanged. So a write that was decided without the quota is thrown
    away, and the next attempt finds it. A namespace without quotas costs a look into a dictionary.

Writers of one namespace take turns in this process, since all but one of them would have to start
over. Between processes they do start over.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from allot import quota
from allot.api import Fields, Gates, Kind, Object, errors, resource, stored_form
from allot.store import Put

from ..admission import Attempt
from ..deciding.context import ServerWriteContext
from ..reading.cache import Caches
from ..reading.history import Change
from ..storing.repository import Found, Repository, prefix_of
from ..storing.stored import object_of

FindKind = Callable[[str, str], Kind]


class Quotas:
    def __init__(self, repository: Repository, caches: Caches, kind: FindKind, gates: Gates) -> None:
        self._repository = repository
        self._extends = gates["DRAExtendedResource"]
        self._caches = caches
        self._kind = kind("", "resourcequotas")
        self._find_kind = kind
        self._known: dict[str, set[str]] = {}  # namespace -> keys of its quotas
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._cache = caches.made(self._kind)  # loaded or not: before that it has seen nothing
        self._cache.listeners.append(self._observe)

    def concern(self, attempt: Attempt) -> bool:
        """Whether the write may have to pay: then it is committed within `charged`.

        Of a quota itself, what it does not count any more is forgotten here, before it is encoded.
        """
        if attempt.kind is self._kind and attempt.operation == "UPDATE" and not attempt.subresource:
            _forget_what_is_no_longer_counted(attempt)
        return self._may_charge(attempt) and self._may_have_quotas(attempt)

    @asynccontextmanager
    async def charged(self, attempt: Attempt) -> AsyncIterator[None]:
        """Commit within this: what the write must pay has joined it, or it was refused."""
        await self._caches.of(self._kind)
        turn = self._turns.setdefault(attempt.namespace, asyncio.Lock())
        async with turn:
            await self._charge(attempt)
            yield

    def _may_charge(self, attempt: Attempt) -> bool:
        if not attempt.kind.namespaced or attempt.subresource or attempt.new is None:
            return False
        if attempt.kind is self._kind and _counts_otherwise(attempt):
            attempt.context.announce()
        return attempt.operation == "CREATE" or quota.can_grow(_source(attempt.kind))

    def _may_have_quotas(self, attempt: Attempt) -> bool:
        """A namespace that is newer than what the cache has seen may have got a quota meanwhile."""
        namespace = attempt.context.namespace()
        found = attempt.context.namespace_found
        if namespace is None or found is None or found.object is None:
            return False
        return attempt.namespace in self._known or self._cache.revision < found.object.revision

    async def _charge(self, attempt: Attempt) -> None:
        assert attempt.new is not None
        page = await self._repository.store.range(prefix_of(self._kind, attempt.namespace))
        quotas = [Found(entry.key, object_of(entry, self._kind)) for entry in page.entries]
        if not quotas:
            return
        source = _source(attempt.kind)
        context = await self._context(attempt, source, quotas)
        # A status is written by a second request, which pays nothing and spares nothing of the first.
        new = quota.Subject(source, attempt.new if attempt.between is None else attempt.between)
        old = quota.Subject(source, attempt.old) if attempt.old is not None else None
        bill = _Bill(attempt, new, old, quota.usage(new, context), quota.usage(old, context) if old else {})
        for found in quotas:
            bill.present_to(found)

    async def _context(self, attempt: Attempt, source: quota.Source, quotas: list[Found]) -> quota.Context:
        """What the charge of a claim, or of a pod, depends on."""
        if not self._extends:
            return quota.Context(None)
        names = [name for found in quotas if found.object for name in _hard(found.object)]
        if attempt.new is None or not any(quota.is_shared_name(name) for name in names):
            return quota.Context()
        if source == quota.PODS:
            asks = any(
                quota.is_shared_name(name)
                for name in quota.usage(quota.Subject(source, attempt.new), quota.Context())
            )
            return quota.Context(await self._all_extended_names() if asks else {})
        if source != quota.CLAIMS:
            return quota.Context()
        owner = await self._owner(attempt.namespace, attempt.new, attempt.context)
        if owner is not None:  # counted as its pod was
            return quota.Context(await self._all_extended_names(), lambda claim: owner)
        if not any(quota.is_extended_name(name) for name in names):
            return quota.Context()
        return quota.Context(await self._extended_names(attempt.new, attempt.context))

    async def _extended_names(self, claim: Fields, context: ServerWriteContext) -> dict[str, str]:
        """Those that the classes of a claim serve. The classes are compared at the commit."""
        found = [
            context.join(await self._repository.find(self._classes, "", name))
            for name in quota.classes_of(claim)
        ]
        has_names = any(one is not None and _extended_name(one) for one in found)
        return await self._all_extended_names() if has_names else {}

    async def _all_extended_names(self) -> dict[str, str]:
        """Of every class: any of them may serve the name that a pod uses. They are not compared; when
        a class takes another name, the controller counts anew."""
        page = await self._repository.store.range(prefix_of(self._classes))
        return quota.extended_names(
            object_of(entry, self._classes).view(resource.DeviceClass) for entry in page.entries
        )

    @property
    def _classes(self) -> Kind:
        return self._find_kind("resource.k8s.io", "deviceclasses")

    async def _owner(self, namespace: str, claim: Fields, context: ServerWriteContext) -> quota.Owner | None:
        reference = quota.owning_pod(claim) if quota.is_extended_claim(claim) else None
        if reference is None:
            return None
        pod = context.join(
            await self._repository.find(self._find_kind("", "pods"), namespace, reference.get("name") or "")
        )
        if pod is None:
            return None
        kind = self._find_kind("resource.k8s.io", "resourceclaims")
        page = await self._repository.store.range(prefix_of(kind, namespace))
        claims = [dict(object_of(entry, kind).fields) for entry in page.entries]
        return quota.Owner(dict(pod.fields), quota.claims_for(reference.get("uid") or "", claims))

    def _observe(self, change: Change) -> None:
        namespace = change.object.namespace
        if change.type != "DELETED":
            self._known.setdefault(namespace, set()).add(change.key)
            return
        keys = self._known.get(namespace, set())
        keys.discard(change.key)
        if not keys:
            self._known.pop(namespace, None)


class _Bill:
    """What one write takes, presented to each quota in turn."""

    def __init__(
        self,
        attempt: Attempt,
        new: quota.Subject,
        old: quota.Subject | None,
        new_usage: quota.Usage,
        old_usage: quota.Usage,
    ) -> None:
        self._attempt = attempt
        self._new, self._old = new, old
        self._new_usage, self._old_usage = new_usage, old_usage

    def present_to(self, found: Found) -> None:
        """The quota pays, or the write is refused."""
        assert found.object is not None
        terms, name = found.object.fields.get("spec") or {}, found.object.name
        if self._old is None and self._new.source == quota.PODS and quota.covers(terms, *self._new):
            unsaid = quota.unspecified(self._new.fields, terms.get("hard") or {})
            if unsaid:
                raise self._refusal(f"failed quota: {name}: {unsaid}")
        delta = self._delta(terms)
        if not delta:
            return
        used = quota.parse((found.object.fields.get("status") or {}).get("used"))
        unknown = sorted(resource for resource in delta if resource not in used)
        if unknown:
            raise self._refusal(f"status unknown for quota: {name}, resources: {','.join(unknown)}")
        over = quota.exceeded(name, _hard(found.object), used, delta)
        if over:
            raise self._refusal(over)
        self._attempt.context.join(found)
        self._attempt.context.extra_writes.append(Put(found.key, _with_used(found.object, used, delta)))

    def _delta(self, terms: Fields) -> quota.Usage:
        after = quota.charge(terms, self._new, self._new_usage)
        before = quota.charge(terms, self._old, self._old_usage) if self._old else {}
        return quota.positive(quota.subtract(after, before))

    def _refusal(self, text: str) -> errors.Forbidden:
        kind, name = self._attempt.kind, self._attempt.name
        return errors.Forbidden(
            f'{kind.resource} "{name}" is forbidden: {text}', group=kind.group, kind=kind.plural, name=name
        )


def _source(kind: Kind) -> quota.Source:
    return quota.Source(kind.group, kind.plural)


def _extended_name(device_class: Object) -> str:
    return device_class.view(resource.DeviceClass).spec.extended_resource_name or ""


def _hard(found: Object) -> quota.Usage:
    return quota.parse((found.fields.get("spec") or {}).get("hard"))


def _with_used(found: Object, used: quota.Usage, delta: quota.Usage) -> bytes:
    fields = found.fresh()
    total = quota.add(used, delta)
    fields["status"] = {**(fields.get("status") or {}), "used": quota.written(total)}
    return stored_form(fields)


def _counts_otherwise(attempt: Attempt) -> bool:
    """A quota that is new, or whose terms change."""
    return attempt.old is None or (attempt.new or {}).get("spec") != attempt.old.get("spec")


def _forget_what_is_no_longer_counted(attempt: Attempt) -> None:
    """Nobody pays for a name while it is not limited, so what was used is not known any more."""
    new, old = attempt.new, attempt.old
    if new is None or old is None or not (new.get("status") or {}).get("used"):
        return
    terms, before = new.get("spec") or {}, old.get("spec") or {}
    same_objects = all(terms.get(name) == before.get(name) for name in ("scopes", "scopeSelector"))
    kept: Mapping[str, object] = terms.get("hard") or {} if same_objects else {}
    used = {name: amount for name, amount in new["status"]["used"].items() if name in kept}
    new["status"] = {**new["status"], "used": used}
