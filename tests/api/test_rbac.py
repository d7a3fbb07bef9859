"""Roles and bindings: what is refused, what is filled in, what kubectl shows."""

from datetime import UTC, datetime

import pytest

from allot.api import rbac

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def errors(kind, new, old=None):
    rules = kind.rules
    found = rules.validate_create(new, None) if old is None else rules.validate_update(new, old, None)
    return [f"{error.path}: {error.text()}" for error in found]


def binding(**changed):
    return {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": rbac.GROUP}],
        **changed,
    }


def test_a_rule_says_what_it_is_about():
    role = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, {}]}
    assert errors(rbac.ROLE, role) == [
        "rules[1].verbs: Required value: verbs must contain at least one value",
        "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[1].resources: Required value: resource rules must supply at least one resource",
    ]


def test_paths_belong_to_the_cluster_and_stand_alone():
    urls = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    assert errors(rbac.CLUSTER_ROLE, {"rules": [urls]}) == []
    assert errors(rbac.ROLE, {"rules": [urls]}) == [
        'rules[0].nonResourceURLs: Invalid value: ["/metrics"]:'
        " namespaced rules cannot apply to non-resource URLs"
    ]
    assert errors(rbac.CLUSTER_ROLE, {"rules": [{**urls, "resources": ["pods"]}]}) == [
        'rules[0].nonResourceURLs: Invalid value: ["/metrics"]:'
        " rules cannot apply to both regular resources and non-resource URLs"
    ]


def test_an_aggregation_rule_selects_something():
    assert errors(rbac.CLUSTER_ROLE, {"aggregationRule": {}}) == [
        "aggregationRule.clusterRoleSelectors: Required value:"
        " at least one clusterRoleSelector required if aggregationRule is non-nil"
    ]
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    [found] = errors(rbac.CLUSTER_ROLE, {"aggregationRule": {"clusterRoleSelectors": [selector]}})
    assert found.startswith("aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: ")


def test_a_cluster_role_binding_binds_cluster_roles_only():
    ref = {"apiGroup": rbac.GROUP, "kind": "Role", "name": "r"}
    assert errors(rbac.ROLE_BINDING, binding(roleRef=ref)) == []
    assert errors(rbac.CLUSTER_ROLE_BINDING, binding(roleRef=ref)) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'
    ]


@pytest.mark.parametrize(
    ("subject", "wrong"),
    [
        ({"kind": "User", "name": "ann"}, 'subjects[0].apiGroup: Unsupported value: ""'),
        ({"kind": "Robot", "name": "r"}, 'subjects[0].kind: Unsupported value: "Robot"'),
        ({"kind": "ServiceAccount", "name": "bot"}, "subjects[0].namespace: Required value"),
        ({"kind": "ServiceAccount", "name": "B!", "namespace": "n"}, "subjects[0].name: Invalid value"),
        ({"kind": "User", "apiGroup": rbac.GROUP}, "subjects[0].name: Required value"),
    ],
)
def test_a_subject_is_complete(subject, wrong):
    [found] = errors(rbac.CLUSTER_ROLE_BINDING, binding(subjects=[subject]))
    assert found.startswith(wrong)


def test_what_is_bound_never_changes():
    other = {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    [found] = errors(rbac.ROLE_BINDING, binding(roleRef=other), binding())
    assert found.endswith("cannot change roleRef")
    assert errors(rbac.ROLE_BINDING, binding(subjects=[]), binding()) == []


def test_the_api_group_is_filled_in_where_it_is_obvious():
    fields = {
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"}],
    }
    rbac.ROLE_BINDING.versions[0].default(fields, NOW)
    assert fields["roleRef"]["apiGroup"] == rbac.GROUP
    assert [subject.get("apiGroup") for subject in fields["subjects"]] == [rbac.GROUP, None]


def test_kubectl_shows_who_is_bound_to_what():
    subjects = [
        {"kind": "User", "name": "ann"},
        {"kind": "User", "name": "bob"},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "dev"},
    ]
    cells = rbac.ROLE_BINDING.cells(binding(subjects=subjects), "3d")
    assert cells == ["b", "ClusterRole/view", "3d", "ann, bob", "", "dev/bot"]
