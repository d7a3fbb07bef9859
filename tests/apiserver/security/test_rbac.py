"""Who may do what, by roles and bindings: stories, then the index beside a naive reading."""

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Action, User
from allot.apiserver.security import identities
from allot.apiserver.security.rbac import Policy
from allot.apiserver.security.rules import Rule, compact, missing

from .builders import binding, role

ANN = identities.user("ann", "team")


def policy(*observed):
    found = Policy()
    for fields in observed:
        tell(found, fields)
    return found


def tell(found, fields, gone=False):
    metadata = fields["metadata"]
    resource = fields["kind"].lower() + "s"
    found.observe(resource, metadata.get("namespace", ""), metadata["name"], None if gone else fields)


def may(found, user, verb, resource, namespace="", name="", group="", subresource=""):
    return found.authorize(user, Action(verb, group, resource, subresource, namespace, name)).allowed


def test_a_role_binding_counts_in_its_namespace_and_nowhere_else():
    found = policy(
        role("reader", [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], "dev"),
        binding("ann-reads", "Role", "reader", [("User", "ann")], "dev"),
    )
    assert may(found, ANN, "get", "pods", "dev")
    assert not may(found, ANN, "get", "pods", "prod")
    assert not may(found, ANN, "get", "pods")
    assert not may(found, ANN, "delete", "pods", "dev")


def test_a_cluster_role_bound_in_a_namespace_gives_rights_only_there():
    found = policy(
        role("reader", [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]),
        binding("team-rules", "ClusterRole", "reader", [("Group", "team")], "dev"),
    )
    assert may(found, ANN, "delete", "secrets", "dev")
    assert not may(found, ANN, "delete", "secrets", "prod")


def test_the_reason_names_the_binding_the_role_and_the_subject():
    found = policy(
        role("reader", [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
        binding("team-reads", "ClusterRole", "reader", [("Group", "team")]),
    )
    decision = found.authorize(ANN, Action("get", resource="pods", namespace="dev"))
    assert decision.reason == (
        'RBAC: allowed by ClusterRoleBinding "team-reads" of ClusterRole "reader" to Group "team"'
    )


def test_a_binding_of_a_missing_role_gives_nothing_and_says_so():
    found = policy(binding("b", "ClusterRole", "gone", [("User", "ann")]))
    decision = found.authorize(ANN, Action("get", resource="pods"))
    assert not decision.allowed
    assert decision.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_a_service_account_subject_without_a_namespace_is_one_of_the_bindings_own():
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    found = policy(
        role("reader", [rule], "dev"),
        binding("b", "Role", "reader", [("ServiceAccount", "bot")], "dev"),
    )
    assert may(found, identities.service_account("dev", "bot"), "get", "pods", "dev")
    assert not may(found, identities.service_account("prod", "bot"), "get", "pods", "dev")


def test_resource_names_allow_those_objects_only():
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]}
    found = policy(role("r", [rule]), binding("b", "ClusterRole", "r", [("User", "ann")]))
    assert may(found, ANN, "get", "secrets", "dev", "a")
    assert not may(found, ANN, "get", "secrets", "dev", "c")
    assert not may(found, ANN, "get", "secrets", "dev")


def test_subresources_are_named_or_gathered_by_a_star():
    rules = [
        {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]},
    ]
    found = policy(role("r", rules), binding("b", "ClusterRole", "r", [("User", "ann")]))
    assert may(found, ANN, "get", "deployments", "dev", group="apps", subresource="scale")
    assert not may(found, ANN, "get", "deployments", "dev", group="apps")
    assert may(found, ANN, "get", "pods", "dev", subresource="log")
    assert not may(found, ANN, "get", "pods", "dev")


def test_paths_end_in_a_star_or_match_as_they_are():
    rules = [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/debug/*"]}]
    found = policy(role("r", rules), binding("b", "ClusterRole", "r", [("User", "ann")]))
    allowed = [
        path
        for path in ("/healthz", "/healthz/etcd", "/debug/", "/debug/pprof", "/debug", "/metrics")
        if found.authorize(ANN, Action("get", path=path)).allowed
    ]
    assert allowed == ["/healthz", "/debug/", "/debug/pprof"]


def test_an_aggregate_follows_its_parts_at_once():
    """RBAC3, through two levels: admin gathers edit, which gathers what carries its label."""
    secrets = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
    found = policy(
        role("admin", [], gathers={"to-admin": "true"}),
        role("edit", [secrets], gathers={"to-edit": "true"}, labels={"to-admin": "true"}),
        binding("b", "ClusterRole", "admin", [("User", "ann")]),
    )
    assert not may(found, ANN, "get", "secrets", "dev")  # the stored rules of an aggregate do not count

    part = role("part", [secrets], labels={"to-edit": "true"})
    tell(found, part)
    assert may(found, ANN, "get", "secrets", "dev")

    tell(found, part, gone=True)
    assert not may(found, ANN, "get", "secrets", "dev")


def test_an_aggregate_gathers_cluster_roles_only():
    """Whoever may write roles in a namespace must not reach into the cluster's."""
    secrets = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
    found = policy(
        role("admin", [], gathers={"part": "1"}),
        role("trojan", [secrets], "dev", labels={"part": "1"}),
        binding("b", "ClusterRole", "admin", [("User", "ann")]),
    )
    assert not may(found, ANN, "get", "secrets", "dev")


def test_aggregates_that_gather_each_other_end():
    found = policy(
        role("a", [], gathers={"to-a": "true"}, labels={"to-a": "true", "to-b": "true"}),
        role("b", [], gathers={"to-b": "true"}, labels={"to-a": "true"}),
    )
    assert found.aggregated("a") == ()


def test_a_kept_answer_is_dropped_when_a_binding_goes():
    bound = binding("b", "ClusterRole", "r", [("User", "ann")])
    found = policy(role("r", [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]), bound)
    assert may(found, ANN, "get", "pods")
    tell(found, bound, gone=True)
    assert not may(found, ANN, "get", "pods")


def test_a_kept_answer_is_that_of_a_user_with_the_same_groups():
    """Two certificates may give one name and different groups."""
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    found = policy(role("r", [rule]), binding("b", "ClusterRole", "r", [("Group", "team")]))
    assert may(found, ANN, "get", "pods")
    assert not may(found, identities.user("ann"), "get", "pods")


# The index beside a reading of every object for every question.

# Few names and few values, so that bindings meet roles and rules meet questions often.
NAMES = st.sampled_from(["a", "b"])
NAMESPACES = st.sampled_from(["", "n1"])


def some(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


RULE = st.fixed_dictionaries(
    {
        "verbs": some(["get", "list", "*"]),
        "apiGroups": some(["", "apps", "*"]),
        "resources": some(["pods", "pods/log", "*/log", "*"]),
    },
    optional={"resourceNames": some(["x", "y"])},
)
ROLES = st.builds(
    role,
    NAMES,
    st.lists(RULE, min_size=1, max_size=2),
    NAMESPACES,
    labels=st.sampled_from([{}, {"part": "1"}]),
    gathers=st.sampled_from([None, None, {"part": "1"}]),
).filter(lambda fields: fields["kind"] == "ClusterRole" or "aggregationRule" not in fields)
SUBJECTS = st.lists(
    st.sampled_from([("User", "ann"), ("Group", "team"), ("ServiceAccount", "bot", "n1")]),
    min_size=1,
    max_size=2,
)
BINDINGS = st.builds(
    lambda kind, ref, subjects, namespace: binding(
        "b", kind if namespace else "ClusterRole", ref, subjects, namespace
    ),
    st.sampled_from(["Role", "ClusterRole"]),
    NAMES,
    SUBJECTS,
    NAMESPACES,
)
GONE = st.sampled_from([False, False, True])
EVENTS = st.lists(st.tuples(st.one_of(ROLES, BINDINGS), GONE), min_size=4, max_size=12)
USERS = st.sampled_from([ANN, User("ann"), User("bob", ("team",)), identities.service_account("n1", "bot")])
ACTIONS = st.builds(
    Action,
    verb=st.sampled_from(["get", "list"]),
    group=st.sampled_from(["", "apps"]),
    resource=st.sampled_from(["pods", "nodes"]),
    subresource=st.sampled_from(["", "log"]),
    namespace=st.sampled_from(["", "n1", "n2"]),
    name=st.sampled_from(["", "x", "z"]),
)


@given(EVENTS, st.lists(st.tuples(USERS, ACTIONS), min_size=4, max_size=8))
@settings(max_examples=200)
def test_the_index_answers_as_a_reading_of_all_objects_would(events, questions):
    """RBAC1, RBAC2, RBAC3, with questions between the events so that kept answers are put to the test."""
    found, world = Policy(), {}
    for fields, gone in events:
        key = (fields["kind"], fields["metadata"].get("namespace", ""), fields["metadata"]["name"])
        tell(found, fields, gone)
        if gone:
            world.pop(key, None)
        else:
            world[key] = fields
        for user, action in questions:
            assert found.authorize(user, action).allowed == naive(world, user, action)


def naive(world, user, action):
    for (kind, namespace, _), fields in world.items():
        if not kind.endswith("Binding") or namespace not in ("", action.namespace):
            continue
        if not any(is_subject(user, subject, namespace) for subject in fields["subjects"]):
            continue
        ref = fields["roleRef"]
        where = namespace if ref["kind"] == "Role" else ""
        if any(rule_allows(rule, action) for rule in naive_rules(world, (ref["kind"], where, ref["name"]))):
            return True
    return False


def naive_rules(world, key, seen=()):
    fields = world.get(key)
    if fields is None or key in seen:
        return []
    if "aggregationRule" not in fields:
        return fields["rules"]
    wanted = fields["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"]
    chosen = [
        other
        for other, theirs in world.items()
        if other[0] == "ClusterRole" and wanted.items() <= theirs["metadata"]["labels"].items()
    ]
    return [rule for other in chosen for rule in naive_rules(world, other, (*seen, key))]


def is_subject(user, subject, namespace):
    match subject["kind"]:
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
    where = subject.get("namespace") or namespace
    return user.name == f"system:serviceaccount:{where}:{subject['name']}"


def rule_allows(rule, action):
    resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
    wild = {"*", f"*/{action.subresource}"} if action.subresource else {"*"}
    return (
        bool({action.verb, "*"} & set(rule["verbs"]))
        and bool({action.group, "*"} & set(rule["apiGroups"]))
        and bool(({resource} | wild) & set(rule["resources"]))
        and ("resourceNames" not in rule or action.name in rule["resourceNames"])
    )


COVERED = st.builds(Rule.read, RULE)


@given(st.lists(COVERED, max_size=3), st.lists(COVERED, max_size=2), ACTIONS)
def test_whoever_lacks_nothing_could_already_do_everything(held, wanted, action):
    """If no part is missing, no action exists that only the new rules allow."""
    if not missing(held, wanted) and any(rule.allows(action) for rule in wanted):
        assert any(rule.allows(action) for rule in held)


@given(st.lists(COVERED, max_size=3))
def test_joining_rules_loses_nothing(rules):
    assert not missing(compact(rules), rules)
