"""A pod's claims: made, found again, recorded, and reserved where no scheduler did."""

from collections.abc import Iterator
from typing import Any

from allot.api import Object, classic, errors, generated, resource
from allot.client import Resource
from allot.informers import OWNER_INDEX, WARNING, Again, Events, Informer, Key, owner_uids

from ..controller import World
from . import generating, releasing
from .counting import CreateCounts
from .generating import Adopt, Create, Skip, Use
from .memory import UNANSWERED, Made, Unanswered
from .views import Pod, PodClaim, claim_of, is_for, pod_of

CACHE_BEHIND_S = 30.0
"""When to look again at what the cache does not show yet."""


class PodLoop:
    def __init__(
        self,
        world: World,
        pods: Informer,
        claims: Informer,
        templates: Informer,
        classes: Informer,
        made: Made,
    ) -> None:
        self._world = world
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._classes = classes
        self._made = made
        self._unanswered = Unanswered()
        self._owned = claims.cache.index(OWNER_INDEX, owner_uids)
        self._client = world.client
        self._write_claims: Resource = world.client.of(resource.RESOURCE_CLAIM)
        self._write_classic: Resource = world.client.resource(
            resource.limits.GROUP, classic.limits.VERSION, resource.RESOURCE_CLAIM.plural
        )
        self._write_pods: Resource = world.client.resource("", "v1", "pods")
        self._events: Events = world.events
        self._counts = CreateCounts(world.metrics)

    async def reconcile(self, key: Key) -> Again | None:
        object = self._pods.cache.get(key.name, key.namespace)
        return None if object is None else await self._see_to(object)

    async def _see_to(self, object: Object) -> Again | None:
        pod = pod_of(object)
        if pod.is_done or pod.metadata.deletion_timestamp:
            return None
        await self._confirm_made(pod)
        if await self._make_all(object, pod):
            return Again(CACHE_BEHIND_S)
        problems: list[errors.ApiError] = []
        fresh: dict[str, str] = {}  # to be recorded
        names: list[str] = []
        for entry in pod.spec.resource_claims:
            try:
                name = await self._settle(object, pod, entry, fresh)
            except errors.ApiError as refused:
                text = generating.failure(object.name, entry.name, refused)
                self._events.record(object, WARNING, "FailedResourceClaimCreation", text)
                problems.append(refused)
                continue
            names += [name] if name else []
        if fresh and not await self._record(object, pod, fresh):
            live = await self._live_pod(object)
            return None if live is None else await self._see_to(live)
        if pod.spec.node_name:
            for name in names:
                await self._reserve(pod, name)
        if problems:
            raise problems[0]
        return Again(CACHE_BEHIND_S) if self._is_behind(pod, names) else None

    def is_at_rest(self, object: Object) -> bool:
        """Whether `reconcile` would do nothing about the pod, and whatever changes that is heard of.

        For that, the cache must show every claim that was made for it.
        """
        pod = pod_of(object)
        if self._made.doubtful(pod.metadata.uid, self._world.clock.monotonic_s()):
            return False
        names: list[str] = []
        for entry in pod.spec.resource_claims:
            known = self._known(pod, entry)
            if known is None and _recorded_name(pod, entry):
                return False
            match self._step_for(pod, entry, known):
                case Use(name):
                    names.append(name)
                case Skip():
                    pass
                case _:
                    return False
        if pod.spec.node_name and any(self._reservable(pod, name) is not None for name in names):
            return False
        return not self._is_behind(pod, names)

    def _is_behind(self, pod: Pod, names: list[str]) -> bool:
        """A claim of the pod is there and the cache does not show it; it may go before it does."""
        direct = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        namespace = pod.metadata.namespace
        return any(name not in direct and self._claims.cache.get(name, namespace) is None for name in names)

    # -- all at once ----------------------------------------------------------------------------

    async def _make_all(self, object: Object, pod: Pod) -> bool:
        """Make the claims that a waiting pod needs and record them, in one transaction of the server.

        False where there is nothing to make, or where one thing has to be done after the other: then nothing
        was written.
        """
        if not self._client.has_transactions or pod.spec.node_name:
            return False
        wanted: dict[str, dict[str, Any]] = {}
        fresh: dict[str, str] = {}
        for entry in pod.spec.resource_claims:
            if _recorded_name(pod, entry) and self._known(pod, entry) is None:
                return False  # the server is asked first
            match self._step_for(pod, entry, self._known(pod, entry)):
                case Create(template_name):
                    template = self._templates.cache.get(template_name, object.namespace)
                    if template is None or self._missing_class(template):
                        return False
                    name = self._new_name(object, entry, template)
                    wanted[entry.name] = _new_claim(object, entry, template, name)
                    fresh[entry.name] = name
                case Adopt(name):
                    fresh[entry.name] = name
        if not wanted:
            return False
        record = self._write_pods.writes.apply(
            self._record_of(object, pod, fresh),
            field_manager=generated.FIELD_MANAGER,
            force=True,
            subresource="status",
        )
        steps = [self._writer_of(one).writes.create(one) for one in wanted.values()]
        try:
            made = await self._client.gathered([*steps, record])
        except errors.ApiError as refused:
            if isinstance(refused, UNANSWERED):
                for entry_name, name in fresh.items():
                    self._unanswered.add(object.uid, entry_name, name)
                raise
            return False
        for claim, body in zip(made, wanted.values(), strict=False):  # the last answer is about the pod
            self._counts.count("success", body)
            self._remember(claim, object.uid)
        return True

    # -- making and finding ---------------------------------------------------------------------

    async def _settle(self, object: Object, pod: Pod, entry: PodClaim, fresh: dict[str, str]) -> str | None:
        """The claim for an entry, made if need be. What is to be recorded goes into `fresh`."""
        match self._step_for(pod, entry, await self._recorded(pod, entry)):
            case Use(name):
                return name
            case Adopt(name):
                fresh[entry.name] = name
                return name
            case Create(template):
                claim = await self._create(object, entry, template)
                fresh[entry.name] = claim.name
                return claim.name
            case Skip():
                return None

    def _step_for(self, pod: Pod, entry: PodClaim, recorded: Object | None) -> generating.Step:
        """With the gate off no classic claims are made; those that are there are given back as ever."""
        step = generating.step_for(pod, entry, recorded, self._owned_by(pod))
        if isinstance(step, Create) and not self._world.gates[classic.limits.GATE]:
            template = self._templates.cache.get(step.template, pod.metadata.namespace)
            if template is not None and generated.class_of(template.fields):
                return Skip()
        return step

    async def _recorded(self, pod: Pod, entry: PodClaim) -> Object | None:
        """The claim that the pod's status names. Before it counts as vanished, the server is asked."""
        name = _recorded_name(pod, entry)
        if not name:
            return None
        return self._known(pod, entry) or await self._live(name, pod.metadata.namespace)

    def _known(self, pod: Pod, entry: PodClaim) -> Object | None:
        """The claim that the pod's status names, as far as it has been heard of."""
        name = _recorded_name(pod, entry)
        if name:
            for claim in (self._claims.cache.get(name, pod.metadata.namespace), *self._owned_by(pod)):
                if claim is not None and claim.name == name and is_for(claim_of(claim), pod):
                    return claim
        return None

    async def _live(self, name: str, namespace: str) -> Object | None:
        try:
            return await self._write_claims.get(name, namespace)
        except errors.NotFound:
            return None

    def _owned_by(self, pod: Pod) -> tuple[Object, ...]:
        uid = pod.metadata.uid
        return (*self._owned[uid], *self._made.of(uid))

    async def _confirm_made(self, pod: Pod) -> None:
        """Ask the server about what was made long ago and what the cache still does not show."""
        uid = pod.metadata.uid
        for claim in self._made.doubtful(uid, self._world.clock.monotonic_s()):
            live = await self._live(claim.name, claim.namespace)
            self._made.forget(claim.uid)
            if live is not None and live.uid == claim.uid:
                self._remember(live, uid)

    def _remember(self, claim: Object, pod_uid: str) -> None:
        if self._claims.cache.get(claim.name, claim.namespace) is None:  # news may be faster than an answer
            self._made.add(claim, pod_uid, self._world.clock.monotonic_s())

    async def _create(self, pod: Object, entry: PodClaim, template_name: str) -> Object:
        template = self._templates.cache.get(template_name, pod.namespace)
        if template is None:
            raise errors.NotFound(
                f'resource claim template "{template_name}":'
                f' resourceclaimtemplate.{resource.limits.GROUP} "{template_name}" not found'
            )
        if missing := self._missing_class(template):
            raise errors.NotFound(
                f'resource class "{missing}": resourceclass.{resource.limits.GROUP} "{missing}" not found'
            )
        wanted = _new_claim(pod, entry, template, self._new_name(pod, entry, template))
        try:
            claim = await self._create_once(pod, entry, wanted)
        except errors.ApiError:
            self._counts.count("failure", wanted)
            raise
        self._counts.count("success", wanted)
        self._remember(claim, pod.uid)
        return claim

    def _missing_class(self, template: Object) -> str:
        """The resource class without which nobody could allocate what is made from a template."""
        name = generated.class_of(template.fields)
        return name if name and self._classes.cache.get(name) is None else ""

    def _new_name(self, pod: Object, entry: PodClaim, template: Object) -> str:
        if generated.class_of(template.fields):
            return classic.limits.claim_name(pod.name, entry.name)
        tried = self._unanswered.take(pod.uid, entry.name)
        return tried or (generated.base_name(pod.name, entry.name) + self._world.ids.suffix(generated.SUFFIX))

    def _writer_of(self, claim: dict[str, Any]) -> Resource:
        """A classic claim is made in its own version."""
        return (
            self._write_classic if claim["apiVersion"] == classic.limits.API_VERSION else self._write_claims
        )

    async def _create_once(self, pod: Object, entry: PodClaim, wanted: dict[str, Any]) -> Object:
        """Whether an unanswered create was carried out is asked when the server answers again:
        the cache may show it much later, and by then there would be two."""
        name = wanted["metadata"]["name"]
        try:
            try:
                return await self._writer_of(wanted).create(wanted)
            except errors.AlreadyExists:
                found = await self._write_claims.get(name, pod.namespace)
                if generating.is_made_for(found, pod_of(pod), entry.name):
                    return found
                raise
        except UNANSWERED:
            self._unanswered.add(pod.uid, entry.name, name)
            raise

    async def _record(self, object: Object, pod: Pod, fresh: dict[str, str]) -> bool:
        """False when the pod is not any more as it was looked at."""
        wanted = self._record_of(object, pod, fresh)
        try:
            await self._write_pods.apply(
                wanted, field_manager=generated.FIELD_MANAGER, force=True, subresource="status"
            )
        except errors.NotFound:
            pass  # the pod went meanwhile, and its claims go with it
        except errors.Conflict:
            return False
        return True

    def _record_of(self, object: Object, pod: Pod, fresh: dict[str, str]) -> dict[str, Any]:
        """In the pod as it was looked at: a leader that slept must not undo what its successor recorded."""
        known = {"uid": object.uid, "resourceVersion": object.resource_version}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": object.name, "namespace": object.namespace, **known},
            "status": {"resourceClaimStatuses": generating.statuses(pod, fresh)},
        }

    async def _live_pod(self, known: Object) -> Object | None:
        """None when it went meanwhile, or is another."""
        try:
            live = await self._write_pods.get(known.name, known.namespace)
        except errors.NotFound:
            return None
        return live if live.uid == known.uid else None

    # -- reserving ------------------------------------------------------------------------------

    async def _reserve(self, pod: Pod, name: str) -> None:
        claim = self._reservable(pod, name)
        if claim is None:
            return
        reserved = (claim.fields.get("status") or {}).get("reservedFor") or []
        await self._write_claims.patch(
            name,
            {
                "metadata": {"uid": claim.uid, "resourceVersion": claim.resource_version},
                "status": {"reservedFor": [*reserved, releasing.reservation(pod)]},
            },
            pod.metadata.namespace,
            subresource="status",
        )

    def _reservable(self, pod: Pod, name: str) -> Object | None:
        """The claim of that name, if the pod lacks a reservation and may have one."""
        claim = self._claims.cache.get(name, pod.metadata.namespace)
        if claim is None or not releasing.can_be_reserved(claim_of(claim), pod):
            return None
        view = claim_of(claim)
        is_generated = name in _generated(pod) or view.metadata.controlling_pod is not None
        return None if is_generated and not is_for(view, pod) else claim  # C4


def _new_claim(pod: Object, entry: PodClaim, template: Object, name: str) -> dict[str, Any]:
    return generated.new_claim(pod.name, pod.uid, pod.namespace, entry.name, template.fields, name)


def _recorded_name(pod: Pod, entry: PodClaim) -> str:
    """The claim that the pod's status names for an entry that does not name one itself."""
    status = pod.recorded(entry.name)
    if entry.resource_claim_name or status is None:
        return ""
    return status.resource_claim_name or ""


def _generated(pod: Pod) -> Iterator[str]:
    return (one.resource_claim_name or "" for one in pod.status.resource_claim_statuses)
