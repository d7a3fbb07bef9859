"""What lies in the store and another version wrote: S3 when it is read, WCACHE3 where it cannot be."""

import asyncio
import copy
import json
import logging

import pytest

from allot.api import SEAL, kinds
from allot.apiserver import ApiServer
from allot.apiserver.storing.stored import read_stored
from allot.store import Delete, Put

from ..conftest import Api
from ..test_custom import CRDS, DEFINITION, WIDGETS

PODS = "/api/v1/namespaces/default/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
POD_KEY = "/objects/core/pods/default/web"
ROLE_KEY = "/objects/rbac.authorization.k8s.io/roles/default/reader"

JUNK_CLAIM = {"name": "x", "resourceClaimTemplateName": "t", "source": "boom"}
POD = {
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "resourceClaims": [JUNK_CLAIM]},
    "apiVersion": "v1",
    "kind": "Pod",
}
ROLE = {
    "metadata": {"name": "reader", "namespace": "default", "uid": "u2"},
    "aggregationRule": {"clusterRoleSelectors": "junk"},
    "rules": [],
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
}


def seed(api, key, fields):
    """As an earlier version left it: compact, metadata first, no seal."""
    api.run(api.store.transact([], [Put(key, json.dumps(fields, separators=(",", ":")).encode())]))


def restart(api: Api) -> None:
    """Within a bound: a start that never ends is what is tested."""
    api.run(api.server.close())
    api.server = ApiServer(api.store)
    api.run(asyncio.wait_for(api.server.start(), 20))


def ready(api):
    return api("GET", "/readyz")


def test_what_this_server_writes_is_sealed_and_taken_as_it_is(api):
    api("POST", PODS, {**POD, "metadata": {"name": "web"}})
    entry = api.run(api.store.get(POD_KEY))
    assert entry.value.endswith(SEAL)
    pods = next(kind for kind in kinds.ALL if kind.plural == "pods")
    assert read_stored(POD_KEY, entry.value, 1, pods).stored is entry.value


@pytest.mark.parametrize("is_running", [True, False])
def test_a_pod_with_an_untyped_source_stops_nobody(api, is_running):
    """One pod with junk in its claims ended the pods of the whole cluster, for good."""
    if is_running:
        seed(api, POD_KEY, POD)
    else:
        api.run(api.server.close())
        seed(api, POD_KEY, POD)
    restart(api)
    assert ready(api).status == 200
    clean = {"name": "x", "resourceClaimTemplateName": "t"}
    assert api("GET", f"{PODS}/web").body["spec"]["resourceClaims"] == [clean]
    assert api("GET", PODS).body["items"][0]["spec"]["resourceClaims"] == [clean]
    assert api("GET", PODS, resourceVersion="0").body["items"][0]["spec"]["resourceClaims"] == [clean]
    added, *_ = api("GET", PODS, watch="1", timeoutSeconds="1", resourceVersion="0").body
    assert added["object"]["spec"]["resourceClaims"] == [clean]
    assert api("POST", PODS, {**POD, "metadata": {"name": "next"}}).status == 201


def test_the_same_pod_through_the_front_door(api):
    made = api("POST", PODS, {**POD, "metadata": {"name": "web"}})
    assert made.warnings == ['299 - "unknown field \\"spec.resourceClaims[0].source\\""']
    role = {"metadata": {"name": "reader"}, "aggregationRule": "junk", "rules": []}
    assert api("POST", ROLES, role).warnings == ['299 - "unknown field \\"aggregationRule\\""']
    restart(api)
    assert ready(api).status == 200
    assert api("GET", f"{PODS}/web").status == api("GET", f"{ROLES}/reader").status == 200


def test_a_role_with_a_junk_rule_stops_nobody(api):
    seed(api, ROLE_KEY, ROLE)
    restart(api)
    assert ready(api).status == 200
    assert "aggregationRule" not in api("GET", f"{ROLES}/reader").body
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    patched = api("PATCH", f"{ROLES}/reader", {"rules": rules}, media="application/merge-patch+json")
    assert (patched.status, patched.warnings) == (200, [])
    assert b"aggregationRule" not in api.run(api.store.get(ROLE_KEY)).value


def test_an_event_of_an_earlier_version_is_cleaned_on_its_way_to_watchers(api):
    """Another server on the same store may be of an earlier version, and still writes."""
    before = api("GET", PODS).body["metadata"]["resourceVersion"]
    seed(api, POD_KEY, POD)
    for revision in (before, str(int(before) - 1)):
        seen = api("GET", PODS, watch="1", timeoutSeconds="1", resourceVersion=revision).body
        assert [one["type"] for one in seen] == ["ADDED"]
        assert "boom" not in json.dumps(seen)
    assert api("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0}).status == 200
    assert ready(api).status == 200


def test_owners_of_dropped_fields_do_not_break_an_apply(api):
    """Whoever owned a field that no longer exists owns what else they said."""
    api("POST", PODS, {**POD, "metadata": {"name": "web"}})
    stored = json.loads(api.run(api.store.get(POD_KEY)).value)
    stored["spec"]["strange"] = {"deep": 1}
    owned = {
        "f:spec": {"f:strange": {".": {}, "f:deep": {}}, "f:containers": {'k:{"name":"c"}': {"f:odd": {}}}}
    }
    entry = {"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    other = {**entry, "manager": "other"}
    stored["metadata"]["managedFields"] += [
        {**one, "fieldsV1": copy.deepcopy(owned)} for one in (entry, other)
    ]
    seed(api, POD_KEY, stored)
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"strange": 2}}
    how = {"media": "application/apply-patch+yaml", "fieldManager": "me"}
    for _ in range(2):
        applied = api("PATCH", f"{PODS}/web", config, **how)
        assert applied.status == 200, applied.body
        assert applied.body["metadata"]["labels"] == {"a": "b"}
        assert "strange" not in applied.body["spec"]
        mine = [one for one in applied.body["metadata"]["managedFields"] if one["manager"] == "me"]
        assert [one["fieldsV1"] for one in mine] == [{"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {}}]
    running = {"status": {"phase": "Running"}}
    assert api("PATCH", f"{PODS}/web/status", running, media="application/merge-patch+json").status == 200


def test_custom_resources_are_pruned_by_the_schema_of_today(api):
    """A field that their author takes out of the schema is out of the objects, for all who read them."""
    definition = copy.deepcopy(DEFINITION)
    api("POST", CRDS, definition)
    api("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 2, "code": "abc", "free": {"x": 1}}})
    started = api("GET", WIDGETS).body["metadata"]["resourceVersion"]
    assert api("GET", WIDGETS, resourceVersion="0").body["items"][0]["spec"]["code"] == "abc"
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/code"
    patch = [{"op": "remove", "path": place}]
    changed = api("PATCH", f"{CRDS}/widgets.example.com", patch, media="application/json-patch+json")
    assert changed.status == 200

    async def reloaded():
        cache = api.server.caches.made(api.server.registry.kind("example.com", "widgets"))
        while "code" in next(iter(cache.objects.values())).fields["spec"]:
            await cache.moved(0.05)

    api.run(asyncio.wait_for(reloaded(), 20))
    kept = {"size": 2, "color": "red", "free": {"x": 1}}
    assert api("GET", f"{WIDGETS}/w").body["spec"] == kept
    assert api("GET", WIDGETS).body["items"][0]["spec"] == kept
    assert api("GET", WIDGETS, resourceVersion="0").body["items"][0]["spec"] == kept
    earlier = str(int(started) - 1)
    (added,) = api("GET", WIDGETS, watch="1", timeoutSeconds="1", resourceVersion=earlier).body
    assert (added["type"], added["object"]["spec"]) == ("ADDED", kept)


def test_a_listener_that_fails_ends_neither_feed_nor_start_and_shows(api, caplog):
    """WCACHE3: logged once, with the key, and in readyz until the object is gone or reads well."""
    pods = api.server.registry.kind("", "pods")
    cache = api.server.caches.made(pods)
    heard = []

    def picky(change):
        heard.append(change.type)
        if change.type != "DELETED" and change.object.metadata.labels == {"bad": "yes"}:
            raise KeyError("boom")

    cache.listeners.insert(0, picky)
    with caplog.at_level(logging.ERROR):
        api("POST", PODS, {**POD, "metadata": {"name": "web", "labels": {"bad": "yes"}}})
        api("POST", PODS, {**POD, "metadata": {"name": "good"}})
        api.run(reached(api, cache))
        for value in ("again", "and again"):
            note = {"metadata": {"annotations": {"note": value}}}
            api("PATCH", f"{PODS}/web", note, media="application/merge-patch+json")
        api.run(reached(api, cache))
    assert len(heard) == 4
    assert [one.getMessage() for one in caplog.records] == [
        f"a stored object is passed over: {POD_KEY}: 'boom'"
    ]
    shown = ready(api)
    assert shown.status == 500
    assert f"[-]objects failed: {POD_KEY} is passed over: KeyError: 'boom'" in shown.body
    assert api("GET", "/readyz/ping").status == 200

    api("PATCH", f"{PODS}/web", {"metadata": {"labels": None}}, media="application/merge-patch+json")
    api.run(reached(api, cache))
    assert ready(api).status == 200

    api(
        "PATCH", f"{PODS}/web", {"metadata": {"labels": {"bad": "yes"}}}, media="application/merge-patch+json"
    )
    api.run(reached(api, cache))
    assert ready(api).status == 500
    api("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
    api.run(reached(api, cache))
    assert ready(api).status == 200


async def reached(api, cache):
    assert await cache.reach(await api.store.revision(), 20)
    await asyncio.sleep(0)


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"\xff", b'{"kind":"Pod"}', b'{"metadata":1}'])
def test_a_record_that_is_no_object_is_passed_over_and_named(api, value):
    api.run(api.store.transact([], [Put(POD_KEY, value)]))
    restart(api)
    assert POD_KEY in ready(api).body
    assert api("POST", PODS, {**POD, "metadata": {"name": "next"}}).status == 201
    assert [one["metadata"]["name"] for one in api("GET", PODS, resourceVersion="0").body["items"]] == [
        "next"
    ]
    answer = api("GET", f"{PODS}/web")
    assert (answer.status, POD_KEY in answer.body["message"]) == (500, True)
    api.run(api.store.transact([], [Delete(POD_KEY)]))
    api.run(reached(api, api.server.caches.made(api.server.registry.kind("", "pods"))))
    assert ready(api).status == 200


def test_rights_from_a_role_that_can_no_longer_be_read_are_gone(api, monkeypatch):
    """What cannot be read gives nobody any rights, not those that it gave before."""
    from allot.api import User

    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    api("POST", ROLES, {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
    }
    api("POST", ROLES.replace("/roles", "/rolebindings"), binding)
    ann = User("ann")
    roles = api.server.caches.made(api.server.registry.kind("rbac.authorization.k8s.io", "roles"))
    api.run(reached(api, roles))
    assert api("GET", PODS, user=ann).status == 200
    seed(api, ROLE_KEY, {**ROLE, "rules": "junk"})
    api.run(reached(api, roles))
    assert api("GET", PODS, user=ann).status == 403
    assert ROLE_KEY in ready(api).body
