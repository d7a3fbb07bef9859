"""What a caller may not write although the request line is theirs to send."""

from allot.api import Action, Kind, User, errors, rbac

from ..deciding.pools import Pools, pool_of
from ..security import Authorizer, owner_of_pool, refuse_escalation, refuse_node
from ..security.identities import node_of
from ..security.rbac import Key, Policy
from ..security.tokens import Lookup
from ..storing.pending import changes_pending, compared_beneath
from ..storing.repository import prefix_of
from ..storing.stored import object_of
from . import Attempt, Plugin

_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}


def _action(attempt: Attempt) -> Action:
    return Action(
        _VERBS[attempt.operation],
        attempt.kind.group,
        attempt.kind.plural,
        attempt.subresource,
        attempt.namespace,
        attempt.name,
        attempt.context.version,
    )


def node_restriction(lookup: Lookup) -> Plugin:
    """Nodes touch only what is theirs (S5)."""

    def admit(attempt: Attempt) -> None:
        if node_of(attempt.context.user) is None:
            return
        refused = refuse_node(attempt.context.user, _action(attempt), attempt.new, attempt.old, lookup)
        if refused is not None:
            raise refused

    return admit


def own_pools(pools: Pools, lookup: Lookup) -> Plugin:
    """Nodes publish in their own pools (S5). Whose a pool is holds until the slice is stored."""

    async def admit(attempt: Attempt) -> None:
        node = node_of(attempt.context.user)
        if not node or attempt.new is None:
            return
        driver, pool = pool_of(attempt.new)
        seen = pools.unchanged((driver, pool))
        if not compared_beneath(seen):
            attempt.context.compares.append(seen)
        owner = owner_of_pool(node, pool, pools.publishers((driver, pool)), lookup)
        if owner is not None:
            what = f'{attempt.kind.resource} "{attempt.name}"'
            where = f'pool "{pool}" of driver "{driver}"'
            raise errors.Forbidden(
                f'{what} is forbidden: node "{node}" cannot publish in {where}, which belongs to {owner}',
                group=attempt.kind.group,
                kind=attempt.kind.plural,
                name=attempt.name,
            )

    return admit


def no_escalation(authorizer: Authorizer, server: User) -> Plugin:
    """Nobody grants what they do not hold but `server`, the server itself, which plants roles.

    The whole user is compared: whoever comes from outside under that name is in a group.
    """

    async def admit(attempt: Attempt) -> None:
        user = attempt.context.user
        if attempt.new is None or user == server:
            return
        policy, roles = authorizer.policy, _roles_in_transaction(authorizer.policy)
        refused = refuse_escalation(
            policy, authorizer.authorize, user, _action(attempt), attempt.new, attempt.old, roles
        )
        if refused is not None:
            raise refused

    return admit


def _roles_in_transaction(policy: Policy) -> Policy | None:
    """As the members before this one left them: a role that was raised is bound with all that it has now."""
    changes = [
        (_key(key, kind), object_of(entry, kind).fields if entry is not None else None)
        for kind in (rbac.ROLE, rbac.CLUSTER_ROLE)
        for key, entry in changes_pending(prefix_of(kind))
    ]
    return policy.with_roles(changes) if changes else None


def _key(stored: str, kind: Kind) -> Key:
    namespace, _, name = stored.removeprefix(prefix_of(kind)).rpartition("/")
    return Key(namespace, name)
