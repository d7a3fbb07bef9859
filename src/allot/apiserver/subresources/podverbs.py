"""What can be done to a pod besides writing it: bind it to a node, evict it."""

from dataclasses import replace

from allot.api import Fields, Kind, Object, Response, age, compute, core, encode, errors, schema, stored_form
from allot.base import Clock
from allot.store import Committed, Put

from ..deciding.context import ServerWriteContext
from ..reading.reader import not_found
from ..requests.call import Call
from ..requests.warnings import warning_headers
from ..security import refuse_node
from ..storing.repository import Repository, prefix_of
from ..storing.stored import object_of
from ..writing.body import Body, read_other
from ..writing.deleting import DeleteOptions, Deleter, check_preconditions, options_of
from ..writing.writer import Writer
from . import disruption

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
ATTEMPTS = 8
"""How often an eviction starts over when others are faster."""


def _read(call: Call, shape: str, *api_versions: str) -> tuple[Fields, list[str]]:
    """The body of a verb on the pod of the URL: that much may be left out, and not be contradicted."""
    kind = shape.rpartition(".")[2]
    fields, warnings = read_other(call.request, schema.get(shape), kind, api_versions)
    metadata = fields.get("metadata") or {}
    for part, meant in (("name", call.target.name), ("namespace", call.target.namespace)):
        if (metadata.get(part) or meant) != meant:
            raise errors.BadRequest(f"the {part} in the {kind} does not match the {part} on the URL")
    return fields, warnings


class Binder:
    """POST pods/NAME/binding (P4: a pod is bound once)."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def bind(self, call: Call) -> Response:
        binding, warnings = await call.read(lambda: _read(call, "io.k8s.api.core.v1.Binding", "v1"))
        target = binding.get("target") or {}
        node = target.get("name") or ""
        if not node or target.get("kind", "Node") not in ("", "Node"):
            raise errors.Invalid(
                'Binding "" is invalid: target.name: Required value',
                causes=[errors.Cause("FieldValueRequired", "Required value", "target.name")],
            )
        metadata = binding.get("metadata") or {}

        def build(old: Object, context: ServerWriteContext) -> Body:
            new = old.opened()
            _check_bindable(call, new, metadata)
            new["spec"] = {**new["spec"], "nodeName": node}
            annotations = dict(metadata.get("annotations") or {})
            if context.gates[compute.limits.GATE]:  # else it stays what it is, as on any other server
                chosen = annotations.pop(compute.limits.RECORD_ANNOTATION, None)
                if chosen is not None:
                    compute.binding.record(new, chosen)
            for name, more in (("annotations", annotations), ("labels", metadata.get("labels"))):
                if more:
                    new["metadata"][name] = {**(new["metadata"].get(name) or {}), **more}
            _set_scheduled(new, age.timestamp(self._clock.now()))
            return Body(new, patched=True, trusted=True, applied=True)  # nobody owns a pod's node

        await self._writer.change(call, build)
        return Response(201, encode(_SUCCESS), headers=warning_headers(warnings))


def _check_bindable(call: Call, pod: Fields, metadata: Fields) -> None:
    name = call.target.name
    wrong = ""
    if metadata.get("uid") and metadata["uid"] != pod["metadata"].get("uid"):
        wrong = f"the pod with uid {metadata['uid']} is gone"
    elif pod["metadata"].get("deletionTimestamp"):
        wrong = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        wrong = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        wrong = f"pod {name} has non-empty .spec.schedulingGates"
    if wrong:
        raise errors.Conflict(
            f'Operation cannot be fulfilled on pods/binding "{name}": {wrong}', kind="pods", name=name
        )


def _set_scheduled(pod: Fields, now: str) -> None:
    """It is on a node, and no longer nominated for one."""
    status = pod["status"] = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, {key: value for key, value in scheduled.items() if value is not None}]


class Evictor:
    """POST pods/NAME/eviction: a delete that disruption budgets may refuse."""

    def __init__(self, repository: Repository, deleter: Deleter, budgets: Kind | None, clock: Clock) -> None:
        self._repository = repository
        self._deleter = deleter
        self._budgets = budgets
        self._clock = clock

    async def evict(self, call: Call) -> Response:
        eviction, warnings = await call.read(
            lambda: _read(call, "io.k8s.api.policy.v1.Eviction", "policy/v1", "policy/v1beta1")
        )
        asked = options_of(eviction.get("deleteOptions") or {}, {})
        asked = replace(asked, dry_run=asked.dry_run or call.dry_run)
        for _ in range(ATTEMPTS):
            if await self._attempt(call, eviction, asked):
                return Response(201, encode(_SUCCESS), headers=warning_headers(warnings))
        raise errors.TooManyRequests("the pod is being changed by many", retry_after_s=1)

    async def _attempt(self, call: Call, eviction: Fields, asked: DeleteOptions) -> bool:
        """False: the pod was to go without a charge, and is no longer what it was."""
        namespace, name = call.target.namespace, call.target.name
        pod = (await self._repository.find(call.kind, namespace, name)).object
        if pod is None:
            raise not_found(call.kind, name)
        refused = refuse_node(call.user, call.target.action(), eviction, None, lambda *_: pod.fresh())
        if refused is not None:
            raise refused
        check_preconditions(call.kind, name, pod, asked)  # like the above, before the budget is charged
        only_as_it_is = not await self._ask_budget(namespace, pod, asked.dry_run)
        as_it_is = replace(asked, resource_version=pod.resource_version)
        try:
            await self._deleter.remove(call, namespace, name, as_it_is if only_as_it_is else asked)
        except errors.Conflict:
            if only_as_it_is and not asked.resource_version:
                return False
            raise
        return True

    async def _ask_budget(self, namespace: str, pod: Object, dry: bool) -> bool:
        """Whether the pod may go whatever becomes of it, the budget having been charged if need be."""
        view = pod.view(core.Pod)
        if view.is_finished or pod.metadata.deletion_timestamp is not None or self._budgets is None:
            return True
        if view.status.phase == "Pending":
            return False
        page = await self._repository.store.range(prefix_of(self._budgets, namespace))
        labels = view.metadata.labels
        budgets = (object_of(entry, self._budgets) for entry in page.entries)
        covering = [one for one in budgets if one.view(core.PodDisruptionBudget).covers(labels)]
        if len(covering) > 1:
            raise errors.Internal(
                "This pod has more than one PodDisruptionBudget, which eviction does not support."
            )
        return await self._charge(self._budgets, covering[0], view, dry) if covering else True

    async def _charge(self, kind: Kind, budget: Object, pod: core.Pod, dry: bool) -> bool:
        """False: nothing is charged, for the pod is not among those that the budget counts."""
        for _ in range(ATTEMPTS):
            found = await self._repository.find(kind, budget.namespace, budget.name)
            if found.object is None:
                return True
            seen = found.object.view(core.PodDisruptionBudget)
            if disruption.is_free(seen, pod):
                return False
            refused = disruption.refusal(seen)
            if refused is not None:
                raise refused
            if dry:
                return True
            after = disruption.charged(found.object, pod.metadata.name, age.timestamp(self._clock.now()))
            write = Put(found.key, stored_form(after))
            if isinstance(await self._repository.commit([found.compare], [write]), Committed):
                return True
        raise errors.TooManyRequests("the disruption budget is being changed by many", retry_after_s=1)
