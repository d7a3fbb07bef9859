"""Paths that are no resource, and what discovery says is served."""

from allot.api import User

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def test_health_is_told_and_each_check_by_name(api):
    for path in ("/healthz", "/livez", "/readyz"):
        assert (api("GET", path).status, api("GET", path).body) == (200, "ok")
    assert "[+]store ok" in api("GET", "/readyz", verbose="").body
    assert api("GET", "/readyz/store").body == "ok"
    assert api("GET", "/readyz/nothing").status == 404


def test_a_store_that_is_away_is_not_healthy(api):
    api.run(api.store.close())
    answer = api("GET", "/readyz")
    assert answer.status == 500 and "[-]store failed" in answer.body
    assert api("GET", "/api/v1/namespaces").status == 503


def test_the_version_is_the_one_whose_api_we_speak(api):
    assert api("GET", "/version").body["gitVersion"].startswith("v1.37.")


def test_requests_are_counted(api):
    api("GET", "/api/v1/namespaces")
    api("GET", "/api/v1/nonsense")
    text = api("GET", "/metrics").body
    assert 'apiserver_request_total{verb="list",group="",version="v1",resource="namespaces"' in text
    assert "nonsense" not in text, "a scanner must not grow the table"
    assert "allot_event_loop_longest_hold_seconds" in text


def test_aggregated_discovery_comes_in_the_version_that_was_asked_for(api):
    """An older client asks for v2beta1 alone and would take v2 for a server without any groups."""
    form = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"

    def answered(*accept):
        answer = api("GET", "/apis", accept=",".join(accept)).body
        return answer.get("apiVersion"), answer["kind"]

    aggregated, plain = "APIGroupDiscoveryList", ("v1", "APIGroupList")
    assert answered(form.format("v2beta1"), "application/json") == ("apidiscovery.k8s.io/v2beta1", aggregated)
    newest_first = (form.format("v2"), form.format("v2beta1"), "application/json")
    assert answered(*newest_first) == ("apidiscovery.k8s.io/v2", aggregated)
    assert answered(form.format("v3"), "application/json") == plain
    assert answered("application/json", form.format("v2")) == plain
    assert api("GET", "/apis", accept=form.format("v3")).status == 406


def test_plain_and_aggregated_discovery_agree(api):
    plain = {group["name"]: group for group in api("GET", "/apis").body["groups"]}
    aggregated = {
        item["metadata"]["name"]: item for item in api("GET", "/apis", accept=AGGREGATED).body["items"]
    }
    assert plain.keys() == aggregated.keys()
    for name, group in plain.items():
        versions = [version["version"] for version in group["versions"]]
        assert versions == [version["version"] for version in aggregated[name]["versions"]]
        for version in aggregated[name]["versions"]:
            listed = api("GET", f"/apis/{name}/{version['version']}").body["resources"]
            names = {resource["name"] for resource in listed}
            for resource in version["resources"]:
                assert resource["resource"] in names
                for sub in resource.get("subresources", []):
                    assert f"{resource['resource']}/{sub['subresource']}" in names
    core = api("GET", "/api", accept=AGGREGATED).body["items"][0]["versions"][0]["resources"]
    assert {"pods", "nodes", "namespaces"} <= {resource["resource"] for resource in core}


def test_the_best_version_comes_first(api):
    versions = api("GET", "/apis/resource.k8s.io").body["versions"]
    assert [version["version"] for version in versions] == ["v1", "v1beta2", "v1beta1", "v1alpha1"]


def test_every_served_kind_is_in_the_openapi_documents(api):
    paths = api("GET", "/openapi/v3").body["paths"]
    assert "apis/resource.k8s.io/v1" in paths and "api/v1" in paths
    document = api("GET", "/openapi/v3/apis/resource.k8s.io/v1").body
    assert document["openapi"].startswith("3.0")
    assert "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}/status" in document["paths"]


def test_strangers_see_nothing(api):
    """S5: rights come from roles, and a stranger has none."""
    stranger = User("stranger")
    for path in ("/metrics", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceclaims", "/api/v1/secrets"):
        assert api("GET", path, user=stranger).status == 403
