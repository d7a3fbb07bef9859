"""Ephemeral containers: one joins a pod, nothing else of the pod changes, and it stays as it is."""

import pytest

from .test_inside import a_pod_on

STRATEGIC = "application/strategic-merge-patch+json"


def added(api, *containers, media=STRATEGIC, path="/api/v1/namespaces/default/pods/web"):
    body = {"spec": {"ephemeralContainers": list(containers)}}
    return api("PATCH", f"{path}/ephemeralcontainers", body, media=media)


def test_a_container_joins_a_pod(api):
    path = a_pod_on(api, "n1", "containerd://2.0")
    answer = added(api, {"name": "look", "image": "busybox", "targetContainerName": "main"})
    assert answer.status == 200
    [one] = api("GET", path).body["spec"]["ephemeralContainers"]
    assert (one["name"], one["imagePullPolicy"]) == ("look", "Always")
    assert added(api, {"name": "again", "image": "busybox:1"}).status == 200
    found = api("GET", f"{path}/ephemeralcontainers").body["spec"]["ephemeralContainers"]
    assert sorted(one["name"] for one in found) == ["again", "look"]


def test_what_is_there_stays_as_it_is(api):
    path = a_pod_on(api, "n1", "")
    assert added(api, {"name": "look", "image": "busybox"}).status == 200
    refused = added(api, {"name": "look", "image": "other"})
    assert refused.status == 422 and "may not be changed" in refused.body["message"]
    pod = api("GET", path).body
    pod["spec"]["ephemeralContainers"] = []
    refused = api("PUT", f"{path}/ephemeralcontainers", pod)
    assert refused.status == 422 and "may not be removed" in refused.body["message"]


def test_nothing_else_of_the_pod_changes(api):
    path = a_pod_on(api, "n1", "", labels={"app": "web"})
    before = api("GET", path).body
    pod = api("GET", path).body
    pod["metadata"]["labels"] = {"app": "other"}
    pod["spec"]["nodeName"] = "elsewhere"
    pod["status"] = {"phase": "Failed"}
    pod["spec"]["ephemeralContainers"] = [{"name": "look", "image": "busybox"}]
    assert api("PUT", f"{path}/ephemeralcontainers", pod).status == 200
    after = api("GET", path).body
    for one in (before, after):
        one["spec"].pop("ephemeralContainers", None)
        for name in ("resourceVersion", "managedFields", "generation"):
            one["metadata"].pop(name, None)
    assert after == before


def test_the_pod_itself_does_not_take_them(api):
    path = a_pod_on(api, "n1", "")
    body = {"spec": {"ephemeralContainers": [{"name": "look", "image": "busybox"}]}}
    assert api("PATCH", path, body, media=STRATEGIC).status == 422


@pytest.mark.parametrize(
    "container, where",
    [
        ({"image": "busybox"}, "name"),
        ({"name": "Look", "image": "busybox"}, "name"),
        ({"name": "main", "image": "busybox"}, "name"),
        ({"name": "look"}, "image"),
        ({"name": "look", "image": "x", "ports": [{"containerPort": 80}]}, "ports"),
        ({"name": "look", "image": "x", "resources": {"limits": {"cpu": "1"}}}, "resources"),
        ({"name": "look", "image": "x", "livenessProbe": {"tcpSocket": {"port": 80}}}, "livenessProbe"),
        ({"name": "look", "image": "x", "targetContainerName": "none"}, "targetContainerName"),
    ],
)
def test_what_makes_no_sense_in_one_is_refused_where_it_stands(api, container, where):
    a_pod_on(api, "n1", "")
    refused = added(api, container, media="application/merge-patch+json")
    assert refused.status == 422
    assert f"spec.ephemeralContainers[0].{where}" in [field for field, _ in refused.causes]


def test_on_a_hollow_node_there_is_nothing_to_look_into(api):
    a_pod_on(api, "n1", "hollow://0.1")
    refused = added(api, {"name": "look", "image": "busybox"})
    assert refused.status == 400
    assert refused.body["message"].endswith("where nothing really runs: there is nothing to look into")
