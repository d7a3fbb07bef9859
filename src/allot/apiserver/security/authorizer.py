"""May this user do this? Every authorizer in turn, and the words of a refusal.

    system:masters   above every role; nothing of ours is in it (`identities`)
    nodes            by what runs on them (`node_authorizer`)
    roles            everybody else, and what nodes share with everybody (`rbac`)

The first that allows decides. Nobody can forbid what another allows, so the
order matters for speed alone.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from allot.api import Action, Decision, User, errors

from .identities import MASTERS, node_of
from .narrowing import wanted_value
from .node_authorizer import NodeAuthorizer
from .rbac import GROUP as RBAC_GROUP
from .rbac import Policy
from .rules import EVERYTHING, Rule, quoted

_SUPERUSER = Decision(True, f"Superuser: member of {MASTERS}")


class Authorizer:
    OBSERVED = frozenset(
        [*((RBAC_GROUP, resource) for resource in Policy.OBSERVED), *NodeAuthorizer.OBSERVED]
    )
    """(group, resource) of the objects that decide; of others it need not be told."""

    def __init__(self) -> None:
        self.policy = Policy()
        self.nodes = NodeAuthorizer()

    def observe(
        self, group: str, resource: str, namespace: str, name: str, fields: Mapping[str, Any] | None
    ) -> None:
        """An object is now `fields` (in its stored form), or is gone. See OBSERVED."""
        if group == RBAC_GROUP:
            self.policy.observe(resource, namespace, name, fields)
        else:
            self.nodes.observe(group, resource, namespace, name, fields)

    def authorize(self, user: User, action: Action) -> Decision:
        if MASTERS in user.groups:
            return _SUPERUSER
        if action.field_selector and not action.name:
            action = _named_by_selector(action)
        refusal = ""
        if node_of(user) is not None:
            decision = self.nodes.authorize(user, action)
            if decision.allowed:
                return decision
            refusal = decision.reason
        decision = self.policy.authorize(user, action)
        if decision.allowed or not refusal:
            return decision
        return Decision(False, "; ".join(reason for reason in (refusal, decision.reason) if reason))

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """The user's rules, and why the list may be incomplete."""
        if MASTERS in user.groups:
            return list(EVERYTHING), []
        problems = self.policy.unresolved(user, namespace)
        if node_of(user) is not None:
            problems.append("node authorizer does not support user rule resolution")
        return self.policy.rules_for(user, namespace), problems


def refusal(user: User, action: Action, decision: Decision) -> errors.Forbidden:
    """The 403 that a caller reads."""
    if action.path:
        text = f"User {quoted(user.name)} cannot {action.verb} path {quoted(action.path)}"
        return errors.Forbidden("forbidden: " + _with_reason(text, decision))
    resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
    text = (
        f"User {quoted(user.name)} cannot {action.verb} resource {quoted(resource)}"
        f" in API group {quoted(action.group)}"
    )
    text += f" in the namespace {quoted(action.namespace)}" if action.namespace else " at the cluster scope"
    what = f"{action.resource}.{action.group}" if action.group else action.resource
    if action.name:
        what = f"{what} {quoted(action.name)}"
    return errors.Forbidden(
        f"{what} is forbidden: {_with_reason(text, decision)}",
        group=action.group,
        kind=action.resource,
        name=action.name,
    )


def _with_reason(text: str, decision: Decision) -> str:
    return f"{text}: {decision.reason}" if decision.reason else text


def _named_by_selector(action: Action) -> Action:
    """Listing with metadata.name=x asks for x alone, so a right to x is enough."""
    if action.verb in ("list", "watch"):
        name = wanted_value(action.field_selector, "metadata.name")
        if name:
            return replace(action, name=name)
    return action
