"""D1 and D2: two schedulers, one device."""

import pytest

from allot.store import Refused

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def claim(api, name):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    made = api("POST", CLAIMS, body)
    assert made.status == 201, made.body
    return made.body


def allocate(api, made, *devices, **more):
    results = [
        {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": device, **more}
        for device in devices
    ]
    status = {"allocation": {"devices": {"results": results}}}
    return api("PUT", f"{CLAIMS}/{made['metadata']['name']}/status", {**made, "status": status})


def deallocate(api, name):
    current = api("GET", f"{CLAIMS}/{name}").body
    return api("PUT", f"{CLAIMS}/{name}/status", {**current, "status": {}})


def test_the_second_writer_of_a_device_is_refused(api):
    first, second = claim(api, "first"), claim(api, "second")
    assert allocate(api, first, "gpu-0").status == 200
    late = allocate(api, second, "gpu-0")
    assert (late.status, late.body["reason"]) == (409, "Conflict")
    assert "gpu-0" in late.body["message"]
    assert "allocation" not in api("GET", f"{CLAIMS}/second").body["status"]
    assert allocate(api, second, "gpu-1").status == 200


def test_a_device_is_free_again_when_its_claim_gives_it_back(api):
    first, second = claim(api, "first"), claim(api, "second")
    allocate(api, first, "gpu-0")
    assert deallocate(api, "first").status == 200
    assert allocate(api, second, "gpu-0").status == 200


def test_a_device_is_free_again_when_its_claim_is_deleted(api):
    first, second = claim(api, "first"), claim(api, "second")
    allocate(api, first, "gpu-0")
    api("DELETE", f"{CLAIMS}/first")
    assert allocate(api, second, "gpu-0").status == 200


def test_a_claim_that_is_held_back_keeps_its_device(api):
    """The finalizer says that somebody still uses it."""
    first, second = claim(api, "first"), claim(api, "second")
    metadata = {**first["metadata"], "finalizers": ["resource.kubernetes.io/delete-protection"]}
    first = api("PUT", f"{CLAIMS}/first", {**first, "metadata": metadata}).body
    allocate(api, first, "gpu-0")
    api("DELETE", f"{CLAIMS}/first")
    assert allocate(api, second, "gpu-0").status == 409
    held = api("GET", f"{CLAIMS}/first").body
    released = {**held, "metadata": {**held["metadata"], "finalizers": []}}
    assert api("PUT", f"{CLAIMS}/first", released).status == 200
    assert allocate(api, second, "gpu-0").status == 200


def test_admin_access_holds_nothing(api):
    label = {"resource.kubernetes.io/admin-access": "true"}
    namespace = api("GET", "/api/v1/namespaces/default").body
    namespace["metadata"]["labels"] = {**namespace["metadata"]["labels"], **label}
    assert api("PUT", "/api/v1/namespaces/default", namespace).status == 200
    first = claim(api, "first")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "adminAccess": True}}
    admin = api(
        "POST", CLAIMS, {"metadata": {"name": "admin"}, "spec": {"devices": {"requests": [request]}}}
    ).body
    assert allocate(api, admin, "gpu-0", adminAccess=True).status == 200
    assert allocate(api, first, "gpu-0").status == 200


@pytest.mark.parametrize("bandwidths, status", [(("6G", "4G"), 200), (("6G", "5G"), 409)])
def test_shares_fit_until_the_capacity_is_used_up(api, bandwidths, status):
    device = {"name": "nic-0", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10G"}}}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": [device]}
    assert api("POST", SLICES, {"metadata": {"name": "s"}, "spec": spec}).status == 201
    shares = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")
    answers = [
        allocate(api, claim(api, f"c{i}"), "nic-0", shareID=share, consumedCapacity={"bandwidth": amount})
        for i, (share, amount) in enumerate(zip(shares, bandwidths, strict=True))
    ]
    assert [answer.status for answer in answers] == [200, status], answers[1].body


def test_of_many_writers_at_once_one_wins(api):
    made = [claim(api, f"c{i}") for i in range(8)]

    async def race():
        import asyncio

        results = [
            {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
        ]
        status = {"allocation": {"devices": {"results": results}}}
        return await asyncio.gather(
            *(
                api.ask("PUT", f"{CLAIMS}/{one['metadata']['name']}/status", {**one, "status": status})
                for one in made
            )
        )

    statuses = sorted(answer.status for answer in api.run(race()))
    assert statuses == [200] + [409] * 7


@pytest.mark.parametrize(
    ("moved", "status"),
    [("/holds/gpu.example.com/node-1", 200), ("/objects/resource.k8s.io/resourceclaims/default/first", 409)],
)
def test_a_conflict_is_about_the_claim_and_not_about_its_pool(api, monkeypatch, moved, status):
    """Writers of one pool meet at its record, which is no reason to say that their claims were modified."""
    made = claim(api, "first")
    repository = api.server._repository
    commit, refusals = repository.commit, [Refused({moved: None})]

    async def refused_once(*what):
        return refusals.pop() if refusals else await commit(*what)

    monkeypatch.setattr(repository, "commit", refused_once)
    assert allocate(api, made, "gpu-0").status == status


def test_pools_that_nobody_publishes_are_not_remembered(api):
    made = claim(api, "first")
    assert allocate(api, made, "gpu-0").status == 200
    assert not api.server._guard.pools._stock


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_a_dry_run_is_told_what_the_write_would_be_told(api, version):
    """And a dry run that goes through holds nothing."""
    first, second = claim(api, "first"), claim(api, "second")
    path = CLAIMS.replace("/v1/", f"/{version}/")

    def tried(made, device):
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
        name = made["metadata"]["name"]
        patch = {"status": status}
        media = "application/merge-patch+json"
        return api("PATCH", f"{path}/{name}/status", patch, media=media, dryRun="All").status

    assert tried(first, "gpu-0") == 200
    assert allocate(api, second, "gpu-0").status == 200
    assert tried(first, "gpu-0") == 409
    assert tried(first, "gpu-1") == 200
