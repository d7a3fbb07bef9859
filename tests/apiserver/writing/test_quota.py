"""Q1: quotas hold, also for many writers at once and for two servers on one store."""

import asyncio
import json
import random
from contextlib import asynccontextmanager

import pytest

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import MemoryStore

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"


def quota(api, hard, used=None, name="q", **spec):
    """A quota that somebody has counted already."""
    made = api("POST", QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    assert made.status == 201, made.body
    status = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    assert api("PUT", f"{QUOTAS}/{name}/status", {**made.body, "status": status}).status == 200


def used(api, name="q"):
    return api("GET", f"{QUOTAS}/{name}").body["status"]["used"]


def config_map(name="m"):
    return {"metadata": {"name": name}}


def pod(name="p", requests=None, limits=None, **spec):
    resources = {"requests": requests or {}, "limits": limits or {}}
    containers = [{"name": "main", "image": "app:1", "resources": resources}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def claim(name="c", **exactly):
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def test_what_fits_is_made_and_counted_with_it(api):
    quota(api, {"configmaps": "2", "count/configmaps": "5"})
    made = api("POST", MAPS, config_map())
    assert made.status == 201
    counted = api("GET", f"{QUOTAS}/q").body
    assert counted["status"]["used"] == {"configmaps": "1", "count/configmaps": "1"}
    assert counted["metadata"]["resourceVersion"] == made.body["metadata"]["resourceVersion"], (
        "one transaction"
    )


def test_what_does_not_fit_is_refused_in_upstreams_words(api):
    quota(api, {DEVICES: "1"}, {DEVICES: "82"})
    refused = api("POST", CLAIMS, claim("x"))
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert refused.body["message"] == (
        'resourceclaims.resource.k8s.io "x" is forbidden: exceeded quota: q, '
        f"requested: {DEVICES}=1, used: {DEVICES}=82, limited: {DEVICES}=1"
    )
    assert api("GET", f"{CLAIMS}/x").status == 404
    assert used(api) == {DEVICES: "82"}


def test_the_first_quota_that_refuses_is_named_and_none_is_charged(api):
    quota(api, {"configmaps": "5"}, name="a")
    quota(api, {"configmaps": "0"}, name="b")
    quota(api, {"secrets": "0"}, name="c")
    assert "exceeded quota: b," in api("POST", MAPS, config_map()).body["message"]
    assert used(api, "a") == {"configmaps": "0"}


def test_a_quota_that_nobody_has_counted_yet_lets_nothing_through(api):
    """As upstream: better to wait than to hand out what is not there."""
    api("POST", QUOTAS, {"metadata": {"name": "new"}, "spec": {"hard": {"configmaps": "9"}}})
    refused = api("POST", MAPS, config_map())
    assert refused.status == 403
    assert refused.body["message"].endswith("status unknown for quota: new, resources: configmaps")
    assert api("POST", "/api/v1/namespaces/default/secrets", config_map()).status == 201


def test_other_namespaces_are_not_concerned(api):
    quota(api, {"configmaps": "0"})
    assert api("POST", MAPS.replace("default", "kube-public"), config_map()).status == 201


def test_claims_are_counted_by_class(api):
    """Rule 6.4: charged when the claim is made, in upstream's words where it does not fit."""
    quota(api, {DEVICES: "40", "count/resourceclaims.resource.k8s.io": "2"})
    assert api("POST", CLAIMS, claim("three", count=3)).status == 201
    assert api("POST", CLAIMS, claim("all", allocationMode="All")).status == 201
    assert used(api) == {DEVICES: "35", "count/resourceclaims.resource.k8s.io": "2"}
    refused = api("POST", CLAIMS, claim("more")).body["message"]
    assert "requested: count/resourceclaims.resource.k8s.io=1" in refused


def test_a_claim_is_charged_when_it_is_made_and_not_when_it_is_allocated(api):
    """5004-QUOTA-12: Rule 6.4: the charge follows from the spec, which cannot change."""
    quota(api, {DEVICES: "3", "count/resourceclaims.resource.k8s.io": "1"})
    assert api("POST", CLAIMS, claim("c", count=3)).status == 201
    charged = used(api)
    made = api("GET", f"{CLAIMS}/c").body
    result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    made = api("PUT", f"{CLAIMS}/c", made).body
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    answer = api("PUT", f"{CLAIMS}/c/status", made)
    assert answer.status == 200, answer.body
    assert used(api) == charged == {DEVICES: "3", "count/resourceclaims.resource.k8s.io": "1"}


def test_claims_in_an_older_version_are_counted_the_same(api):
    quota(api, {DEVICES: "2"})
    request = {"name": "r", "deviceClassName": "gpu.example.com", "count": 2}
    body = {"metadata": {"name": "old"}, "spec": {"devices": {"requests": [request]}}}
    made = api("POST", CLAIMS.replace("v1/", "v1beta1/"), body)
    assert made.status == 201, made.body
    assert used(api) == {DEVICES: "2"}


def test_a_claim_is_charged_under_the_names_of_its_class(api):
    """KEP-5004, under the mapping in force now."""
    implicit, extended = (
        "requests.deviceclass.resource.kubernetes.io/gpu.example.com",
        "requests.example.com/gpu",
    )
    quota(api, {extended: "9", implicit: "9", DEVICES: "9"})
    assert api("POST", CLAIMS, claim("before", count=2)).status == 201
    assert used(api) == {extended: "0", implicit: "2", DEVICES: "2"}
    mapped = {"metadata": {"name": "gpu.example.com"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    assert api("POST", CLASSES, mapped).status == 201
    assert api("POST", CLAIMS, claim("after", count=3)).status == 201
    assert used(api) == {extended: "3", implicit: "5", DEVICES: "5"}


def test_the_claim_of_a_pods_extended_resources_is_not_charged_twice(api):
    """Rule 6.4: what the pod was charged is subtracted from what its claim pays."""
    extended = "requests.example.com/gpu"
    quota(api, {extended: "2", DEVICES: "2"})
    mapped = {"metadata": {"name": "gpu.example.com"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    assert api("POST", CLASSES, mapped).status == 201
    asker = api("POST", PODS, pod("p", {"example.com/gpu": "2"}, {"example.com/gpu": "2"})).body
    assert used(api) == {extended: "2", DEVICES: "2"}  # whoever will serve it
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": asker["metadata"]["uid"],
        "controller": True,
    }
    made = claim("p-extended", count=2)
    made["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    made["metadata"]["ownerReferences"] = [owner]
    answer = api("POST", CLAIMS, made)
    assert answer.status == 201, answer.body
    assert used(api) == {extended: "2", DEVICES: "2"}


def test_pods_are_charged_for_what_they_request(api):
    quota(api, {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "10"})
    small = pod("small", {"cpu": "600m"}, {"memory": "512Mi"})
    assert api("POST", PODS, small).status == 201
    assert used(api) == {"requests.cpu": "600m", "limits.memory": "512Mi", "pods": "1"}
    refused = api("POST", PODS, {**small, "metadata": {"name": "second"}}).body["message"]
    assert refused == (
        'pods "second" is forbidden: exceeded quota: q, '
        "requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    )


def test_a_pod_must_say_what_is_counted(api):
    quota(api, {"cpu": "1", "limits.memory": "1Gi"})
    refused = api("POST", PODS, pod())
    assert (refused.status, refused.body["message"]) == (
        403,
        'pods "p" is forbidden: failed quota: q: must specify cpu for: main; limits.memory for: main',
    )


def test_scoped_quotas_count_what_is_in_scope(api):
    quota(api, {"pods": "1"}, scopes=["Terminating"])
    assert api("POST", PODS, pod("lasting")).status == 201
    assert used(api) == {"pods": "0"}
    assert api("POST", PODS, pod("ending", activeDeadlineSeconds=60)).status == 201
    assert api("POST", PODS, pod("more", activeDeadlineSeconds=60)).status == 403


def test_an_update_that_brings_a_pod_into_scope_is_charged(api):
    quota(api, {"pods": "1"}, {"pods": "1"}, scopes=["Terminating"])
    made = api("POST", PODS, pod()).body
    made["spec"]["activeDeadlineSeconds"] = 60
    assert "exceeded quota" in api("PUT", f"{PODS}/p", made).body["message"]
    status = {**api("GET", f"{PODS}/p").body, "status": {"phase": "Running"}}
    assert api("PUT", f"{PODS}/p/status", status).status == 200


def test_an_update_that_takes_more_is_charged_the_difference(api):
    services = "/api/v1/namespaces/default/services"
    quota(api, {"services.nodeports": "2", "services": "1"})
    spec = {"ports": [{"name": "a", "port": 80}], "selector": {"app": "x"}}
    made = api("POST", services, {"metadata": {"name": "s"}, "spec": spec}).body
    made["spec"]["type"] = "NodePort"
    changed = api("PUT", f"{services}/s", made)
    assert changed.status == 200, changed.body
    assert used(api) == {"services.nodeports": "1", "services": "1"}


def test_a_dry_run_is_judged_and_not_charged(api):
    quota(api, {"configmaps": "1"})
    assert api("POST", MAPS, config_map(), dryRun="All").status == 201
    assert used(api) == {"configmaps": "0"}
    assert api("POST", MAPS, config_map()).status == 201
    assert api("POST", MAPS, config_map("second"), dryRun="All").status == 403


def test_a_name_that_was_not_limited_for_a_while_must_be_counted_anew(api):
    """Meanwhile objects were made that nobody charged for."""
    quota(api, {"configmaps": "5", "secrets": "5"})
    for hard in ({"secrets": "5"}, {"configmaps": "5", "secrets": "5"}):
        current = api("GET", f"{QUOTAS}/q").body
        assert api("PUT", f"{QUOTAS}/q", {**current, "spec": {"hard": hard}}).status == 200
    assert used(api) == {"secrets": "0"}
    assert "status unknown" in api("POST", MAPS, config_map()).body["message"]


def test_what_is_no_longer_counted_is_forgotten_in_the_store_too(api):
    """Not only in the answer: a server that reads the quota from the store would count on from there."""
    quota(api, {"configmaps": "9", "secrets": "9"}, {"configmaps": "3", "secrets": "2"})
    narrowed = {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "9"}}}
    answer = api("PUT", f"{QUOTAS}/q", narrowed)
    assert answer.body["status"]["used"] == {"secrets": "2"}
    assert used(api) == {"secrets": "2"}


def test_lowering_a_limit_holds_at_once(api):
    quota(api, {"configmaps": "5"}, {"configmaps": "3"})
    current = api("GET", f"{QUOTAS}/q").body
    assert api("PUT", f"{QUOTAS}/q", {**current, "spec": {"hard": {"configmaps": "3"}}}).status == 200
    assert api("POST", MAPS, config_map()).status == 403


def test_custom_resources_are_counted(api):
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    made = api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert made.status == 201, made.body
    quota(api, {"count/widgets.example.com": "1"})
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}

    async def served():
        for _ in range(500):
            if (await api.ask("GET", widgets)).status == 200:
                return
            await asyncio.sleep(0.01)

    api.run(served())
    assert api("POST", widgets, widget).status == 201
    assert api("POST", widgets, {**widget, "metadata": {"name": "v"}}).status == 403


# -- many at once -------------------------------------------------------------------------------


def test_fifty_writers_of_ten_places(api):
    quota(api, {"configmaps": "10"})

    async def story():
        writers = [api.ask("POST", MAPS, config_map(f"m{n}")) for n in range(50)]
        return [answer.status for answer in await asyncio.gather(*writers)]

    statuses = api.run(story())
    assert sorted(set(statuses)) == [201, 403]
    assert statuses.count(201) == 10
    made = api("GET", MAPS).body["items"]
    assert len([one for one in made if one["metadata"]["name"].startswith("m")]) == 10
    assert used(api) == {"configmaps": "10"}


class SlowStore:
    """A store that others get in the way of, before and after each answer, as over a network."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        self._rng = random.Random(5)

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def get(self, key):
        return await self._slowly(lambda: self._store.get(key))

    async def range(self, prefix, **how):
        return await self._slowly(lambda: self._store.range(prefix, **how))

    async def transact(self, compares, writes):
        return await self._slowly(lambda: self._store.transact(compares, writes))

    async def _slowly(self, asking):
        await self._wait()
        answer = await asking()
        await self._wait()
        return answer

    async def _wait(self):
        for _ in range(8 + self._rng.randrange(4)):
            await asyncio.sleep(0)


@asynccontextmanager
async def servers(count):
    """API servers that share a store and nothing else."""
    store = SlowStore()
    made = [ApiServer(store) for _ in range(count)]
    for server in made:
        await server.start()
    yield made
    for server in made:
        await server.close()
    await store.close()


async def ask(server, method, path, body):
    raw = json.dumps(body).encode()
    request = Request(method, path, {}, {"content-type": "application/json"}, raw)
    response = await server.handle(request, identities.ADMIN)
    return response.status, json.loads(response.body)


@pytest.mark.parametrize(
    "choose",
    [lambda n, one, two: (one, two)[n % 2], lambda n, one, two: one],
    ids=["both asked", "one asked"],
)
def test_two_servers_do_not_both_give_the_last_place(choose):
    """Thirty rounds: without turns somebody would lose more often than a write is tried again."""

    async def story():
        async with servers(2) as (one, two):
            terms = {"hard": {"configmaps": "30"}}
            _, made = await ask(one, "POST", QUOTAS, {"metadata": {"name": "q"}, "spec": terms})
            status = {**terms, "used": {"configmaps": "0"}}
            await ask(one, "PUT", f"{QUOTAS}/q/status", {**made, "status": status})
            writers = [ask(choose(n, one, two), "POST", MAPS, config_map(f"m{n}")) for n in range(50)]
            statuses = [status for status, _ in await asyncio.gather(*writers)]
            assert statuses.count(201) == 30, statuses
            assert set(statuses) == {201, 403}
            _, counted = await ask(two, "GET", f"{QUOTAS}/q", {})
            assert counted["status"]["used"] == {"configmaps": "30"}

    asyncio.run(story())


@pytest.mark.parametrize("steps", range(0, 100, 4))
def test_no_write_slips_past_a_quota_that_is_just_being_made(steps):
    """Another server makes the quota while this one is somewhere in the middle of a write."""

    async def story():
        async with servers(2) as (one, two):
            body = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}}
            writing = asyncio.create_task(ask(two, "POST", MAPS, config_map()))
            for _ in range(steps):
                await asyncio.sleep(0)
            _, made = await ask(one, "POST", QUOTAS, body)
            status, written = await writing
            if status == 201:
                version = int(made["metadata"]["resourceVersion"])
                assert int(written["metadata"]["resourceVersion"]) < version, (
                    "made after the quota, uncharged"
                )
            else:
                assert status == 403

    asyncio.run(story())


def test_a_server_that_has_not_heard_of_a_quota_keeps_it(api):
    """Its cache stands still; the namespace, which every write compares, does not."""
    quotas = api.server.caches.made(api.server.registry.kind("", "resourcequotas"))
    api.run(quotas.close())
    quota(api, {"configmaps": "0"})
    assert quotas.objects == {}
    assert api("POST", MAPS, config_map()).status == 403
