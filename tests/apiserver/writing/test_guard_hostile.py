"""D1 and D2 against writers who mean harm: every version, every way to write a claim's status."""

import pytest

GROUP = "/apis/resource.k8s.io"
DRIVER = "gpu.example.com"
SHARES = [f"{number:08d}-0000-0000-0000-000000000000" for number in range(4)]
VERSIONS = ("v1", "v1beta1", "v1beta2")
WAYS = ("update", "merge", "json", "apply")


def publish(api, *devices, name="s", generation=1, counters=(), version="v1"):
    pool = {"name": "node-1", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool}
    if counters:
        spec["sharedCounters"] = list(counters)
    elif version == "v1beta1":
        wrapped = [
            {"name": one["name"], "basic": {k: v for k, v in one.items() if k != "name"}} for one in devices
        ]
        spec["devices"] = wrapped
    else:
        spec["devices"] = list(devices)
    path = f"{GROUP}/{version}/resourceslices"
    found = api("GET", f"{path}/{name}")
    if found.status == 404:
        made = api("POST", path, {"metadata": {"name": name}, "spec": spec})
    else:
        made = api("PUT", f"{path}/{name}", {"metadata": found.body["metadata"], "spec": spec})
    assert made.status in (200, 201), made.body


def withdraw(api, *names):
    for name in names:
        assert api("DELETE", f"{GROUP}/v1/resourceslices/{name}").status == 200


def result(device, share=None, **more):
    shown = {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": device, **more}
    return {**shown, "shareID": SHARES[share]} if share is not None else shown


def give(api, name, *results, version="v1", way="update"):
    """Make a claim and write its allocation."""
    claims = f"{GROUP}/{version}/namespaces/default/resourceclaims"
    asked = {"deviceClassName": DRIVER}
    request = {"name": "gpu", **(asked if version == "v1beta1" else {"exactly": asked})}
    made = api("POST", claims, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
    assert made.status == 201, made.body
    path = f"{claims}/{name}/status"
    status = {"allocation": {"devices": {"results": list(results)}}}
    match way:
        case "update":
            return api("PUT", path, {**made.body, "status": status})
        case "merge":
            return api("PATCH", path, {"status": status}, media="application/merge-patch+json")
        case "json":
            patch = [{"op": "add", "path": "/status", "value": status}]
            return api("PATCH", path, patch, media="application/json-patch+json")
        case "apply":
            body = {
                "apiVersion": f"resource.k8s.io/{version}",
                "kind": "ResourceClaim",
                "metadata": {"name": name},
                "status": status,
            }
            return api("PATCH", path, body, media="application/apply-patch+yaml", fieldManager="thief")


def take_back(api, name):
    assert api("DELETE", f"{GROUP}/v1/namespaces/default/resourceclaims/{name}").status == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
def test_an_exclusive_device_is_not_shared_by_making_up_share_ids(api, version, way):
    publish(api, {"name": "gpu-0"}, version=version)
    assert give(api, "first", result("gpu-0", 0), version=version, way=way).status == 200
    second = give(api, "second", result("gpu-0", 1), version=version, way=way)
    assert second.status == 409, second.body
    assert "no slice allows several allocations" in second.body["message"]
    take_back(api, "first")
    assert give(api, "third", result("gpu-0", 1), version=version, way=way).status == 200


SHARED = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "consumed, status",
    [
        ({"memory": "10Gi"}, 200),
        ({"gpu.example.com/memory": "10Gi"}, 200),
        ({"memory": "0"}, 200),
        ({"memory": "11Gi"}, 409),
        ({"gpu.example.com/memory": "11Gi"}, 409),
        ({"memory": "6Gi", "gpu.example.com/memory": "6Gi"}, 409),
        ({"other.example.com/memory": "1"}, 409),
        ({"memory": "1", "tiles": "1"}, 409),
        ({}, 409),
        ({"memory": "-140Gi"}, 422),
    ],
    ids=str,
)
def test_shares_take_no_more_than_the_device_has_however_they_are_written(
    api, version, way, consumed, status
):
    """70Gi of 80Gi are taken."""
    publish(api, SHARED, version=version)
    assert give(api, "first", result("gpu-0", 0, consumedCapacity={"memory": "70Gi"})).status == 200
    answer = give(api, "second", result("gpu-0", 1, consumedCapacity=consumed), version=version, way=way)
    assert answer.status == status, answer.body
    if status == 422:
        field = "status.allocation.devices.results[0].consumedCapacity[memory]"
        assert answer.causes == [(field, "FieldValueInvalid")]


def test_one_share_alone_takes_no_more_than_the_device_has(api):
    publish(api, SHARED)
    too_much = {"consumedCapacity": {"memory": "220Gi"}}
    assert give(api, "first", result("gpu-0", 0, **too_much)).status == 409
    assert give(api, "second", result("gpu-0", **too_much)).status == 409


@pytest.mark.parametrize("amount", ["a lot", "", {}, [], "1e999999999"])
def test_an_amount_that_is_none_is_refused(api, amount):
    publish(api, SHARED)
    answer = give(api, "first", result("gpu-0", 0, consumedCapacity={"memory": amount}))
    assert answer.status in (400, 409, 422), answer.body


def test_an_amount_that_is_null_is_nothing(api):
    publish(api, SHARED)
    answer = give(api, "first", result("gpu-0", 0, consumedCapacity={"memory": None}))
    assert answer.status == 200, answer.body
    assert give(api, "second", result("gpu-0", 1, consumedCapacity={"memory": "80Gi"})).status == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "results",
    [
        [result("gpu-1"), result("gpu-1")],
        [result("gpu-0", 0), result("gpu-0", 0)],
        [result("gpu-0", 0), result("gpu-0")],
        [result("gpu-0"), result("gpu-0", 0)],
    ],
    ids=["whole twice", "share twice", "share and whole", "whole and share"],
)
def test_a_claim_that_lists_a_device_twice_is_refused(api, version, way, results):
    """Whatever the slices say: trying again would not help."""
    publish(api, {"name": "gpu-0", "allowMultipleAllocations": True}, {"name": "gpu-1"})
    answer = give(api, "first", *results, version=version, way=way)
    assert answer.status == 422, answer.body
    assert answer.causes == [("status.allocation.devices.results[1]", "FieldValueDuplicate")]


def test_a_claim_has_two_shares_of_a_device_that_may_be_shared(api):
    publish(api, {"name": "gpu-0", "allowMultipleAllocations": True}, {"name": "gpu-1"})
    assert give(api, "first", result("gpu-0", 0), result("gpu-0", 1)).status == 200
    assert give(api, "second", result("gpu-1", 0), result("gpu-1", 1)).status == 409


def drawing(name, amount):
    consumption = {"counterSet": "gpu", "counters": {"memory": {"value": amount}}}
    return {"name": name, "consumesCounters": [consumption]}


SETS = [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
PARTS = [drawing("whole", "40Gi"), drawing("half-0", "20Gi"), drawing("half-1", "20Gi")]


def partitioned(api):
    publish(api, *PARTS)
    publish(api, name="sets", counters=SETS)


LATER = {
    "a higher generation without counters": lambda api: publish(api, *PARTS, name="t", generation=2),
    "a higher generation instead": lambda api: (publish(api, *PARTS, generation=2), withdraw(api, "sets")),
    "devices that draw nothing": lambda api: publish(
        api, drawing("whole", "40Gi"), {"name": "half-0"}, generation=2
    ),
    "other devices": lambda api: publish(api, {"name": "other"}, generation=2),
    "counters alone": lambda api: withdraw(api, "s"),
    "no slices at all": lambda api: withdraw(api, "s", "sets"),
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_counters_are_remembered_while_something_draws_from_them(api, later):
    partitioned(api)
    assert give(api, "first", result("half-0")).status == 200
    later(api)
    assert give(api, "second", result("whole")).status == 409
    take_back(api, "first")
    partitioned(api)
    assert give(api, "third", result("whole")).status == 200


def test_capacity_is_remembered_while_somebody_shares_it(api):
    publish(api, SHARED)
    assert give(api, "first", result("gpu-0", 0, consumedCapacity={"memory": "60Gi"})).status == 200
    withdraw(api, "s")
    assert give(api, "second", result("gpu-0", 1, consumedCapacity={"memory": "30Gi"})).status == 409
    assert give(api, "third", result("gpu-0", 2, consumedCapacity={"memory": "20Gi"})).status == 200
    publish(api, {**SHARED, "capacity": {"memory": {"value": "70Gi"}}}, generation=2)
    assert give(api, "fourth", result("gpu-0", 3, consumedCapacity={"memory": "1"})).status == 409


def test_a_write_that_follows_a_slice_is_judged_by_that_slice(api):
    """However far the server has read: no waiting in between."""

    async def story():
        for total, status in (("40Gi", 409), ("80Gi", 200), ("10Gi", 409)):
            one = {**SHARED, "capacity": {"memory": {"value": total}}}
            pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": [one]}
            path = f"{GROUP}/v1/resourceslices"
            await api.ask("DELETE", f"{path}/s")
            claims = f"{GROUP}/v1/namespaces/default/resourceclaims"
            request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
            name = f"of-{total.lower()}"
            made = await api.ask(
                "POST", claims, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
            )
            share = result("gpu-0", 0, consumedCapacity={"memory": "60Gi"})
            status_body = {**made.body, "status": {"allocation": {"devices": {"results": [share]}}}}
            assert (await api.ask("POST", path, {"metadata": {"name": "s"}, "spec": spec})).status == 201
            answer = await api.ask("PUT", f"{claims}/{name}/status", status_body)
            assert answer.status == status, (total, answer.body)
            await api.ask("DELETE", f"{claims}/{name}")

    api.run(story())
