"""ValidatingAdmissionPolicy: what administrators demand of writes, as expressions.

    views      policies and bindings as typed values
    matching   which writes a policy is about
    judging    its expressions, asked about one write

A policy is in force where a binding names it. It is asked after everything else has changed the object: on
the spot if that is done in a moment, else aside, where users take turns (ASIDE5). Nobody is locked
out: policies and bindings themselves are never judged, and neither is what the server plants when it starts.

A policy counts when the server's cache has it, a moment after it was acknowledged, as upstream's do.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from allot.api import Kind, User, errors
from allot.api import field as wrong
from allot.store import Store

from ...reading.cache import Caches
from ...reading.history import Change
from ...registry import Registry
from ...requests.aside import Aside
from ...security.userinfo import user_info
from ...storing.repository import key_of, prefix_of
from ...storing.stored import object_of
from .. import Attempt
from . import matching
from .judging import BUDGET, BUDGET_AT_ONCE, Denied, Policy, Purse, are_few, problems
from .views import BindingSpec, binding_spec, policy_spec

GROUP = "admissionregistration.k8s.io"
_ERRORS: Mapping[str, type[errors.ApiError]] = {
    "": errors.Invalid,
    "Invalid": errors.Invalid,
    "Forbidden": errors.Forbidden,
    "Unauthorized": errors.Unauthorized,
    "RequestEntityTooLarge": errors.TooLarge,
}


class Policies:
    def __init__(
        self,
        store: Store,
        caches: Caches,
        registry: Registry,
        policies: Kind,
        bindings: Kind,
        server: User,
        aside: Aside,
    ) -> None:
        self._store = store
        self._aside = aside
        self._registry = registry
        self._server = server
        self._policies: dict[str, Policy] = {}
        self._bindings: dict[str, BindingSpec] = {}
        caches.made(policies).listeners.append(self._policy_changed)
        caches.made(bindings).listeners.append(self._binding_changed)

    def _policy_changed(self, change: Change) -> None:
        name = change.object.name
        self._policies.pop(name, None)
        if change.type != "DELETED":
            self._policies[name] = Policy(name, policy_spec(change.object.fields))

    def _binding_changed(self, change: Change) -> None:
        self._bindings.pop(change.object.name, None)
        if change.type != "DELETED":
            self._bindings[change.object.name] = binding_spec(change.object.fields)

    def are_none(self) -> bool:
        """Whether no write is judged."""
        return not self._bindings

    async def check_policy(self, attempt: Attempt) -> None:
        """A plugin for policies: expressions that cannot be read are refused."""
        if attempt.new is None or attempt.subresource:
            return
        found = await asyncio.to_thread(problems, policy_spec(attempt.new))
        if found:
            raise wrong.refusal(GROUP, "ValidatingAdmissionPolicy", attempt.name, found)

    def judge(self, attempt: Attempt) -> Awaitable[None] | None:
        """A plugin for every write."""
        if not self._bindings or attempt.kind.group == GROUP or attempt.context.user == self._server:
            return None
        return self._judge(attempt)

    async def _judge(self, attempt: Attempt) -> None:
        namespace = attempt.context.namespace() if attempt.kind.namespaced else None
        purse = Purse(BUDGET_AT_ONCE)
        for name, binding in sorted(self._bindings.items()):
            policy = self._policies.get(binding.policy_name)
            if policy is None or not matching.matches(policy.spec.match_constraints, attempt, namespace):
                continue
            if not matching.is_narrowed_to(binding.match_resources, attempt, namespace):
                continue
            values = _values(attempt, namespace)
            for denied in await self._asked(policy, binding, values, attempt, purse):
                self._act(attempt, policy.name, name, binding, denied)

    async def _asked(
        self,
        policy: Policy,
        binding: BindingSpec,
        values: Mapping[str, Any],
        attempt: Attempt,
        purse: Purse,
    ) -> list[Denied]:
        """`purse`: what this write may still spend where it is."""
        parameters: Sequence[Mapping[str, Any] | None] = [None]
        if policy.spec.param_kind is not None and binding.param_ref is not None:
            parameters = await self._parameters(policy, binding, attempt)
            if not parameters and binding.param_ref.parameter_not_found_action == "Deny":
                return [Denied("no params found for policy binding with `Deny` parameterNotFoundAction")]

        def ask() -> list[Denied]:
            return [
                one for said in parameters for one in policy.judge({**values, "params": said}, Purse(BUDGET))
            ]

        if purse.left > 0 and len(parameters) == 1 and are_few([values, parameters]):
            denied = policy.judge({**values, "params": parameters[0]}, purse)
            if not purse.is_short:
                return denied
            purse.left = 0
        return await self._aside.judged(attempt.context.user.name, ask)

    async def _parameters(
        self, policy: Policy, binding: BindingSpec, attempt: Attempt
    ) -> Sequence[Mapping[str, Any]]:
        wanted, where = policy.spec.param_kind, binding.param_ref
        assert wanted is not None and where is not None
        kind = self._registry.by_kind(wanted.api_version.rpartition("/")[0], wanted.kind)
        if kind is None:
            return []
        namespace = (where.namespace or attempt.namespace) if kind.namespaced else ""
        if where.name:
            entry = await self._store.get(key_of(kind, namespace, where.name))
            return [object_of(entry, kind).fields] if entry is not None else []
        page = await self._store.range(prefix_of(kind, namespace))
        found = [object_of(entry, kind) for entry in page.entries]
        selector = where.selector
        return [
            one.fields for one in found if selector is None or selector.selects(one.metadata.labels or {})
        ]

    def _act(self, attempt: Attempt, policy: str, binding: str, spec: BindingSpec, denied: Denied) -> None:
        if "Warn" in spec.validation_actions:
            attempt.context.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': "
                f"{denied.message}"
            )
        if "Deny" in spec.validation_actions:
            text = (
                f'{attempt.kind.resource} "{attempt.name}" is forbidden: ValidatingAdmissionPolicy '
                f"'{policy}' with binding '{binding}' denied request: {denied.message}"
            )
            raise _ERRORS.get(denied.reason, errors.Invalid)(
                text, group=attempt.kind.group, kind=attempt.kind.plural, name=attempt.name
            )


def _values(attempt: Attempt, namespace: Mapping[str, Any] | None) -> dict[str, Any]:
    kind, version = attempt.kind, attempt.context.version
    request = {
        "kind": {"group": kind.group, "version": version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": version, "resource": kind.plural},
        "subResource": attempt.subresource,
        "name": attempt.name,
        "namespace": attempt.namespace,
        "operation": attempt.operation,
        "userInfo": user_info(attempt.context.user),
    }
    return {
        "object": attempt.new,
        "oldObject": attempt.old,
        "request": request,
        "params": None,
        "namespaceObject": dict(namespace) if namespace is not None else None,
    }


__all__ = ["GROUP", "Policies"]
