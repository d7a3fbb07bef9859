"""Nobody gives away what they do not have.

Whoever writes a role must hold every rule in it, or the verb `escalate` on it;
whoever writes a binding must hold every rule of the role it binds, or the verb
`bind` on that role. Without this, the right to write roles is every right.

Writes that only let an object go (its finalizers and owners) are not asked.
What a role holds is what it would hold once stored, with whatever is stored together with it (`roles`); what
a writer holds is what they hold before.
An aggregation rule gathers whatever will one day carry a label, so only someone
who holds everything may write one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from allot.api import Action, Decision, User, errors

from .identities import MASTERS
from .rbac import GROUP, Policy, RoleNotFound, read_role_ref
from .rules import EVERYTHING, Rule, compact, missing, quoted

Fields = Mapping[str, Any]
Authorize = Callable[[User, Action], Decision]


def refuse_escalation(
    policy: Policy,
    authorize: Authorize,
    user: User,
    action: Action,
    new: Fields,
    old: Fields | None,
    roles: Policy | None = None,
) -> errors.ApiError | None:
    """Why this create or update of a role or binding may not happen, or None.

    `new` is what would be stored; `old` is what is stored, if anything is. `roles` are those that may be
    bound, where they are not the ones that `policy` decides by.
    """
    if action.group != GROUP or action.subresource or MASTERS in user.groups or _only_lets_go(new, old):
        return None
    match action.resource:
        case "roles" | "clusterroles":
            return _refuse_role(policy, authorize, user, action, new, old)
        case "rolebindings" | "clusterrolebindings":
            return _refuse_binding(policy, authorize, user, action, new, roles or policy)
    return None


def _refuse_role(
    policy: Policy, authorize: Authorize, user: User, action: Action, new: Fields, old: Fields | None
) -> errors.ApiError | None:
    name = new["metadata"].get("name", "")
    escalate = Action("escalate", GROUP, action.resource, "", action.namespace, name, action.version)
    if authorize(user, escalate).allowed:
        return None
    held = policy.rules_for(user, action.namespace)
    if (_gathers(new) or _gathers(old or {})) and missing(held, EVERYTHING):
        return _forbidden(action, name, "must have cluster-admin privileges to use the aggregationRule")
    rules = [Rule.read(rule) for rule in new.get("rules") or ()]
    return _refuse_rules(policy, user, action, name, held, rules)


def _refuse_binding(
    policy: Policy, authorize: Authorize, user: User, action: Action, new: Fields, roles: Policy
) -> errors.ApiError | None:
    name = new["metadata"].get("name", "")
    ref = read_role_ref(new)
    resource = "roles" if ref.kind == "Role" else "clusterroles"
    bind = Action("bind", GROUP, resource, "", action.namespace, ref.name, action.version)
    if authorize(user, bind).allowed:
        return None
    rules = roles.rules_of(ref, action.namespace)
    if rules is None:
        return errors.NotFound(str(RoleNotFound(ref)), group=GROUP, kind=ref.kind.lower(), name=ref.name)
    held = policy.rules_for(user, action.namespace)
    return _refuse_rules(policy, user, action, name, held, rules)


def _refuse_rules(
    policy: Policy, user: User, action: Action, name: str, held: Sequence[Rule], wanted: Sequence[Rule]
) -> errors.ApiError | None:
    lacking = missing(held, wanted)
    if not lacking:
        return None
    groups = " ".join(quoted(group) for group in user.groups)
    listed = "\n".join(sorted({str(rule) for rule in compact(lacking)}))
    text = (
        f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions"
        f" not currently held:\n{listed}"
    )
    unresolved = policy.unresolved(user, action.namespace)
    if unresolved:
        text += f"; resolution errors: [{', '.join(unresolved)}]"
    return _forbidden(action, name, text)


def _forbidden(action: Action, name: str, text: str) -> errors.Forbidden:
    return errors.Forbidden(
        f"{action.resource}.{GROUP} {quoted(name)} is forbidden: {text}",
        group=GROUP,
        kind=action.resource,
        name=name,
    )


def _gathers(role: Fields) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_lets_go(new: Fields, old: Fields | None) -> bool:
    return old is not None and _settled(new) == _settled(old)


def _settled(fields: Fields) -> dict[str, Any]:
    """What is left of an object without what the garbage collector and the server write."""
    bookkeeping = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in fields["metadata"].items() if key not in bookkeeping}
    return {**fields, "metadata": metadata}
