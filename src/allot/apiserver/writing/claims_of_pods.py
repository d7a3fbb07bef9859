"""The claims of a new pod, made with it: one write where the claim controller needs three more.

The controller hears of a pod, makes its claims from their templates and records their names in the pod's
status; schedulers hear of the pod twice and of each claim once before they can do anything. A server that
is asked to (`Options.claims_with_pods`) does the same in the write that stores the pod.

What it promises
    WITH1  The pod, its status that names the claims, and the claims are one transaction: nobody sees one of
           them without the others.
    WITH2  No pod is refused, or waits, for the sake of its claims. Where anything is unusual (a template or
           a class that is not there, a quota, a policy, admin access, a name that is taken) none is made
           here, and the claim controller sees to it, with its events.
    WITH3  What is made is what the controller would have made, the owners of fields included.

Claims of one template differ in what says whose they are, and in nothing else. What the rules of claims have
to say about a template is found out with the first claim that is made from it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from allot.api import Fields, Kind, Object, Request, classic, encode, errors, generated, resource, stored_form
from allot.base import Ids
from allot.store import Compare, Put, Store

from ..admission import Attempt
from ..deciding.context import ServerWriteContext
from ..deciding.contexts import WriteContexts
from ..deciding.metadata import check_metadata, fill_in_create
from ..reading.cache import Caches
from ..registry import Registry, Served
from ..requests.call import Call
from ..requests.target import Target
from ..security import identities
from ..storing.pending import FIRST_REVISION, is_pending
from ..storing.repository import Found, key_of
from ..storing.stored import object_of
from .body import Body, read_body
from .ownership import Ownership
from .quotas import Quotas

ENTRIES_MAX = 16
BYTES_MAX = 128 * 1024
PATTERNS_MAX = 256
PATTERN_BYTES_MAX = 16 * 1024
"""Of templates that are larger none is kept: decoded they take ten times as much."""
_ACCOUNT = "resource-claim-controller"

Prepare = Callable[[Call, Body, ServerWriteContext], Awaitable[Attempt]]
"""All that a new object goes through before it is stored."""


class Made(NamedTuple):
    key: str
    stored: bytes
    fields: Fields


class _Pattern(NamedTuple):
    """What claims of one template have in common."""

    revision: int  # of the template
    beside_metadata: Fields


class ClaimsOfPods:
    def __init__(
        self,
        pods: Kind,
        templates: Kind,
        store: Store,
        registry: Registry,
        caches: Caches,
        contexts: WriteContexts,
        ownership: Ownership,
        quotas: Quotas,
        find_class: Callable[[str], Found],
        are_no_policies: Callable[[], bool],
    ) -> None:
        self.pods = pods
        self.templates = templates
        self._store = store
        self._registry = registry
        self._known_templates = caches.made(templates)
        self._contexts = contexts
        self._ids: Ids = contexts.ids
        self._ownership = ownership
        self._quotas = quotas
        self._find_class = find_class
        self._are_no_policies = are_no_policies
        self._patterns: dict[str, _Pattern] = {}  # by the key of the template

    async def add_to(self, call: Call, this: Attempt, prepare: Prepare) -> Sequence[Made]:
        """Make the claims of a new pod part of the write that stores it: all that it needs, or none."""
        assert this.new is not None
        entries = _entries(call, this.new)
        if not entries or not self._are_no_policies():
            return ()
        made: list[Made] = []
        names: dict[str, str] = {}
        for entry, template_name in entries:
            claim = await self._made(call, this, entry, template_name, prepare)
            if claim is None:
                return ()
            made.append(claim)
            names[entry] = claim.fields["metadata"]["name"]
        if sum(len(one.stored) for one in made) > BYTES_MAX:
            return ()
        self._record(call.served, this, names)
        this.context.compares += [Compare(one.key, 0) for one in made]
        this.context.extra_writes += [Put(one.key, one.stored) for one in made]
        return made

    def _record(self, served: Served, this: Attempt, names: dict[str, str]) -> None:
        assert this.new is not None
        listed = [{"name": entry, "resourceClaimName": name} for entry, name in names.items()]
        said = {"resourceClaimStatuses": listed}
        this.new["status"] = {**(this.new.get("status") or {}), **said}
        self._ownership.record_applied(
            served, this.new, {"status": said}, generated.FIELD_MANAGER, this.context
        )

    # -- one claim ---------------------------------------------------------------------------------

    async def _made(
        self, call: Call, this: Attempt, entry: str, template_name: str, prepare: Prepare
    ) -> Made | None:
        assert this.new is not None
        key = key_of(self.templates, this.namespace, template_name)
        template = self._template(key)
        served = self._served(template) if template is not None else None
        if template is None or served is None:
            return None
        owner = this.new["metadata"]
        if generated.class_of(template.fields):
            name = classic.limits.claim_name(owner["name"], entry)
        else:
            name = generated.base_name(owner["name"], entry) + self._ids.suffix(generated.SUFFIX)
        described = (owner["name"], owner["uid"], this.namespace, entry, template.fields, name)
        maker = _maker(call, served, this.namespace)
        pattern = self._patterns.get(key)
        if pattern is None or pattern.revision != template.revision:
            fields = await self._first(maker, generated.new_claim(*described), prepare)
            if fields is None:
                return None
            self._keep(key, template, fields)
        else:
            fields = {**pattern.beside_metadata, "metadata": generated.metadata(*described)}
            fill_in_create(served.kind, fields, this.namespace, this.context.now, self._ids)
            if check_metadata(served.kind, fields, None):
                return None
            self._ownership.record(maker, None, fields, this.context, "")
        attempt = Attempt(served.kind, "CREATE", "", this.namespace, name, fields, None, this.context)
        if self._quotas.concern(attempt):
            return None
        return Made(key_of(served.kind, this.namespace, name), stored_form(fields), fields)

    def _keep(self, key: str, template: Object, first: Fields) -> None:
        """One that is pending is not kept: another may have its revision in the next transaction."""
        self._patterns.pop(key, None)
        if len(template.stored) <= PATTERN_BYTES_MAX and template.revision < FIRST_REVISION:
            rest = {name: value for name, value in first.items() if name != "metadata"}
            self._patterns[key] = _Pattern(template.revision, rest)
            if len(self._patterns) > PATTERNS_MAX:
                del self._patterns[next(iter(self._patterns))]

    def _template(self, key: str) -> Object | None:
        """As the store has it, where that can be seen at once; else as far as this server has heard."""
        known = None if is_pending(key) else self._known_templates.objects.get(key)
        entry = self._store.peek(key)
        if entry is None or (known is not None and known.revision == entry.revision):
            return known
        return object_of(entry, self.templates)

    def _served(self, template: Object) -> Served | None:
        """The version in which the controller would make a claim from the template, if it would."""
        wanted = generated.wanted_by(template.fields)
        if class_name := resource.shape.class_name_of(wanted):
            served = self._registry.served(
                resource.limits.GROUP, classic.limits.VERSION, resource.RESOURCE_CLAIM.plural
            )
            return served if served is not None and self._find_class(class_name).object else None
        if generated.asks_for_admin_access(wanted):
            return None
        return self._registry.served(resource.limits.GROUP, "v1", resource.RESOURCE_CLAIM.plural)

    async def _first(self, maker: Call, claim: dict[str, Any], prepare: Prepare) -> Fields | None:
        """The first claim of a template goes the way of any other. None where it is refused."""
        request = replace(maker.request, body=encode(claim))
        if len(request.body) > BYTES_MAX:
            return None
        call = replace(maker, request=request)
        context = self._contexts.open_now(call, [])
        if context is None:
            return None
        try:
            attempt = await prepare(call, read_body(call, context.now), context)
        except errors.ApiError:
            return None
        return attempt.new


def _entries(call: Call, pod: Fields) -> list[tuple[str, str]]:
    """Of the pod's claims, those that are made from templates: their names in the pod, and the templates."""
    spec = pod.get("spec") or {}
    entries = spec.get("resourceClaims")
    if not entries or len(entries) > ENTRIES_MAX or spec.get("nodeName"):
        return []
    if call.dry_run or call.target.beside or not call.seat.is_here:
        return []
    return [
        (entry["name"], template)
        for entry in entries
        if (template := entry.get("resourceClaimTemplateName")) and entry.get("name")
    ]


def _maker(call: Call, served: Served, namespace: str) -> Call:
    """The request with which the controller would make a claim."""
    target = Target(
        served.kind.group, served.version.name, served.kind.plural, namespace, "", "", "create", served
    )
    headers = {"content-type": "application/json", "user-agent": generated.CONTROLLER}
    user = identities.controller(_ACCOUNT)
    request = Request("POST", "", {}, headers, b"", call.request.source)
    return Call(target, served, request, user, call.renderer, served.kind, user)
