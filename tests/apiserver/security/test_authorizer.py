"""All authorizers together, the default roles, and the words of a refusal."""

import pytest

from allot.api import Action, Decision, User
from allot.apiserver.security import Authorizer, bootstrap_objects, identities, reconciled, refusal

from .builders import GROUP


@pytest.fixture(scope="module")
def cluster():
    authorizer = Authorizer()
    for fields in bootstrap_objects():
        metadata = fields["metadata"]
        plural = fields["kind"].lower() + "s"
        authorizer.observe(GROUP, plural, metadata.get("namespace", ""), metadata["name"], fields)
    return authorizer


def may(cluster, user, verb, what, namespace="", name="", selector=""):
    """`what` is resource[.group][/subresource], or a path."""
    if what.startswith("/"):
        return cluster.authorize(user, Action(verb, path=what)).allowed
    resource, _, subresource = what.partition("/")
    resource, _, group = resource.partition(".")
    return cluster.authorize(
        user, Action(verb, group, resource, subresource, namespace, name, field_selector=selector)
    ).allowed


CLAIMS = "resourceclaims.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"


def test_the_admin_may_do_everything_through_a_binding(cluster):
    assert may(cluster, identities.ADMIN, "delete", "nodes")
    assert may(cluster, identities.ADMIN, "get", "/metrics")
    decision = cluster.authorize(identities.ADMIN, Action("delete", resource="nodes"))
    assert 'ClusterRoleBinding "allot:cluster-admins"' in decision.reason


def test_nothing_of_ours_is_above_the_roles():
    ours = [identities.ADMIN, identities.SCHEDULER, identities.controller("x"), identities.node("n")]
    assert not any(identities.MASTERS in user.groups for user in ours)


def test_anybody_known_may_discover_and_ask_about_themselves_and_nothing_else(cluster):
    ann = identities.user("ann")
    assert may(cluster, ann, "get", "/apis/apps/v1")
    assert may(cluster, ann, "get", "/openapi/v3")
    assert may(cluster, ann, "create", "selfsubjectaccessreviews.authorization.k8s.io")
    assert not may(cluster, ann, "get", "pods", "default")
    assert not may(cluster, ann, "get", "/metrics")
    assert not may(cluster, ann, "create", "subjectaccessreviews.authorization.k8s.io")


def test_the_scheduler_places_and_allocates(cluster):
    scheduler = identities.SCHEDULER
    for verb in ("get", "list", "watch", "update", "patch", "create", "delete"):
        assert may(cluster, scheduler, verb, CLAIMS, "dev")
    assert may(cluster, scheduler, "update", f"{CLAIMS}/status", "dev")
    assert may(cluster, scheduler, "patch", f"{CLAIMS}/binding")
    assert may(cluster, scheduler, "list", SLICES)
    assert may(cluster, scheduler, "watch", "devicetaintrules.resource.k8s.io")
    assert may(cluster, scheduler, "create", "pods/binding", "dev")
    assert may(cluster, scheduler, "update", "leases.coordination.k8s.io", "kube-system", "kube-scheduler")
    assert not may(cluster, scheduler, "update", SLICES)
    assert not may(cluster, scheduler, "get", "secrets", "dev", "s")
    assert not may(cluster, scheduler, "update", "leases.coordination.k8s.io", "kube-system", "other")


def test_each_controller_has_what_it_needs_and_not_what_another_needs(cluster):
    claims = identities.controller("resource-claim-controller")
    taints = identities.controller("device-taint-eviction-controller")
    assert may(cluster, claims, "update", f"{CLAIMS}/binding")
    assert may(cluster, claims, "patch", "pods/status", "dev")
    assert not may(cluster, claims, "delete", "pods", "dev")
    assert may(cluster, taints, "delete", "pods", "dev")
    assert may(cluster, taints, "patch", "devicetaintrules.resource.k8s.io/status")
    assert not may(cluster, taints, "update", f"{CLAIMS}/binding")
    assert may(
        cluster, identities.controller("generic-garbage-collector"), "delete", "anything.example.com", "x"
    )


def bound(cluster, user, role, namespace):
    fields = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user.name}],
    }
    cluster.observe(GROUP, "rolebindings", namespace, f"{user.name}-{role}", fields)


def test_view_reads_claims_and_edit_writes_them_but_not_their_status(cluster):
    viewer, editor, admin = (identities.user(name) for name in ("viewer", "editor", "boss"))
    bound(cluster, viewer, "view", "dev")
    bound(cluster, editor, "edit", "dev")
    bound(cluster, admin, "admin", "dev")
    assert may(cluster, viewer, "get", CLAIMS, "dev")
    assert not may(cluster, viewer, "get", "secrets", "dev")
    assert not may(cluster, viewer, "create", CLAIMS, "dev")
    for verb, what in (("create", CLAIMS), ("get", CLAIMS), ("get", "secrets")):
        assert may(cluster, editor, verb, what, "dev")
    for verb, what in (("update", f"{CLAIMS}/status"), ("create", SLICES), ("create", "roles." + GROUP)):
        assert not may(cluster, editor, verb, what, "dev")
    assert may(cluster, admin, "create", "roles." + GROUP, "dev")
    assert may(cluster, admin, "get", CLAIMS, "dev")


def test_the_group_above_all_roles_exists_for_broken_roles():
    assert (
        Authorizer()
        .authorize(User("root", (identities.MASTERS,)), Action("delete", resource="nodes"))
        .allowed
    )


def test_a_list_narrowed_to_one_name_needs_a_right_to_that_name_only():
    authorizer = Authorizer()
    rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]}
    authorizer.observe(GROUP, "clusterroles", "", "r", {"rules": [rule]})
    bound(authorizer, identities.user("ann"), "r", "dev")
    ann = identities.user("ann")
    assert may(authorizer, ann, "list", "secrets", "dev", selector="metadata.name=mine")
    assert not may(authorizer, ann, "list", "secrets", "dev", selector="metadata.name=yours")
    assert not may(authorizer, ann, "list", "secrets", "dev", selector="metadata.name!=mine")
    assert not may(authorizer, ann, "list", "secrets", "dev", selector="metadata.name=mine,nonsense")
    assert not may(authorizer, ann, "list", "secrets", "dev")


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (
            Action("get", "", "pods", "", "dev", "web"),
            'pods "web" is forbidden: User "ann" cannot get resource "pods" in API group ""'
            ' in the namespace "dev"',
        ),
        (
            Action("update", "apps", "deployments", "scale", "dev", "web"),
            'deployments.apps "web" is forbidden: User "ann" cannot update resource "deployments/scale"'
            ' in API group "apps" in the namespace "dev"',
        ),
        (
            Action("list", "", "nodes"),
            'nodes is forbidden: User "ann" cannot list resource "nodes" in API group ""'
            " at the cluster scope",
        ),
        (Action("get", path="/metrics"), 'forbidden: User "ann" cannot get path "/metrics"'),
    ],
)
def test_a_refusal_says_who_cannot_do_what_where(action, text):
    error = refusal(identities.user("ann"), action, Decision(False))
    assert (error.code, error.message) == (403, text)
    reasoned = refusal(identities.user("ann"), action, Decision(False, "because"))
    assert reasoned.message == f"{text}: because"


def test_every_default_binding_binds_a_role_that_exists():
    roles = {
        (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in bootstrap_objects()
    }
    for fields in bootstrap_objects():
        if "roleRef" in fields:
            ref = fields["roleRef"]
            where = fields["metadata"].get("namespace", "") if ref["kind"] == "Role" else ""
            assert (ref["kind"], where, ref["name"]) in roles


def test_the_role_of_nodes_is_bound_to_nobody(cluster):
    """Their rights come one by one, by what runs on them."""
    impostor = User("system:node:n1", ("system:authenticated",))
    assert not may(cluster, impostor, "get", "nodes", "", "n1")
    assert may(cluster, identities.node("n1"), "get", "nodes", "", "n1")
    assert not may(cluster, identities.node("n1"), "get", "nodes", "", "n2")


def test_defaults_that_are_as_they_should_be_are_left_alone():
    assert [reconciled(fields, fields) for fields in bootstrap_objects() if reconciled(fields, fields)] == []


def test_an_upgrade_adds_what_is_missing_and_keeps_what_somebody_added():
    wanted = {o["metadata"]["name"]: o for o in bootstrap_objects() if o["kind"] == "ClusterRole"}[
        "system:kube-scheduler"
    ]
    own = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    stored = {
        **wanted,
        "rules": [own, *wanted["rules"][2:]],
        "metadata": {"name": "system:kube-scheduler", "uid": "u"},
    }
    updated = reconciled(stored, wanted)
    assert updated is not None
    assert updated["rules"] == [own, *wanted["rules"][2:], *wanted["rules"][:2]]
    assert updated["metadata"]["uid"] == "u"
    assert updated["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert reconciled(updated, wanted) is None


def test_somebody_may_opt_out_of_upgrades():
    wanted = bootstrap_objects()[-1]
    annotations = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    stored = {**wanted, "subjects": [], "metadata": {**wanted["metadata"], "annotations": annotations}}
    assert reconciled(stored, wanted) is None


def test_lost_subjects_of_a_default_binding_come_back():
    wanted = bootstrap_objects()[-1]
    stored = {key: value for key, value in wanted.items() if key != "subjects"}
    updated = reconciled(stored, wanted)
    assert updated is not None and updated["subjects"] == wanted["subjects"]
