"""Server-side apply through the server: what an apply of one part does to the rest."""

from allot.apiserver import identities

PODS = "/api/v1/namespaces/default/pods"
APPLY = "application/apply-patch+yaml"
CONTROLLER = identities.controller("resource-claim-controller")


def pod(name="p"):
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    containers = [{"name": "main", "image": "app:1", "env": [{"name": "A", "value": "1"}]}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "resourceClaims": claims}}


def recorded(claim, name="p"):
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": status}


def apply_status(api, claim):
    query = {"fieldManager": "ResourceClaimController", "force": "true"}
    return api("PATCH", f"{PODS}/p/status", recorded(claim), media=APPLY, user=CONTROLLER, **query)


def owners(fields):
    return {
        (one["manager"], one["operation"]): one["fieldsV1"] for one in fields["metadata"]["managedFields"]
    }


def test_an_apply_of_a_status_leaves_the_rest_and_its_owners_alone(api):
    made = api("POST", PODS, pod(), headers={"user-agent": "maker/1"}).body
    applied = apply_status(api, "p-gpu-x")
    assert applied.status == 200, applied.body
    assert applied.body["spec"] == made["spec"]
    assert applied.body["status"] == {**made["status"], **recorded("p-gpu-x")["status"]}
    before, after = owners(made), owners(applied.body)
    assert after["maker", "Update"] == before["maker", "Update"]
    assert after["ResourceClaimController", "Apply"].keys() == {"f:status"}


def test_an_apply_of_a_status_that_says_nothing_new_writes_nothing(api):
    api("POST", PODS, pod())
    once, twice = apply_status(api, "p-gpu-x"), apply_status(api, "p-gpu-x")
    assert twice.body == once.body
    assert apply_status(api, "p-gpu-y").body["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": "p-gpu-y"}
    ]


def test_what_is_not_status_is_not_written_through_a_status(api):
    made = api("POST", PODS, pod()).body
    other = {**recorded("p-gpu-x"), "spec": {"nodeName": "elsewhere"}}
    query = {"fieldManager": "ResourceClaimController", "force": "true"}
    applied = api("PATCH", f"{PODS}/p/status", other, media=APPLY, user=CONTROLLER, **query)
    assert applied.status == 200, applied.body
    assert applied.body["spec"] == made["spec"]
