"""delete and deletecollection.

An object goes at once if nothing holds it: no finalizer, no grace period. Held
objects get a deletionTimestamp and go with the write that removes the last hold
(see `writing`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from allot.api import (
    OBJECT_BYTES_MAX,
    Fields,
    Kind,
    Object,
    Response,
    age,
    encode,
    errors,
    field,
    schema,
    stored_form,
    transaction,
)
from allot.store import Committed, Delete, Put

from ..admission import Admission, Attempt
from ..deciding.contexts import WriteContexts
from ..reading.reader import not_found
from ..requests.call import Call
from ..requests.warnings import warning_headers
from ..storing.pending import in_words, pending
from ..storing.repository import Found, Repository
from .body import decode_body
from .guard import Guards
from .writer import ATTEMPTS, conflict

_POLICIES = ("Orphan", "Background", "Foreground")
_LASTING_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    policy: str = ""  # "" leaves it to the finalizers that are there
    dry_run: bool = False


def delete_options(call: Call) -> DeleteOptions:
    """From the body, else from the query."""
    said: Fields = {}
    if call.request.body:
        said = decode_body(call.request).fields
        kind = said.get("kind", "DeleteOptions")
        if kind != "DeleteOptions":
            raise errors.BadRequest(f"the body of a delete must be DeleteOptions, not {str(kind)[:64]}")
        problems = schema.check(said, schema.get("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"))
        if problems.malformed:
            raise errors.BadRequest(problems.malformed)
    return options_of(said, call.request.query)


def options_of(said: Fields, query: Mapping[str, str]) -> DeleteOptions:
    """What was said in DeleteOptions of the right shape, else in the query. Refused if it makes no sense."""
    grace = said.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    if isinstance(grace, str):
        if not grace.lstrip("-").isdigit() or len(grace) > 12:
            raise errors.BadRequest("gracePeriodSeconds must be a whole number")
        grace = int(grace)
    conditions = said.get("preconditions") or {}
    policy = said.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = said.get("orphanDependents", query.get("orphanDependents"))
    _check_policy(policy, orphan)
    if not policy and orphan is not None:
        policy = "Orphan" if orphan in (True, "true") else "Background"
    dry = said.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    if dry not in ([], ["All"]):
        raise errors.BadRequest('dryRun: supported values: "All"')
    return DeleteOptions(
        None if grace is None else max(0, grace),
        str(conditions.get("uid") or ""),
        str(conditions.get("resourceVersion") or ""),
        policy,
        bool(dry),
    )


def _check_policy(policy: str, orphan: Any) -> None:
    path = field.Path("propagationPolicy")
    problem = None
    if policy and orphan is not None:
        problem = field.invalid(path, policy, "orphanDependents and propagationPolicy cannot be both set")
    elif policy and policy not in _POLICIES:
        problem = field.unsupported(path, policy, _POLICIES)
    if problem is not None:
        raise field.refusal("meta.k8s.io", "DeleteOptions", "", [problem])


class Deleter:
    def __init__(
        self, repository: Repository, contexts: WriteContexts, admission: Admission, guard: Guards
    ) -> None:
        self._repository = repository
        self._contexts = contexts
        self._admission = admission
        self._guard = guard

    async def delete(self, call: Call) -> Response:
        kind, name = call.kind, call.target.name
        options = await call.read(lambda: delete_options(call))
        last, gone = await self.remove(call, call.target.namespace, name, options)
        headers = warning_headers([v.deprecated] if (v := call.served.version).deprecated else [])
        if gone and not call.served.version.returns_deleted:
            return Response(200, encode(_success(kind, name, last.uid)), headers=headers)
        return call.renderer.answer(last, 200, headers)

    async def remove(
        self, call: Call, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[Object, bool]:
        """Delete, or begin to. The object as it was last stored, and whether it is gone."""
        if options.dry_run and pending() is not None:
            raise errors.BadRequest(transaction.DRY_RUN_OF_ONE)
        for attempt in range(ATTEMPTS):
            found = await self._repository.find(call.kind, namespace, name)
            if found.object is None:
                raise not_found(call.kind, name)
            check_preconditions(call.kind, name, found.object, options)
            done = await self._attempt(call, namespace, name, found, options, fresh=attempt > 0)
            if done is not None:
                return done
        raise conflict(call.kind, name)

    async def _attempt(
        self, call: Call, namespace: str, name: str, found: Found, options: DeleteOptions, *, fresh: bool
    ) -> tuple[Object, bool] | None:
        assert found.object is not None
        kind = call.kind
        context = None if fresh else self._contexts.open_now(call, [])
        if context is None:
            context = await self._contexts.open(call, [], fresh=fresh)
        old, new = cast(Fields, found.object.fields), found.object.opened()
        await self._admission.admit(Attempt(kind, "DELETE", "", namespace, name, None, old, context))
        _keep_lasting(kind, name)
        held = _mark(kind, new, options, age.timestamp(context.now), context.now)
        if options.dry_run or call.dry_run:
            return Object(encode(new)), not held
        if held and new == old:
            return found.object, False
        self._guard.guard(kind, old, new if held else None, context)
        stored = stored_form(new)
        write = Put(found.key, stored) if held else Delete(found.key)
        outcome = await self._repository.commit(
            [found.compare, *context.compares],
            [write, *context.extra_writes],
            max(OBJECT_BYTES_MAX, len(stored)),  # however large it is, it may go
        )
        if not isinstance(outcome, Committed):
            return None
        if held:
            return self._repository.written(found.key, stored, outcome.revision, new), False
        return Object(stored, outcome.revision), True


def check_preconditions(kind: Kind, name: str, object: Object, options: DeleteOptions) -> None:
    wrong = ""
    if options.uid and options.uid != object.uid:
        wrong = f"UID in precondition: {options.uid}, UID in object meta: {object.uid}"
    elif options.resource_version and options.resource_version != object.resource_version:
        wrong = (
            f"ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {in_words(object.revision)}"
        )
    if wrong:
        raise errors.Conflict(
            f'Operation cannot be fulfilled on {kind.resource} "{name}": Precondition failed: {wrong}',
            group=kind.group,
            kind=kind.plural,
            name=name,
        )


def _keep_lasting(kind: Kind, name: str) -> None:
    if kind.group == "" and kind.kind == "Namespace" and name in _LASTING_NAMESPACES:
        raise errors.Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            kind="namespaces",
            name=name,
        )


def _mark(kind: Kind, fields: Fields, options: DeleteOptions, now_text: str, now: Any) -> bool:
    """Write down that the object is to go. True if something still holds it."""
    metadata = fields["metadata"]
    _set_policy(metadata, options.policy)
    grace = _grace_s(kind, fields, options)
    is_namespace = kind.group == "" and kind.kind == "Namespace"
    held = bool(metadata.get("finalizers")) or grace > 0
    if is_namespace:
        held = held or bool((fields.get("spec") or {}).get("finalizers"))
    if not held:
        return False
    first = not metadata.get("deletionTimestamp")
    shorter = not first and grace < (metadata.get("deletionGracePeriodSeconds") or 0)
    if first or shorter:
        metadata["deletionTimestamp"] = _end(now, grace) if grace else now_text
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
    if is_namespace:
        fields["status"] = {**(fields.get("status") or {}), "phase": "Terminating"}
    return True


def _end(now: datetime, grace_s: int) -> str:
    """When the grace is over; one that outlasts the calendar ends with it."""
    try:
        return age.timestamp(now + timedelta(seconds=grace_s))
    except OverflowError:
        return age.timestamp(datetime.max.replace(tzinfo=UTC))


def _set_policy(metadata: Fields, policy: str) -> None:
    if not policy:
        return
    finalizers = [f for f in metadata.get("finalizers") or [] if f not in ("orphan", "foregroundDeletion")]
    if policy == "Orphan":
        finalizers.append("orphan")
    elif policy == "Foreground":
        finalizers.append("foregroundDeletion")
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _grace_s(kind: Kind, fields: Fields, options: DeleteOptions) -> int:
    """Only pods that run on a node are given time."""
    if kind.group or kind.kind != "Pod":
        return 0
    spec = fields.get("spec") or {}
    if not spec.get("nodeName") or (fields.get("status") or {}).get("phase") in _FINISHED:
        return 0
    if options.grace_s is not None:
        return options.grace_s
    pending = fields["metadata"].get("deletionGracePeriodSeconds")
    return int(pending if pending is not None else spec.get("terminationGracePeriodSeconds") or 0)


def _success(kind: Kind, name: str, uid: str) -> Fields:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid},
    }
