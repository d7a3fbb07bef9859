"""Nobody gives away what they do not have."""

import pytest

from allot.api import Action, errors
from allot.apiserver.security import Authorizer, identities, refuse_escalation

from .builders import GROUP, binding, role

READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
READ_SECRETS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}
WRITE_ROLES = {
    "verbs": ["create", "update", "patch"],
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
}
ANN = identities.user("ann", "team")


def world(*rules, roles=()):
    """A cluster in which ann holds `rules` everywhere."""
    authorizer = Authorizer()
    own = [role("ann", list(rules)), binding("ann", "ClusterRole", "ann", [("User", "ann")])]
    for fields in (*own, *roles):
        metadata = fields["metadata"]
        plural = fields["kind"].lower() + "s"
        authorizer.observe(GROUP, plural, metadata.get("namespace", ""), metadata["name"], fields)
    return authorizer


def attempt(authorizer, new, old=None, user=ANN):
    namespace = new["metadata"].get("namespace", "")
    verb = "create" if old is None else "update"
    action = Action(verb, GROUP, new["kind"].lower() + "s", "", namespace, new["metadata"]["name"])
    return refuse_escalation(authorizer.policy, authorizer.authorize, user, action, new, old)


def test_a_role_may_hold_what_its_writer_holds():
    assert attempt(world(READ_PODS, WRITE_ROLES), role("r", [READ_PODS], "dev")) is None


def test_a_role_may_not_hold_more_and_the_refusal_lists_what_is_missing():
    refused = attempt(world(READ_PODS, WRITE_ROLES), role("r", [READ_PODS, READ_SECRETS], "dev"))
    assert isinstance(refused, errors.Forbidden)
    assert refused.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "ann"'
        ' (groups=["team" "system:authenticated"])'
        " is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )


def test_a_right_to_one_object_is_not_a_right_to_all_of_them():
    one = {**READ_SECRETS, "resourceNames": ["mine"]}
    authorizer = world(one, WRITE_ROLES)
    assert attempt(authorizer, role("r", [one], "dev")) is None
    assert attempt(authorizer, role("r", [READ_SECRETS], "dev")) is not None


def test_escalate_lifts_the_limit():
    escalate = {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"]}
    assert attempt(world(WRITE_ROLES, escalate), role("r", [READ_SECRETS])) is None
    assert attempt(world(WRITE_ROLES, escalate), role("r", [READ_SECRETS], "dev")) is not None


def test_binding_a_role_takes_its_rights_or_the_verb_bind():
    strong = role("strong", [READ_SECRETS])
    wanted = binding("b", "ClusterRole", "strong", [("User", "bob")], "dev")
    assert attempt(world(READ_SECRETS, WRITE_ROLES, roles=[strong]), wanted) is None
    assert isinstance(attempt(world(WRITE_ROLES, roles=[strong]), wanted), errors.Forbidden)

    bind = {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"]}
    assert attempt(world({**bind, "resourceNames": ["strong"]}, roles=[strong]), wanted) is None
    assert attempt(world({**bind, "resourceNames": ["weak"]}, roles=[strong]), wanted) is not None


def test_rights_in_one_namespace_do_not_bind_in_another():
    """ann is an admin of dev and may write bindings in prod, where she holds nothing."""
    strong = role("strong", [READ_SECRETS])
    authorizer = world(
        WRITE_ROLES, roles=[strong, binding("dev", "ClusterRole", "strong", [("User", "ann")], "dev")]
    )
    assert attempt(authorizer, binding("b", "ClusterRole", "strong", [("User", "ann")], "dev")) is None
    assert attempt(authorizer, binding("b", "ClusterRole", "strong", [("User", "ann")], "prod")) is not None


def test_binding_a_role_that_does_not_exist_is_not_found():
    refused = attempt(world(WRITE_ROLES), binding("b", "Role", "gone", [], "dev"))
    assert isinstance(refused, errors.NotFound)
    assert refused.message == 'role.rbac.authorization.k8s.io "gone" not found'


def test_an_aggregation_rule_needs_every_right():
    gathering = role("g", [], gathers={"x": "y"})
    refused = attempt(world(WRITE_ROLES), gathering)
    assert refused is not None
    assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")
    everything = [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]
    assert attempt(world(*everything), gathering) is None


def test_an_aggregation_rule_cannot_be_taken_away_by_less():
    gathering = role("g", [], gathers={"x": "y"})
    assert attempt(world(WRITE_ROLES), role("g", []), gathering) is not None


def test_letting_go_is_not_giving_away():
    """The garbage collector takes a finalizer from a role that is stronger than itself."""
    old = role("r", [READ_SECRETS])
    new = {**old, "metadata": {**old["metadata"], "finalizers": [], "resourceVersion": "2"}}
    old = {**old, "metadata": {**old["metadata"], "finalizers": ["f"], "resourceVersion": "1"}}
    assert attempt(world(WRITE_ROLES), new, old) is None
    assert attempt(world(WRITE_ROLES), {**new, "rules": [READ_SECRETS, READ_PODS]}, old) is not None


@pytest.mark.parametrize("fields", [role("r", [READ_SECRETS]), binding("b", "ClusterRole", "ann", [])])
def test_the_group_above_all_roles_is_not_asked(fields):
    root = identities.user("root", identities.MASTERS)
    assert attempt(world(), fields, user=root) is None
