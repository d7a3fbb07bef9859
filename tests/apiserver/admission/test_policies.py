"""What administrators demand of writes, as expressions."""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from allot.api import User, errors
from allot.apiserver.admission.policies.judging import Policy, Purse
from allot.apiserver.admission.policies.views import policy_spec

GROUP = "admissionregistration.k8s.io"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
CONFIGS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}


TRUE = {"name": "always", "expression": "true"}


def policy(*validations: Any, rule: Any = CONFIGS, **spec: Any) -> dict[str, Any]:
    said = [one if isinstance(one, dict) else {"expression": one} for one in validations]
    match = {"resourceRules": [rule], **spec.pop("match", {})}
    return {"metadata": {"name": "p"}, "spec": {"validations": said, "matchConstraints": match, **spec}}


def binding(*actions: str, **spec: Any) -> dict[str, Any]:
    wanted = {"policyName": "p", "validationActions": [*actions] or ["Deny"], **spec}
    return {"metadata": {"name": "b"}, "spec": wanted}


class Cluster:
    def __init__(self, server: Any) -> None:
        self.said: list[str] = []
        self._server = server
        client = server.client(warn=self.said.append)
        self.policies = client.resource(GROUP, "v1", "validatingadmissionpolicies", namespaced=False)
        self.bindings = client.resource(GROUP, "v1", "validatingadmissionpolicybindings", namespaced=False)
        self.namespaces = client.resource("", "v1", "namespaces", namespaced=False)
        self.configs = client.resource("", "v1", "configmaps")
        self.pods = client.resource("", "v1", "pods")
        self.classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)

    def run(self, deed: Any) -> Any:
        return self._server.run(deed)

    def enforce(self, wanted: dict[str, Any], bound: dict[str, Any] | None = None) -> None:
        """Returns when the server's caches have both."""
        self.run(self.policies.create(wanted))
        self.run(self.bindings.create(bound or binding()))
        self.run(self._caught_up())

    async def _caught_up(self) -> None:
        caches = self._server.api.caches
        kinds = [one for one in self._server.api.registry.kinds() if one.group == GROUP]
        revision = await self._server.api.store.revision()
        for kind in kinds:
            assert await (await caches.of(kind)).reach(revision, 20)

    def make(self, name: str = "c", namespace: str = "default", **data: str) -> Any:
        metadata = {"name": name, "namespace": namespace}
        return self.run(self.configs.create({"metadata": metadata, "data": data}))


@pytest.fixture
def cluster(allot_server):
    return Cluster(allot_server)


def test_a_write_that_breaks_a_policy_is_refused_in_upstreams_words(cluster):
    message = {"expression": "size(object.data) < 2", "message": "too much"}
    cluster.enforce(policy(message))
    cluster.make(a="1")
    who = "ValidatingAdmissionPolicy 'p' with binding 'b'"
    words = f'configmaps "d" is forbidden: {who} denied request: too much'
    with pytest.raises(errors.Invalid, match=words):
        cluster.make("d", a="1", b="2")


def test_without_a_binding_a_policy_is_not_in_force(cluster):
    cluster.run(cluster.policies.create(policy("false")))
    cluster.run(cluster._caught_up())
    cluster.make()


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Forbidden", errors.Forbidden),
        ("Invalid", errors.Invalid),
        ("Unauthorized", errors.Unauthorized),
        ("RequestEntityTooLarge", errors.TooLarge),
    ],
)
def test_the_reason_chooses_the_answer(cluster, reason, kind):
    cluster.enforce(policy({"expression": "false", "reason": reason}))
    with pytest.raises(kind, match="failed expression: false"):
        cluster.make()


def test_updates_see_both_objects_and_deletes_the_old_one(cluster):
    cluster.enforce(
        policy(
            "request.operation != 'UPDATE' || object.data.a >= oldObject.data.a",
            "request.operation != 'DELETE' || oldObject.data.a == 'free'",
        )
    )
    cluster.make(a="b")
    cluster.run(cluster.configs.patch("c", {"data": {"a": "c"}}, "default"))
    with pytest.raises(errors.Invalid, match=r"oldObject\.data\.a"):
        cluster.run(cluster.configs.patch("c", {"data": {"a": "a"}}, "default"))
    with pytest.raises(errors.Invalid, match="'free'"):
        cluster.run(cluster.configs.delete("c", "default"))
    cluster.run(cluster.configs.patch("c", {"data": {"a": "free"}}, "default"))
    cluster.run(cluster.configs.delete("c", "default"))


def test_variables_are_worked_out_once_and_messages_may_use_them(cluster):
    variables = [
        {"name": "count", "expression": "size(object.data)"},
        {"name": "twice", "expression": "variables.count * 2"},
    ]
    validation = {
        "expression": "variables.twice < 4",
        "messageExpression": "'has ' + string(variables.count)",
    }
    cluster.enforce(policy(validation, variables=variables))
    cluster.make(a="1")
    with pytest.raises(errors.Invalid, match="denied request: has 2"):
        cluster.make("d", a="1", b="2")


def test_conditions_decide_whether_it_is_asked(cluster):
    only = [{"name": "by-others", "expression": "request.userInfo.username != 'allot-admin'"}]
    cluster.enforce(policy("false", matchConditions=only))
    cluster.make()


def test_selectors_of_namespaces_and_objects_and_rules_that_exclude(cluster):
    cluster.run(cluster.namespaces.create({"metadata": {"name": "free"}}))
    cluster.run(cluster.namespaces.create({"metadata": {"name": "held", "labels": {"held": "yes"}}}))
    match = {
        "namespaceSelector": {"matchLabels": {"held": "yes"}},
        "excludeResourceRules": [{**CONFIGS, "resourceNames": ["spared"]}],
    }
    cluster.enforce(policy("false", match=match))
    cluster.make("c", "free")
    cluster.make("spared", "held")
    with pytest.raises(errors.Invalid):
        cluster.make("c", "held")


@pytest.mark.parametrize("before", ["yes", "no"])
def test_an_object_is_selected_by_what_it_was_and_by_what_it_becomes(cluster, before):
    """Nobody gets out of a policy by taking its label off in the same write."""
    cluster.make("free")
    labels = {"metadata": {"name": "c", "namespace": "default", "labels": {"held": before}}}
    cluster.run(cluster.configs.create(labels))
    cluster.enforce(policy("false", match={"objectSelector": {"matchLabels": {"held": "yes"}}}))
    after = {"metadata": {"labels": {"held": "no" if before == "yes" else "yes"}}}
    with pytest.raises(errors.Invalid):
        cluster.run(cluster.configs.patch("c", after, "default"))
    cluster.run(cluster.configs.patch("free", {"data": {"a": "b"}}, "default"))


def test_a_namespace_is_selected_by_its_own_labels_and_what_is_in_none_always(cluster):
    rule = {
        "apiGroups": ["", "resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["namespaces", "deviceclasses"],
    }
    match = {"namespaceSelector": {"matchLabels": {"held": "yes"}}}
    cluster.enforce(policy("false", rule=rule, match=match))
    cluster.run(cluster.namespaces.create({"metadata": {"name": "free"}}))
    with pytest.raises(errors.Invalid):
        cluster.run(cluster.namespaces.create({"metadata": {"name": "held", "labels": {"held": "yes"}}}))
    with pytest.raises(errors.Invalid):
        cluster.run(cluster.classes.create({"metadata": {"name": "gpu"}, "spec": {}}))


@pytest.mark.parametrize(
    ("resource", "is_about"),
    [
        ("pods", {""}),
        ("*", {""}),
        ("pods/status", {"status"}),
        ("*/status", {"status"}),
        ("pods/*", {"", "status"}),
        ("*/*", {"", "status"}),
        ("*/scale", set()),
        ("configmaps/*", set()),
    ],
)
def test_a_rule_names_resources_with_or_without_what_lies_below_them(cluster, resource, is_about):
    container = {"name": "main", "image": "busybox"}
    made = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [container]}}
    cluster.run(cluster.pods.create(made))
    cluster.enforce(policy("false", rule={**PODS, "resources": [resource]}))
    for below, patch in (
        ("", {"metadata": {"labels": {"a": "b"}}}),
        ("status", {"status": {"phase": "Running"}}),
    ):
        write = cluster.pods.patch("web", patch, "default", subresource=below)
        with pytest.raises(errors.Invalid) if below in is_about else nullcontext():
            cluster.run(write)


def test_a_policy_sees_a_write_as_everybody_else_has_left_it(cluster):
    """With the account and the priority that the server gives to a pod."""
    cluster.enforce(
        policy("object.spec.serviceAccountName == 'default' && object.spec.priority == 0", rule=PODS)
    )
    container = {"name": "main", "image": "busybox"}
    made = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [container]}}
    cluster.run(cluster.pods.create(made))


def test_a_binding_may_narrow_what_a_policy_is_about(cluster):
    narrowed = {"objectSelector": {"matchLabels": {"strict": "yes"}}}
    cluster.enforce(policy("false"), binding(matchResources=narrowed))
    cluster.make()
    strict = {"metadata": {"name": "d", "namespace": "default", "labels": {"strict": "yes"}}}
    with pytest.raises(errors.Invalid):
        cluster.run(cluster.configs.create(strict))


def test_a_warning_refuses_nothing(cluster):
    cluster.enforce(policy("false"), binding("Warn"))
    cluster.make()
    assert cluster.said == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false"
    ]


def test_parameters_come_from_an_object_that_the_binding_names(cluster):
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    named = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    rule = {**CONFIGS, "operations": ["CREATE"]}
    cluster.make("limits", most="1")
    cluster.enforce(
        policy("size(object.data) <= int(params.data.most)", rule=rule, paramKind=kind),
        binding(paramRef=named),
    )
    cluster.make(a="1")
    with pytest.raises(errors.Invalid, match=r"params\.data\.most"):
        cluster.make("d", a="1", b="2")
    cluster.run(cluster.configs.delete("limits", "default"))
    with pytest.raises(errors.Invalid, match="no params found"):
        cluster.make("e", a="1")


@pytest.mark.parametrize(("failure", "passes"), [("Fail", False), ("Ignore", True)])
def test_what_cannot_be_worked_out_fails_as_the_policy_says(cluster, failure, passes):
    cluster.enforce(policy("object.data.absent == 'x'", failurePolicy=failure))
    if passes:
        cluster.make(a="1")
    else:
        with pytest.raises(errors.Invalid, match="resulted in error: no such key: absent"):
            cluster.make(a="1")


def test_a_policy_that_refuses_everything_can_be_taken_away(cluster):
    everything = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["*/*"],
    }
    cluster.enforce(policy("false", rule=everything))
    with pytest.raises(errors.Invalid):
        cluster.make()
    cluster.run(cluster.bindings.delete("b"))
    cluster.run(cluster.policies.delete("p"))
    cluster.run(cluster._caught_up())
    cluster.make()


def test_an_expression_without_end_is_cut_off_by_its_cost(cluster):
    deep = "[1,2,3,4,5,6,7,8,9,10]"
    nested = f"{deep}.all(a, {deep}.all(b, {deep}.all(c, {deep}.all(d, {deep}.all(e, {deep}.all(f, true))))))"
    cluster.enforce(policy(nested))
    with pytest.raises(errors.Invalid, match="cost limit exceeded"):
        cluster.make()


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (policy("object.data >"), r"spec\.validations\[0\]\.expression.*Syntax error"),
        (policy("'text'"), "must evaluate to bool"),
        (policy("authorizer.allowed()"), "undeclared reference to 'authorizer'"),
        (policy(), "must be non-empty"),
        (policy("true", failurePolicy="Maybe"), "failurePolicy"),
        (policy("true", rule={**CONFIGS, "operations": ["READ"]}), "operations"),
        (policy("true", paramKind={"kind": "ConfigMap"}), "paramKind"),
        (policy("true", matchConditions=[TRUE, TRUE]), r"matchConditions\[1\]\.name: Duplicate value"),
        (policy("true", matchConditions=[{**TRUE, "name": ""}]), r"matchConditions\[0\]\.name: Required"),
        (policy("true", matchConditions=[{**TRUE, "name": f"c{n}"} for n in range(65)]), "Too many: 65"),
        (policy("true", variables=[TRUE, TRUE]), r"variables\[1\]\.name: Duplicate value"),
    ],
)
def test_what_could_not_be_enforced_is_refused(cluster, wanted, text):
    with pytest.raises(errors.Invalid, match=text):
        cluster.run(cluster.policies.create(wanted))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (binding("Deny", "Warn"), "must not contain both Deny and Warn"),
        (binding("Shout"), "validationActions"),
        (binding(policyName=""), "policyName"),
        (binding(paramRef={"parameterNotFoundAction": "Deny"}), "one of name or selector"),
    ],
)
def test_a_binding_that_means_nothing_is_refused(cluster, wanted, text):
    with pytest.raises(errors.Invalid, match=text):
        cluster.run(cluster.bindings.create(wanted))


ALL_PAIRS = "object.data.all(a, object.data.all(b, a + b != 'zz'))"


def test_writes_that_are_dear_to_judge_keep_nobody_elses_waiting(cluster, allot_server):
    """One user's configs take a second each, and he sends forty: they took every thread that judges, and
    whoever wrote a config meanwhile waited for all of them."""
    cluster.enforce(policy(ALL_PAIRS))
    mallory = allot_server.client(User("mallory", groups=("system:masters",))).resource(
        "", "v1", "configmaps"
    )
    dear = {f"k{number}": "" for number in range(250)}

    async def story() -> list[bool]:
        metadata = {"generateName": "dear-", "namespace": "default"}
        sent = [asyncio.create_task(mallory.create({"metadata": metadata, "data": dear})) for _ in range(40)]
        await asyncio.sleep(0.2)  # they are under way
        await cluster.configs.create(
            {"metadata": {"name": "small", "namespace": "default"}, "data": {"a": ""}}
        )
        judged = [one.done() for one in sent]
        for one in sent:
            one.cancel()
        await asyncio.gather(*sent, return_exceptions=True)
        return judged

    assert sum(cluster.run(story())) <= 2


def test_many_policies_do_not_each_hold_the_loop():
    """What a write may spend where it is, it may spend once: the next policy finds an empty purse."""
    purse, asked = Purse(50), Policy("p", policy_spec(policy(ALL_PAIRS)))
    asked.judge({"object": {"data": {"a": "", "b": ""}}}, purse)
    left = purse.left
    assert left < 50 and not purse.is_short
    asked.judge({"object": {"data": {str(number): "" for number in range(9)}}}, purse)
    assert purse.is_short and purse.left <= 0
