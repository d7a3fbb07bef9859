"""What can be done to a pod besides writing it: bind it to a node, evict it."""

from typing import Any

from allot.api import Fields, Kind, Object, Response, encode, errors, schema, stored_form
from allot.base import Clock
from allot.store import Committed, Put

from .body import Body, decode_body
from .call import Call
from .deleting import DeleteOptions, Deleter
from .metadata import timestamp
from .occasion import WriteOccasion
from .reading import not_found
from .repository import Repository, object_of, prefix_of
from .security import refuse_node
from .selectors import LabelSelector, Requirement
from .writing import Writer

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_FINISHED = ("Succeeded", "Failed")


def _read(call: Call, name: str, what: str) -> Fields:
    fields = decode_body(call.request).fields
    problems = schema.check(fields, schema.get(name))
    if problems.malformed:
        raise errors.BadRequest(f"{what} cannot be read: {problems.malformed}")
    said = (fields.get("metadata") or {}).get("name") or call.target.name
    if said != call.target.name:
        raise errors.BadRequest(f"the name in the {what} does not match the name on the URL")
    return fields


class Binder:
    """POST pods/NAME/binding (P4: a pod is bound once)."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def bind(self, call: Call) -> Response:
        binding = _read(call, "io.k8s.api.core.v1.Binding", "Binding")
        target = binding.get("target") or {}
        node = target.get("name") or ""
        if not node or target.get("kind", "Node") not in ("", "Node"):
            raise errors.Invalid(
                'Binding "" is invalid: target.name: Required value',
                causes=[errors.Cause("FieldValueRequired", "Required value", "target.name")],
            )
        metadata = binding.get("metadata") or {}

        def build(old: Object, occasion: WriteOccasion) -> Body:
            new = old.fresh()
            _check_bindable(call, new, metadata)
            new.setdefault("spec", {})["nodeName"] = node
            for name in ("annotations", "labels"):
                if metadata.get(name):
                    new["metadata"][name] = {**(new["metadata"].get(name) or {}), **metadata[name]}
            _set_scheduled(new, timestamp(self._clock.now()))
            return Body(new, patched=True, trusted=True)

        await self._writer.change(call, build)
        return Response(201, encode(_SUCCESS))


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
    status = pod.setdefault("status", {})
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
        eviction = _read(call, "io.k8s.api.policy.v1.Eviction", "Eviction")
        said = eviction.get("deleteOptions") or {}
        conditions = said.get("preconditions") or {}
        dry = call.dry_run or said.get("dryRun") == ["All"]
        found = await self._repository.find(call.kind, call.target.namespace, call.target.name)
        if found.object is None:
            raise not_found(call.kind, call.target.name)
        pod = found.object.fresh()
        refused = refuse_node(call.user, call.target.action(), eviction, None, lambda *_: pod)
        if refused is not None:
            raise refused  # before the budget is charged
        if (pod.get("status") or {}).get("phase") not in (*_FINISHED, "Pending"):
            await self._charge_budget(call, pod, dry)
        options = DeleteOptions(
            said.get("gracePeriodSeconds"),
            str(conditions.get("uid") or ""),
            str(conditions.get("resourceVersion") or ""),
            said.get("propagationPolicy") or "",
            dry,
        )
        await self._deleter.remove(call, call.target.namespace, call.target.name, options)
        return Response(201, encode(_SUCCESS))

    async def _charge_budget(self, call: Call, pod: Fields, dry: bool) -> None:
        if self._budgets is None:
            return
        page = await self._repository.store.range(prefix_of(self._budgets, call.target.namespace))
        labels = pod["metadata"].get("labels") or {}
        covering = [o for o in map(object_of, page.entries) if _covers(o.fields.get("spec") or {}, labels)]
        if len(covering) > 1:
            raise errors.Internal(
                "This pod has more than one PodDisruptionBudget, which eviction does not support."
            )
        if covering:
            await self._charge(call, covering[0], pod["metadata"]["name"], dry)

    async def _charge(self, call: Call, budget: Object, pod: str, dry: bool) -> None:
        assert self._budgets is not None
        for _ in range(8):
            found = await self._repository.find(self._budgets, call.target.namespace, budget.name)
            if found.object is None:
                return
            fields = found.object.fresh()
            status = fields.setdefault("status", {})
            if (status.get("disruptionsAllowed") or 0) <= 0:
                raise _over_budget(budget.name, status)
            if dry:
                return
            status["disruptionsAllowed"] -= 1
            status.setdefault("disruptedPods", {})[pod] = timestamp(self._clock.now())
            write = Put(found.key, stored_form(fields))
            if isinstance(await self._repository.commit([found.compare], [write]), Committed):
                return
        raise errors.TooManyRequests("the disruption budget is being changed by many", retry_after_s=1)


def _over_budget(name: str, status: Fields) -> errors.TooManyRequests:
    text = (
        f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
        f"and has {status.get('currentHealthy', 0)} currently"
    )
    return errors.TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[errors.Cause("DisruptionBudget", text, "")],
    )


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


def _covers(spec: Fields, labels: dict[str, str]) -> bool:
    selector = spec.get("selector")
    return selector is not None and selector_of(selector).accepts(labels)


def selector_of(selector: dict[str, Any]) -> LabelSelector:
    """A label selector object as requirements."""
    needs = [
        Requirement(key, "in", frozenset([value]))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for need in selector.get("matchExpressions") or []:
        operator = _OPERATORS.get(need.get("operator"), "in")
        needs.append(Requirement(need.get("key", ""), operator, frozenset(need.get("values") or [])))
    return LabelSelector(tuple(needs))
