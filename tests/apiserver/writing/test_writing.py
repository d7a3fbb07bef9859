"""create and update, as clients see them."""

import pytest

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}


def config(name="a", **more):
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "data": {"x": "1"}, **more}


def test_a_created_object_gets_what_only_the_server_knows(api):
    made = api("POST", CONFIGS, config())
    assert made.status == 201
    metadata = made.body["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["uid"] and metadata["creationTimestamp"] and metadata["resourceVersion"]
    assert made.body["kind"] == "ConfigMap" and made.body["apiVersion"] == "v1"
    assert api("GET", f"{CONFIGS}/a").body == made.body


def test_a_name_is_taken_once(api):
    api("POST", CONFIGS, config())
    again = api("POST", CONFIGS, config())
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "a" already exists'
    assert again.body["details"] == {"name": "a", "kind": "configmaps"}


def test_generated_names_differ_and_fit_a_label(api):
    base = "x" * 70 + "-"
    names = {
        api("POST", CONFIGS, {"metadata": {"generateName": base}}).body["metadata"]["name"] for _ in range(20)
    }
    assert len(names) == 20
    assert all(len(name) == 63 and name.startswith("x" * 58) for name in names)


def test_nothing_is_created_where_no_namespace_is(api):
    answer = api("POST", "/api/v1/namespaces/nowhere/configmaps", config())
    assert (answer.status, answer.body["message"]) == (404, 'namespaces "nowhere" not found')


def test_nothing_new_enters_a_namespace_that_is_going_away(api):
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "old"}})
    api("DELETE", "/api/v1/namespaces/old")
    answer = api("POST", "/api/v1/namespaces/old/configmaps", config())
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.causes == [("metadata.namespace", "NamespaceTerminating")]


def test_the_body_may_not_name_another_namespace_name_or_kind(api):
    other = config(metadata={"namespace": "kube-system"})
    assert api("POST", CONFIGS, other).status == 400
    assert api("POST", CONFIGS, {**config(), "kind": "Secret"}).status == 400
    api("POST", CONFIGS, config())
    assert api("PUT", f"{CONFIGS}/a", config("b")).status == 400


def test_an_update_with_an_old_resource_version_is_a_conflict(api):
    """Two people edit the same object; the second one must look again."""
    first = api("POST", CONFIGS, config()).body
    assert api("PUT", f"{CONFIGS}/a", {**first, "data": {"x": "2"}}).status == 200
    late = api("PUT", f"{CONFIGS}/a", {**first, "data": {"x": "3"}})
    assert (late.status, late.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.body["message"]
    assert api("GET", f"{CONFIGS}/a").body["data"] == {"x": "2"}


def test_an_update_without_a_resource_version_wins(api):
    api("POST", CONFIGS, config())
    assert api("PUT", f"{CONFIGS}/a", {**config(), "data": {"x": "9"}}).body["data"] == {"x": "9"}


def test_a_write_that_changes_nothing_makes_no_new_version(api):
    first = api("POST", CONFIGS, config()).body
    second = api("PUT", f"{CONFIGS}/a", first)
    assert second.body["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_an_update_of_nothing_is_not_found(api):
    answer = api("PUT", f"{CONFIGS}/a", config())
    assert (answer.status, answer.body["message"]) == (404, 'configmaps "a" not found')


def test_the_server_keeps_its_own_fields(api):
    first = api("POST", CONFIGS, config()).body
    changed = {**first, "metadata": {**first["metadata"], "creationTimestamp": "1999-01-01T00:00:00Z"}}
    answer = api("PUT", f"{CONFIGS}/a", {**changed, "data": {"x": "2"}})
    assert answer.body["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]


def test_another_uid_is_another_object(api):
    first = api("POST", CONFIGS, config()).body
    first["metadata"]["uid"] = "another"
    answer = api("PUT", f"{CONFIGS}/a", first)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch"])
@pytest.mark.parametrize("path", [f"{PODS}/web", f"{PODS}/web/status"])
def test_a_patch_for_another_uid_is_refused(api, kind, path):
    """422, not 409. A pod of the same name that came later is not the one that was meant."""
    first = api("POST", PODS, POD).body
    patch = {"metadata": {"uid": "another", "labels": {"a": "b"}}, "status": {"phase": "Running"}}
    answer = api("PATCH", path, patch, media=f"application/{kind}+json")
    assert (answer.status, answer.causes) == (422, [("metadata.uid", "FieldValueInvalid")])
    patch["metadata"]["uid"] = first["metadata"]["uid"]
    assert api("PATCH", path, patch, media=f"application/{kind}+json").status == 200


def test_strict_clients_are_refused_what_lenient_ones_are_warned_of(api):
    body = {**POD, "spec": {**POD["spec"], "fromTheFuture": 1}}
    strict = api("POST", PODS, body, fieldValidation="Strict")
    assert strict.status == 400
    assert 'strict decoding error: unknown field "spec.fromTheFuture"' in strict.body["message"]
    assert api("GET", f"{PODS}/web").status == 404
    assert api("POST", PODS, body, fieldValidation="Ignore").warnings == []


def test_a_key_given_twice_is_told_of(api):
    body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    assert api("POST", CONFIGS, body).warnings == ['299 - "duplicate field \\"data.x\\""']
    assert api("POST", CONFIGS, body, fieldValidation="Strict").status == 400


def test_wrong_types_are_named(api):
    answer = api("POST", PODS, {**POD, "spec": {"containers": {"name": "x"}}})
    assert answer.status == 400
    assert "spec.containers" in answer.body["message"]


def test_a_dry_run_changes_nothing(api):
    made = api("POST", CONFIGS, config(), dryRun="All")
    assert made.status == 201 and "resourceVersion" not in made.body["metadata"]
    assert api("GET", f"{CONFIGS}/a").status == 404
    api("POST", CONFIGS, config())
    assert api("PUT", f"{CONFIGS}/a", {**config(), "data": {"y": "2"}}, dryRun="All").body["data"] == {
        "y": "2"
    }
    assert api("GET", f"{CONFIGS}/a").body["data"] == {"x": "1"}
    assert api("POST", CONFIGS, config(), dryRun="some").status == 400
    made = api("POST", CONFIGS, config("b")).body
    assert api("PUT", f"{CONFIGS}/b", made, dryRun="some").status == 400, "also where nothing would change"


def test_status_is_written_through_its_own_door(api):
    made = api("POST", PODS, {**POD, "status": {"phase": "Running"}}).body
    assert made["status"]["phase"] == "Pending"
    plain = api("PUT", f"{PODS}/web", {**made, "status": {"phase": "Running"}})
    assert plain.body["status"]["phase"] == "Pending"
    moved = {**made, "spec": {**made["spec"], "nodeName": "elsewhere"}, "status": {"phase": "Running"}}
    status = api("PUT", f"{PODS}/web/status", moved)
    assert status.body["status"]["phase"] == "Running"
    assert "nodeName" not in status.body["spec"]


def test_invalid_objects_are_refused_with_every_reason(api):
    answer = api(
        "POST", PODS, {"metadata": {"name": "UPPER", "labels": {"a": "-"}}, "spec": {"containers": []}}
    )
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    fields = [field for field, _ in answer.causes]
    assert "metadata.name" in fields and "metadata.labels" in fields and "spec.containers" in fields
    assert api("GET", PODS).body["items"] == []


def test_writers_own_what_they_write(api):
    api("POST", CONFIGS, config(), fieldManager="first")
    api("PUT", f"{CONFIGS}/a", {**config(), "data": {"x": "1", "y": "2"}}, fieldManager="second")
    managed = api("GET", f"{CONFIGS}/a").body["metadata"]["managedFields"]
    owners = {entry["manager"]: entry["fieldsV1"] for entry in managed}
    assert owners == {"first": {"f:data": {".": {}, "f:x": {}}}, "second": {"f:data": {"f:y": {}}}}


def test_media_types_that_are_not_read_are_refused(api):
    assert api("POST", CONFIGS, config(), media="text/plain").status == 415
    assert api("POST", CONFIGS, config(), headers={"content-encoding": "gzip"}).status == 415
    assert api("GET", CONFIGS, accept="application/vnd.kubernetes.protobuf").status == 406
    both = "application/vnd.kubernetes.protobuf,application/json"
    assert api("GET", CONFIGS, accept=both).status == 200


def test_yaml_is_read_as_json_is(api):
    body = b"metadata:\n  name: a\ndata:\n  x: '1'\n"
    assert api("POST", CONFIGS, body, media="application/yaml").body["data"] == {"x": "1"}


def test_bodies_made_to_hurt_are_refused_quickly(api):
    """S4. Depth, exponents, alias bombs: one answer each, and the server goes on."""
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    assert api("POST", CONFIGS, deep).status == 400
    huge = b'{"metadata":{"name":"a"},"data":{"x":1e3000000}}'
    assert api("POST", CONFIGS, huge).status == 400
    quantity = {**POD["spec"], "overhead": {"cpu": "1e3000000"}}
    assert api("POST", PODS, {**POD, "spec": quantity}).status in (400, 422)
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert api("POST", CONFIGS, "\n".join(lines).encode(), media="application/yaml").status == 400
    assert api("POST", CONFIGS, b"\xff\xfe").status == 400
    assert api("POST", CONFIGS, b"[]").status == 400
    assert api("POST", CONFIGS, config()).status == 201


def test_objects_that_differ_only_in_whose_they_are_own_their_owners_themselves(api):
    """As claims made from one template for many pods are."""

    def made(number, **metadata):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"u{number}"}
        sent = config(f"c{number}", metadata={"labels": {"a": "b"}, "ownerReferences": [owner], **metadata})
        return api("POST", CONFIGS, sent).body["metadata"]["managedFields"][0]["fieldsV1"]

    def expected(number, **more):
        owners = {".": {}, f'k:{{"uid":"u{number}"}}': {}}
        labels = {".": {}, "f:a": {}}
        metadata = {"f:labels": labels, "f:ownerReferences": owners, **more}
        return {"f:data": {".": {}, "f:x": {}}, "f:metadata": metadata}

    assert [made(number) for number in range(3)] == [expected(number) for number in range(3)]
    assert made(3, generateName="c-") == expected(3, **{"f:generateName": {}})
    assert (
        "f:metadata"
        not in api("POST", CONFIGS, config("plain")).body["metadata"]["managedFields"][0]["fieldsV1"]
    )


def test_objects_that_are_alike_have_records_of_their_own(api):
    """The fields of alike objects are found once; who wrote each, and when, is not."""
    for name, manager in (("a", "first"), ("b", "second"), ("c", "second")):
        api("POST", CONFIGS, config(name), fieldManager=manager)
    api("PUT", f"{CONFIGS}/b", {**config("b"), "data": {"y": "2"}}, fieldManager="third")
    records = {
        name: {entry["manager"]: entry["fieldsV1"] for entry in managed}
        for name in "abc"
        for managed in [api("GET", f"{CONFIGS}/{name}").body["metadata"]["managedFields"]]
    }
    whole = {"f:data": {".": {}, "f:x": {}}}
    assert records["a"] == {"first": whole} and records["c"] == {"second": whole}
    assert records["b"]["third"] == {"f:data": {"f:y": {}}}
    labelled = api("POST", CONFIGS, config("d", metadata={"labels": {"app": "x"}}), fieldManager="first").body
    owned = labelled["metadata"]["managedFields"][0]["fieldsV1"]
    assert owned == {**whole, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}


def test_an_update_gets_defaults_in_what_it_changes_and_keeps_what_it_says_again(api):
    """The spec is sent along as it is stored; the second container is new and says little."""
    made = api("POST", PODS, POD).body
    assert made["spec"]["containers"][0]["terminationMessagePolicy"] == "File"
    status = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
    told = api("PUT", f"{PODS}/web/status", {**made, "status": status}).body
    assert told["spec"] == made["spec"]

    labelled = {**told, "metadata": {**told["metadata"], "labels": {"a": "b"}}}
    kept = api("PUT", f"{PODS}/web", labelled).body
    assert (kept["spec"], kept["status"]) == (told["spec"], told["status"])

    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    wanted = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    web = api("POST", deployments, {"metadata": {"name": "web"}, "spec": wanted}).body
    two = [*web["spec"]["template"]["spec"]["containers"], {"name": "side", "image": "side:1"}]
    web["spec"]["template"]["spec"]["containers"] = two
    changed = api("PUT", f"{deployments}/web", web).body
    assert changed["spec"]["template"]["spec"]["containers"][1]["terminationMessagePolicy"] == "File"


def test_a_secret_whose_data_is_sent_along_takes_what_is_said_in_plain_words(api):
    """Its data follows from both: a part that is stored just so is not always settled."""
    secrets = "/api/v1/namespaces/default/secrets"
    made = api("POST", secrets, {"metadata": {"name": "s"}, "data": {"a": "YQ=="}}).body
    changed = api("PUT", f"{secrets}/s", {**made, "stringData": {"b": "bbb"}}).body
    assert changed["data"] == {"a": "YQ==", "b": "YmJi"}
    merge = "application/merge-patch+json"
    again = api("PATCH", f"{secrets}/s", {"stringData": {"b": "two"}}, media=merge).body
    assert again["data"] == {"a": "YQ==", "b": "dHdv"}


def test_a_job_that_loses_its_labels_gets_those_of_its_template_back(api):
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    spec = {**POD["spec"], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"t": "1"}}, "spec": spec}
    made = api("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": template}}).body
    bare = {**made, "metadata": {name: value for name, value in made["metadata"].items() if name != "labels"}}
    assert api("PUT", f"{jobs}/j", bare).body["metadata"]["labels"]["t"] == "1"


def test_true_is_not_one(api):
    """They are equal to Python, and another thing to the driver that reads them."""

    def driver(value):
        return {"opaque": {"driver": "gpu.example.com", "parameters": {"share": value}}}

    device_class = "/apis/resource.k8s.io/v1/deviceclasses/gpu"
    api(
        "POST",
        device_class.rpartition("/")[0],
        {"metadata": {"name": "gpu"}, "spec": {"config": [driver(1)]}},
    )
    old = api("GET", device_class).body
    new = api("PUT", device_class, {**old, "spec": {"config": [driver(True)]}}).body
    assert new["spec"]["config"][0]["opaque"]["parameters"] == {"share": True}
    assert new["metadata"]["generation"] == old["metadata"]["generation"] + 1

    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    asked = {
        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}], "config": [driver(1)]}
    }
    claim = api("POST", claims, {"metadata": {"name": "mine"}, "spec": asked}).body
    assert api("PUT", f"{claims}/mine", claim).status == 200
    claim["spec"]["devices"]["config"] = [driver(True)]
    refused = api("PUT", f"{claims}/mine", claim)
    assert refused.status == 422 and refused.causes == [("spec", "FieldValueInvalid")]
