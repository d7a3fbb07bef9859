"""S4: whatever is asked about identities and rights, the answer is never a failure of ours."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import Request, errors
from allot.apiserver import ApiServer, identities
from allot.apiserver.security import read_impersonation
from allot.store import MemoryStore

REVIEWS = [
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/api/v1/namespaces/default/serviceaccounts/bot/token",
]
OBJECTS = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
]
KEYS = [
    "apiVersion", "kind", "metadata", "name", "spec", "status", "token", "audiences", "user", "groups",
    "extra", "uid", "resourceAttributes", "nonResourceAttributes", "namespace", "verb", "group", "resource",
    "path", "fieldSelector", "rawSelector", "requirements", "key", "operator", "values", "boundObjectRef",
    "expirationSeconds", "rules", "verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs",
    "aggregationRule", "clusterRoleSelectors", "matchLabels", "matchExpressions", "roleRef", "apiGroup",
    "subjects", "labels", "annotations",
]  # fmt: skip
WORDS = ["", "*", "x", "default", "Role", "ClusterRole", "User", "ServiceAccount", "In", "v1", "Pod", "a=b,,"]
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(WORDS) | st.text(max_size=5)
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(KEYS),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        max_leaves=12,
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def ask():
    """Ask a server, in this process, as the administrator: (status, decoded answer)."""
    runner, store = asyncio.Runner(), MemoryStore()
    server = ApiServer(store)
    runner.run(server.start())

    def ask(method, path, body=None, headers=None):
        sent = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **(headers or {})}
        response = runner.run(server.handle(Request(method, path, {}, headers, sent), identities.ADMIN))
        return response.status, json.loads(response.body or b"null")

    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}}
    assert ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)[0] == 201
    yield ask
    runner.run(server.close())
    runner.run(store.close())
    runner.close()


@given(path=st.sampled_from(REVIEWS + OBJECTS), document=DOCUMENTS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_document_makes_the_server_fail(ask, path, document):
    status, answer = ask("POST", path, document)
    assert status in (201, 400, 403, 404, 409, 422), answer


@given(spec=DOCUMENTS, path=st.sampled_from(REVIEWS))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_question_makes_the_server_fail(ask, path, spec):
    status, answer = ask("POST", path, {"spec": spec})
    assert status in (201, 400, 404, 409, 422), answer


HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "impersonate-user",
            "impersonate-group",
            "impersonate-uid",
            "impersonate-extra-",
            "impersonate-extra-%zz",
        ]
    ),
    st.sampled_from(["", "\n", "a\nb", "system:serviceaccount:a:b", "system:serviceaccount:", "\x00", "é"])
    | st.text(max_size=8),
)


@given(HEADERS)
def test_impersonation_headers_mean_somebody_or_are_refused(headers):
    try:
        asked = read_impersonation(headers)
    except errors.BadRequest:
        return
    assert (asked is None) == (not headers.get("impersonate-user"))
    if asked is not None:
        assert asked.needs and asked.user.name


@given(path=st.text("/apiv1.:namespacesdefault%*?#é \x00", max_size=60))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_makes_the_server_fail(ask, path):
    status, answer = ask("GET", "/" + path)
    assert status < 500, answer
