"""Who sends a request, on whose behalf, and what they may ask about it."""

from datetime import UTC, datetime, timedelta

import pytest

from allot.api import Action, User, errors
from allot.apiserver.security import (
    Authenticator,
    Authority,
    Authorizer,
    Certified,
    Revocations,
    Tokens,
    bootstrap_objects,
    identities,
    local_subject_access_review,
    make_token,
    read_impersonation,
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
)
from allot.apiserver.security.jwt import Keys
from allot.base import RandomIds

from .builders import GROUP

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ANN = identities.user("ann", "team")
STORED = {("serviceaccounts", "dev", "bot"): {"metadata": {"name": "bot", "uid": "u"}}}


def lookup(*key):
    return STORED.get(key)


TOKENS = Tokens(Keys(Authority.create(NOW).token_keys), lookup)
TOKEN = make_token(TOKENS, lookup, RandomIds(), NOW, "dev", "bot", {})["status"]["token"]


def who(user=None, authorization="", path="/api", anonymous_health=False, until=NOW + timedelta(hours=1)):
    certified = Certified(user, until, "1a") if user else None
    headers = {"authorization": authorization} if authorization else {}
    authenticator = Authenticator(TOKENS, Revocations(), anonymous_health=anonymous_health)
    try:
        return authenticator.authenticate(certified, headers, path, NOW).name
    except errors.Unauthorized as error:
        return error.code


def test_a_certificate_that_runs_out_ends_an_open_connection_too():
    assert who(ANN, until=NOW + timedelta(seconds=1)) == "ann"
    assert who(ANN, until=NOW) == 401
    assert who(ANN, f"Bearer {TOKEN}", until=NOW) == 401


def test_a_certificate_comes_before_a_token():
    assert who(ANN) == "ann"
    assert who(ANN, f"Bearer {TOKEN}") == "ann"
    assert who(None, f"Bearer {TOKEN}") == "system:serviceaccount:dev:bot"
    assert who(None, f"bearer  {TOKEN} ") == "system:serviceaccount:dev:bot"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer x", "Basic YW5uOng=", f"Token {TOKEN}", TOKEN],
    ids=["nothing", "no token", "nonsense", "password", "another scheme", "no scheme"],
)
def test_without_good_credentials_nothing_is_answered(authorization):
    for path in ("/api", "/healthz", "/version", "/", "/openid/v1/jwks"):
        assert who(None, authorization, path) == 401


def test_health_can_be_opened_to_those_who_show_nothing_but_not_to_wrong_tokens():
    assert who(path="/healthz", anonymous_health=True) == "system:anonymous"
    assert who(path="/livez", anonymous_health=True) == "system:anonymous"
    assert who(path="/version", anonymous_health=True) == 401
    assert who(path="/healthz/etcd", anonymous_health=True) == 401
    assert who(None, "Bearer x", "/healthz", anonymous_health=True) == 401


def test_impersonation_asks_for_every_part():
    asked = read_impersonation(
        {
            "accept": "x",
            "impersonate-user": "bob",
            "impersonate-group": "dev\nops",
            "impersonate-uid": "7",
            "impersonate-extra-example.com%2Fscopes": "view\nedit",
        }
    )
    assert asked is not None
    assert asked.user == User(
        "bob", ("dev", "ops", "system:authenticated"), "7", {"example.com/scopes": ("view", "edit")}
    )
    assert asked.needs == (
        Action("impersonate", "", "users", name="bob", version="v1"),
        Action("impersonate", "", "groups", name="dev", version="v1"),
        Action("impersonate", "", "groups", name="ops", version="v1"),
        Action("impersonate", "authentication.k8s.io", "uids", name="7", version="v1"),
        *(
            Action("impersonate", "authentication.k8s.io", "userextras", "example.com/scopes", "", v, "v1")
            for v in ("view", "edit")
        ),
    )


def test_a_service_account_is_impersonated_in_its_namespace_and_with_its_groups():
    asked = read_impersonation({"impersonate-user": "system:serviceaccount:dev:bot"})
    assert asked is not None
    assert asked.needs == (Action("impersonate", "", "serviceaccounts", "", "dev", "bot", "v1"),)
    assert asked.user == identities.service_account("dev", "bot")


def test_nobody_is_impersonated_without_being_authenticated():
    asked = read_impersonation({"impersonate-user": "system:anonymous"})
    assert asked is not None and asked.user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize("header", ["impersonate-group", "impersonate-uid", "impersonate-extra-x"])
def test_a_group_alone_is_nobody(header):
    with pytest.raises(errors.BadRequest):
        read_impersonation({header: "system:masters"})


def test_two_names_are_refused():
    with pytest.raises(errors.BadRequest):
        read_impersonation({"impersonate-user": "ann\nbob"})


def test_without_the_headers_nothing_is_asked():
    assert read_impersonation({"authorization": "x"}) is None


@pytest.fixture(scope="module")
def cluster():
    authorizer = Authorizer()
    for fields in bootstrap_objects():
        metadata = fields["metadata"]
        plural = fields["kind"].lower() + "s"
        authorizer.observe(GROUP, plural, metadata.get("namespace", ""), metadata["name"], fields)
    return authorizer


def test_who_am_i():
    answer = self_subject_review(ANN, {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"})
    assert answer["status"] == {"userInfo": {"username": "ann", "groups": ["team", "system:authenticated"]}}
    assert answer["kind"] == "SelfSubjectReview"


def test_may_i(cluster):
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "dev"}}
    assert self_subject_access_review(cluster, ANN, {"spec": spec})["status"] == {"allowed": False}
    yes = self_subject_access_review(cluster, identities.ADMIN, {"spec": spec})["status"]
    assert yes["allowed"] and yes["reason"].startswith("RBAC: allowed by")
    path = {"nonResourceAttributes": {"verb": "get", "path": "/api"}}
    assert self_subject_access_review(cluster, ANN, {"spec": path})["status"]["allowed"]


def test_may_somebody(cluster):
    asked = {"verb": "watch", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=n1"}}
    spec = {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": asked}
    assert subject_access_review(cluster, {"spec": spec})["status"]["allowed"]
    needs = [{"key": "spec.nodeName", "operator": "In", "values": ["n2"]}]
    asked = {**asked, "fieldSelector": {"requirements": needs}}
    answer = subject_access_review(cluster, {"spec": {**spec, "resourceAttributes": asked}})
    assert answer["status"] == {
        "allowed": False,
        "reason": "can only list/watch pods with spec.nodeName field selector",
    }


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"user": "ann"}, "spec.resourceAttributes: Invalid value: null: exactly one of"),
        ({"resourceAttributes": {}}, 'spec.user: Invalid value: "": at least one of user or group'),
        (
            {"user": "ann", "resourceAttributes": {}, "nonResourceAttributes": {}},
            "spec.nonResourceAttributes: Invalid value: {}: cannot be specified in combination",
        ),
    ],
)
def test_a_question_must_be_complete(cluster, spec, wrong):
    with pytest.raises(errors.Invalid) as refused:
        subject_access_review(cluster, {"spec": spec})
    assert wrong in refused.value.message


def test_a_local_question_stays_in_its_namespace(cluster):
    spec = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "dev"}}
    assert not local_subject_access_review(cluster, "dev", {"spec": spec})["status"]["allowed"]
    with pytest.raises(errors.BadRequest, match="must match namespace: prod"):
        local_subject_access_review(cluster, "prod", {"spec": spec})
    with pytest.raises(errors.Invalid, match="disallowed on this kind of request"):
        local_subject_access_review(cluster, "dev", {"spec": {"user": "ann", "nonResourceAttributes": {}}})


def test_what_may_i_do(cluster):
    status = self_subject_rules_review(cluster, ANN, {"spec": {"namespace": "dev"}})["status"]
    assert status["incomplete"] is False
    assert {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    } in status["resourceRules"]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    of_a_node = self_subject_rules_review(cluster, identities.node("n"), {"spec": {"namespace": "dev"}})
    assert of_a_node["status"]["incomplete"] is True
    with pytest.raises(errors.BadRequest):
        self_subject_rules_review(cluster, ANN, {"spec": {}})
