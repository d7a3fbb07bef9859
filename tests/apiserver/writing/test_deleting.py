"""What goes at once, what is held, and what lets go."""

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def config(**metadata):
    return {"metadata": {"name": "a", **metadata}, "data": {"x": "1"}}


def pod(**spec):
    return {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "app:1"}], **spec}}


def test_a_delete_answers_with_the_last_state(api):
    made = api("POST", CONFIGS, config()).body
    gone = api("DELETE", f"{CONFIGS}/a")
    assert gone.status == 200 and gone.body["data"] == made["data"]
    assert api("GET", f"{CONFIGS}/a").status == 404
    assert api("DELETE", f"{CONFIGS}/a").status == 404


def test_a_finalizer_holds_an_object_until_it_is_removed(api):
    made = api("POST", CONFIGS, config(finalizers=["example.com/hold"])).body
    held = api("DELETE", f"{CONFIGS}/a").body
    assert held["metadata"]["deletionTimestamp"]
    again = api("DELETE", f"{CONFIGS}/a").body
    assert again["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    added = {
        **again,
        "metadata": {**again["metadata"], "finalizers": ["example.com/hold", "example.com/new"]},
    }
    assert api("PUT", f"{CONFIGS}/a", added).status == 422
    free = {**made, "metadata": {**again["metadata"], "finalizers": []}}
    assert api("PUT", f"{CONFIGS}/a", free).status == 200
    assert api("GET", f"{CONFIGS}/a").status == 404


def test_preconditions_protect_what_the_caller_has_not_seen(api):
    made = api("POST", CONFIGS, config()).body
    wrong = {"kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    refused = api("DELETE", f"{CONFIGS}/a", wrong)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    old = {"preconditions": {"resourceVersion": "1"}}
    assert api("DELETE", f"{CONFIGS}/a", old).status == 409
    right = {"preconditions": {"uid": made["metadata"]["uid"]}}
    assert api("DELETE", f"{CONFIGS}/a", right).status == 200


def test_propagation_becomes_a_finalizer_for_the_garbage_collector(api):
    for policy, finalizer in (("Orphan", "orphan"), ("Foreground", "foregroundDeletion")):
        api("POST", CONFIGS, config())
        held = api("DELETE", f"{CONFIGS}/a", {"propagationPolicy": policy}).body
        assert held["metadata"]["finalizers"] == [finalizer]
        api("PUT", f"{CONFIGS}/a", {**held, "metadata": {**held["metadata"], "finalizers": []}})
    api("POST", CONFIGS, config())
    assert api("DELETE", f"{CONFIGS}/a", propagationPolicy="Background").status == 200
    assert api("DELETE", f"{CONFIGS}/a", {"propagationPolicy": "Sideways"}).status == 422


def test_a_pod_on_a_node_is_given_time_and_others_are_not(api):
    api("POST", PODS, pod())
    api("DELETE", f"{PODS}/web")
    assert api("GET", f"{PODS}/web").status == 404
    api("POST", PODS, pod(nodeName="n1"))
    held = api("DELETE", f"{PODS}/web").body["metadata"]
    assert held["deletionGracePeriodSeconds"] == 30
    assert api("GET", f"{PODS}/web").status == 200
    api("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
    assert api("GET", f"{PODS}/web").status == 404


def test_a_dry_run_deletes_nothing(api):
    api("POST", CONFIGS, config())
    assert api("DELETE", f"{CONFIGS}/a", dryRun="All").status == 200
    assert api("DELETE", f"{CONFIGS}/a", {"dryRun": ["All"]}).status == 200
    assert api("GET", f"{CONFIGS}/a").status == 200


def test_a_collection_goes_as_far_as_its_selector_reaches(api):
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        api("POST", CONFIGS, {"metadata": {"name": name, "labels": {"app": app}}})
    gone = api("DELETE", CONFIGS, labelSelector="app=x")
    assert [item["metadata"]["name"] for item in gone.body["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in api("GET", CONFIGS).body["items"]] == ["c"]


def test_a_namespace_waits_for_its_content_and_some_stay_for_ever(api):
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "old"}})
    held = api("DELETE", "/api/v1/namespaces/old").body
    assert held["status"]["phase"] == "Terminating"
    assert api("DELETE", "/api/v1/namespaces/default").status == 403


def test_a_delete_of_a_body_that_is_no_options_is_refused(api):
    api("POST", CONFIGS, config())
    assert api("DELETE", f"{CONFIGS}/a", {"kind": "Pod"}).status == 400
    assert api("DELETE", f"{CONFIGS}/a", b"{").status == 400
    assert api("GET", f"{CONFIGS}/a").status == 200


def test_a_grace_beyond_the_calendar_is_as_long_as_the_calendar(api):
    """S4: a number that no clock reaches is no reason to fail."""
    api("POST", PODS, pod(nodeName="n", terminationGracePeriodSeconds=2**63 - 1))
    held = api("DELETE", f"{PODS}/web")
    assert held.status == 200
    assert held.body["metadata"]["deletionTimestamp"].startswith("9999-12-31")
    assert held.body["metadata"]["deletionGracePeriodSeconds"] == 2**63 - 1
    assert api("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0}).status == 200
    assert api("GET", f"{PODS}/web").status == 404
