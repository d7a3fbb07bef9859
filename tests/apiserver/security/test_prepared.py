"""What nodes say that they have prepared: each for itself, and nobody else for it."""

from allot.apiserver import identities

PATH = "/apis/node.allot.dev/v1alpha1/preparedclaims"
N1, N2 = identities.node("n1"), identities.node("n2")


def prepared(*uids: str, name: str = "n1"):
    return {"metadata": {"name": name}, "status": {"claims": [{"uid": uid} for uid in uids]}}


def test_a_node_says_what_it_has_prepared_and_takes_it_back(api):
    assert api("POST", PATH, prepared("a"), user=N1).status == 201
    said = api("GET", f"{PATH}/n1", user=N1).body
    assert said["status"]["claims"] == [{"uid": "a"}]
    taken_back = {"status": {"claims": []}}
    answer = api("PATCH", f"{PATH}/n1/status", taken_back, user=N1, media="application/merge-patch+json")
    assert answer.status == 200
    assert api("GET", f"{PATH}/n1").body["status"]["claims"] == []


def test_no_node_speaks_for_another(api):
    assert api("POST", PATH, prepared("a"), user=N2).status == 403
    assert api("POST", PATH, prepared("a"), user=N1).status == 201
    for method, path in (("GET", "n1"), ("DELETE", "n1"), ("PUT", "n1/status")):
        assert api(method, f"{PATH}/{path}", prepared("b"), user=N2).status == 403
    assert api("GET", PATH, user=N1).status == 403


def test_a_claim_is_named_once_and_by_its_uid(api):
    assert api("POST", PATH, prepared("a", "a")).causes == [("status.claims[1].uid", "FieldValueDuplicate")]
    assert api("POST", PATH, prepared("")).causes == [("status.claims[0].uid", "FieldValueRequired")]


def test_a_null_is_no_claim(api):
    """It has the type that a custom schema leaves to its validator, and was read like a claim."""
    content = {"metadata": {"name": "n1"}, "status": {"claims": [{"uid": "a"}, None]}}
    assert api("POST", PATH, content).causes == [("status.claims[1].uid", "FieldValueRequired")]
    assert api("POST", PATH, prepared("a")).status == 201
    assert api("PUT", f"{PATH}/n1/status", content).causes == [("status.claims[1].uid", "FieldValueRequired")]


def test_the_claim_controller_reads_it_and_cannot_write_it(api):
    controller = identities.controller("resource-claim-controller")
    assert api("POST", PATH, prepared("a")).status == 201
    assert api("GET", PATH, user=controller).status == 200
    assert api("PUT", f"{PATH}/n1/status", prepared(), user=controller).status == 403


def test_nobody_takes_the_kind_over_with_a_definition(api):
    """Whoever may define kinds could otherwise change what nodes' words mean."""
    names = {"plural": "preparedclaims", "singular": "preparedclaims", "kind": "PreparedClaims"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "node.allot.dev", "scope": "Cluster", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "preparedclaims.node.allot.dev"}, "spec": spec}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api("POST", definitions, definition)
    assert api("POST", PATH, prepared("a"), user=N1).status == 201
    assert api("GET", f"{PATH}/n1").body["status"]["claims"] == [{"uid": "a"}]
    api("DELETE", f"{definitions}/preparedclaims.node.allot.dev")
    assert api("GET", f"{PATH}/n1").status == 200
