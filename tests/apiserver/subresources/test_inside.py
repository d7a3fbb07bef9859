"""What reaches into a pod that runs, and is not there: told in words."""

import pytest

from allot.apiserver import identities


def a_pod_on(api, node, runtime):
    info = {"nodeInfo": {"containerRuntimeVersion": runtime}} if runtime else {}
    assert api("POST", "/api/v1/nodes", {"metadata": {"name": node}, "status": info}).status == 201
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
    assert (
        api("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "web"}, "spec": spec}).status
        == 201
    )
    return "/api/v1/namespaces/default/pods/web"


@pytest.mark.parametrize(
    "subresource, what",
    [
        ("exec", "run a command in"),
        ("attach", "attach to"),
        ("portforward", "forward a port to"),
        ("proxy", "pass a request on to"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whoever_reaches_into_a_pod_is_told_why_not(api, subresource, what, method):
    path = a_pod_on(api, "n1", "hollow://0.1")
    answer = api(method, f"{path}/{subresource}")
    assert answer.status == 400
    assert answer.body["message"] == (
        f"pod web is on n1, a hollow node, where nothing really runs: there is no container to {what}"
    )
    assert api(method, f"{path.replace('web', 'none')}/{subresource}").body["details"]["name"] == "none"
    assert api(method, f"{path}/{subresource}", user=identities.user("ann")).status == 403


def test_on_a_node_with_a_machine_the_server_has_no_way_there(api):
    path = a_pod_on(api, "n1", "containerd://2.0")
    assert api("POST", f"{path}/exec").body["message"] == "this server has no way to run a command in pod web"


def test_what_is_not_there_has_details_as_clients_expect(api):
    """kubectl debug looks into them without asking, and takes a name there for that of the pod."""
    path = a_pod_on(api, "n1", "")
    answer = api("PATCH", f"{path}/ephemeralcontainers", {}, media="application/strategic-merge-patch+json")
    assert (answer.status, answer.body["details"]) == (404, {"kind": "pods"})
    assert api("GET", "/apis/nothing/v1/things").body["details"] == {}
    assert api("GET", f"{path}/nonsense").body["details"] == {}
