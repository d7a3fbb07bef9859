"""KEP-4381 through the real API server: what may be written into a claim that the scheduler allocates."""

import json

import pytest

from allot.api import User, numeric
from api.classic.objects import claim, consumer
from api.classic.objects import class_ as opaque
from api.numeric.objects import DRIVER, GROUP, capacity, class_, counter
from api.resource.test_served import Api, grant, may

CLASSES = "/v1alpha1/resourceclasses"
CAPACITIES = "/v1alpha1/noderesourcecapacities"
OLD = "/v1alpha1/namespaces/default/resourceclaims"
CLAIMS = "/v1/namespaces/default/resourceclaims"
FINALIZER = numeric.limits.FINALIZER
SHARE = "00000000-0000-4000-8000-{:012d}"


@pytest.fixture
def api(allot_server):
    found = Api(allot_server)
    found.made(CLASSES, class_())
    found.made(CAPACITIES, capacity(instances=[counter(count=4)]))
    return found


def protected(api, name="c", **spec):
    api.made(OLD, claim("frob", name, **spec))
    api.patch(f"{CLAIMS}/{name}", {"metadata": {"finalizers": [FINALIZER]}})


def result(count=2, number=1, device="c0", node="n1", driver=DRIVER, model=GROUP):
    return {
        "request": "classic",
        "driver": driver,
        "pool": f"numeric/{node}",
        "device": device,
        "shareID": SHARE.format(number),
        "consumedCapacity": {f"{model}/count": str(count)},
    }


def allocation(*results, node="n1", **more):
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    return {
        "nodeSelector": {"nodeSelectorTerms": terms},
        "devices": {"results": [*results] or [result()]},
        "resourceHandle": json.dumps({"kind": "Allocation"}),
        **more,
    }


def allocate(api, name="c", given=None, reserved=None, path=CLAIMS):
    users = [consumer()] if reserved is None else reserved
    status = {"driverName": DRIVER, "allocation": given or allocation(), "reservedFor": users}
    return api.patch(f"{path}/{name}/status", {"status": status})


def test_an_allocation_is_written_beside_its_results(api):
    """4381-ALC-02, 4381-ALC-03, 4381-GEN-12: and is read in both versions."""
    protected(api)
    answer = allocate(api)
    assert answer.code == 200, answer.body
    for path in (CLAIMS, OLD):
        status = api("GET", f"{path}/c").body["status"]
        assert status["driverName"] == DRIVER
        assert status["allocation"]["resourceHandle"] == '{"kind": "Allocation"}'
        assert status["reservedFor"] == [consumer()]


def test_drivers_have_no_say_in_it(api):
    """Written through v1alpha1 it is refused, as is an allocation without results."""
    protected(api)
    assert allocate(api, path=OLD).code == 422
    without = api.patch(
        f"{CLAIMS}/c/status", {"status": {"driverName": DRIVER, "allocation": {"resourceHandle": "h"}}}
    )
    assert ("status.allocation.devices.results", "FieldValueRequired") in without.causes
    api.made(CLASSES, opaque("gpu"))
    api.made(OLD, claim("gpu", "opaque"))
    assert allocate(api, "opaque").code == 422  # 4381-GEN-03: a claim without the finalizer is its driver's


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"pool": "numeric/n2"}, "pool"),
        ({"driver": "other.example.com"}, "driver"),
        ({"request": "other"}, "request"),
        ({"device": ""}, "device"),
        ({"shareID": None}, "shareID"),
        ({"consumedCapacity": {"a": "-1"}}, "consumedCapacity[a]"),
    ],
)
def test_results_say_what_is_taken_on_the_node(api, changed, path):
    protected(api)
    answer = allocate(api, given=allocation({**result(), **changed}))
    assert answer.code == 422
    assert f"status.allocation.devices.results[0].{path}" in {one for one, _ in answer.causes}


def test_the_node_is_one(api):
    """4381-GEN-05."""
    protected(api)
    given = allocation()
    del given["nodeSelector"]
    assert allocate(api, given=given).code == 422


def test_an_allocation_is_never_changed_in_place(api):
    """4381-ALC-16."""
    protected(api)
    allocate(api)
    other = api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": {"resourceHandle": "other"}}})
    assert other.code == 422
    typed = api("GET", f"{CLAIMS}/c").body
    for part in ("driverName", "deallocationRequested"):
        typed["status"].pop(part, None)
    for part in ("resourceHandle", "shareable"):  # as a client with Kubernetes' own types drops them
        typed["status"]["allocation"].pop(part, None)
    assert api("PUT", f"{CLAIMS}/c/status", typed).body["status"]["allocation"]["resourceHandle"]


def test_it_is_cleared_with_its_last_reservation_and_with_the_drivers_name(api):
    """4381-DEA-02, 4381-VAL-10."""
    protected(api)
    allocate(api)
    assert api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}}).code == 422
    gone = {"status": {"allocation": None, "reservedFor": None}}
    answer = api.patch(f"{CLAIMS}/c/status", gone)
    assert answer.code == 200, answer.body
    assert answer.body["status"] == {}


def test_users_are_one_unless_it_is_shareable_and_32_at_most(api):
    """4381-VAL-10, 4381-SCH-05."""
    two = [consumer("u1", "a"), consumer("u2", "b")]
    protected(api)
    assert allocate(api, reserved=two).code == 422
    many = [consumer(f"u{n}", f"p{n}") for n in range(33)]
    assert allocate(api, given=allocation(shareable=True), reserved=many).code == 422
    assert allocate(api, given=allocation(shareable=True), reserved=many[:32]).code == 200


def test_a_claim_that_is_being_deleted_gets_no_further_user_and_no_allocation(api):
    """4381-VAL-10: whoever uses it already stays."""
    protected(api)
    assert allocate(api, given=allocation(shareable=True)).code == 200
    protected(api, "idle")
    for name in ("c", "idle"):
        assert api("DELETE", f"{CLAIMS}/{name}").code == 200
    both = [consumer(), consumer("u2", "other")]
    assert api.patch(f"{CLAIMS}/c/status", {"status": {"reservedFor": both}}).code == 422
    assert api("GET", f"{CLAIMS}/c").body["status"]["reservedFor"] == [consumer()]
    assert allocate(api, "idle", allocation(result(1, 9))).code == 422
    assert api.patch(f"{CLAIMS}/idle/status", {"status": {"reservedFor": both[:1]}}).code == 422


def test_a_handle_may_be_large_but_not_larger(api):
    """4381-ALC-09, 4381-SCL-06."""
    protected(api)
    most = 256 * 1024
    answer = allocate(api, given=allocation(resourceHandle="h" * (most + 1)))
    assert answer.causes == [("status.allocation.resourceHandle", "FieldValueTooLong")]
    assert allocate(api, given=allocation(resourceHandle="h" * most)).code == 200


def test_what_a_driver_has_allocated_cannot_be_made_to_look_numeric(api):
    api.made(CLASSES, opaque("gpu", DRIVER))
    api.made(OLD, claim("gpu", "opaque"))
    given = {"driverName": DRIVER, "allocation": {"resourceHandle": "h"}}
    assert api.patch(f"{OLD}/opaque/status", {"status": given}).code == 200
    answer = api.patch(f"{CLAIMS}/opaque", {"metadata": {"finalizers": [FINALIZER]}})
    assert answer.code == 422


def test_only_whoever_binds_may_write_it(api, allot_server):
    """4381-SEC-03: a node may not, nor may a driver."""
    protected(api)
    driver = User("driver")
    rights = [may(f"resourceclaims/{part}", "patch", "update") for part in ("status", "driver")]
    grant(allot_server, driver.name, *rights)
    given = {"status": {"driverName": DRIVER, "allocation": allocation()}}
    answer = api.patch(f"{CLAIMS}/c/status", given, user=driver)
    assert answer.code == 422
    assert "resourceclaims/binding" in answer.body["message"]


def test_no_unit_is_given_twice(api):
    """4381-SCH-21, 4381-CNT-04: the second of two schedulers gets a 409."""
    for name in ("a", "b", "c"):
        protected(api, name)
    assert allocate(api, "a", allocation(result(2, 1))).code == 200
    assert allocate(api, "b", allocation(result(3, 2))).code == 409
    assert allocate(api, "b", allocation(result(2, 2))).code == 200
    assert allocate(api, "c", allocation(result(1, 3))).code == 409
    api.patch(f"{CLAIMS}/a/status", {"status": {"allocation": None, "reservedFor": None}})
    assert allocate(api, "c", allocation(result(1, 3))).code == 200


def test_an_instance_is_taken_in_parts(api):
    """4381-MOD-15: a slot has one holder, and nobody speaks of slots that it does not take. Who says nothing
    at all is refused: nobody could tell what it takes."""
    group = "partition.dra.config.k8s.io"
    data = {"slots": 4, "profiles": {"half": {"slots": 2}}}
    instance = {"id": "c0", "apiVersion": f"{group}/v1", "kind": "Capacity", "data": data}
    api.patch(f"{CAPACITIES}/n1-frob", {"instances": [instance]})

    def slots(number, *taken):
        return {**result(1, number), "consumedCapacity": {f"{group}/slot{one}": "1" for one in taken}}

    for name in ("a", "b", "c", "d"):
        protected(api, name)
    assert allocate(api, "a", allocation(slots(1, 0, 1))).code == 200
    assert allocate(api, "b", allocation(slots(2, 1, 2))).code == 409
    assert allocate(api, "b", allocation(slots(2, 2))).code == 200
    assert allocate(api, "c", allocation(slots(3))).code == 409
    assert allocate(api, "c", allocation(slots(3, 4))).code == 409
    assert allocate(api, "c", allocation(slots(3, 3))).code == 200
    assert allocate(api, "d", allocation(slots(4, 0))).code == 409


def test_capacity_that_shrinks_takes_nothing_away_and_gives_nothing_more(api):
    """4381-CNT-08, 4381-CAP-15."""
    protected(api, "a")
    protected(api, "b")
    assert allocate(api, "a", allocation(result(3, 1))).code == 200
    before = api("GET", f"{CLAIMS}/a").body["status"]
    api.patch(f"{CAPACITIES}/n1-frob", {"instances": [counter(count=1)]})
    assert api("GET", f"{CLAIMS}/a").body["status"] == before
    assert allocate(api, "b", allocation(result(1, 2))).code == 409
    api.patch(f"{CAPACITIES}/n1-frob", {"instances": [counter(count=4)]})
    assert allocate(api, "b", allocation(result(1, 2))).code == 200


def test_of_an_instance_that_is_no_longer_there_nothing_is_taken(api):
    """D6: a scheduler whose caches are old may still know it."""
    protected(api, "a")
    api.patch(f"{CAPACITIES}/n1-frob", {"instances": []})
    refused = allocate(api, "a", allocation(result(1, 1)))
    assert refused.code == 409 and "c0 of" in refused.body["message"]


def test_an_instance_counts_once_however_many_objects_have_it(api):
    """4381-CAP-11, 4381-CAP-05, 4381-PUB-10: the first by name counts."""
    api.made(CAPACITIES, capacity("n1-frob-2", instances=[counter(count=100), counter("c1", 5)]))
    for name in ("a", "b", "c"):
        protected(api, name)
    assert allocate(api, "a", allocation(result(4, 1))).code == 200
    assert allocate(api, "b", allocation(result(1, 2))).code == 409
    assert allocate(api, "b", allocation(result(5, 2, "c1"))).code == 200


def test_instances_of_models_that_the_server_lacks_are_shared_unmeasured(api):
    """4381-CAP-09: nobody here can tell how much there is."""
    odd = {"id": "odd", "apiVersion": "nobody.example.com/v1", "kind": "Odd", "data": {"much": 1}}
    api.patch(f"{CAPACITIES}/n1-frob", {"instances": [odd]})
    for name in ("a", "b"):
        protected(api, name)
    for number, name in enumerate(("a", "b"), 1):
        given = allocation(result(9, number, "odd", model="nobody.example.com"))
        assert allocate(api, name, given).code == 200
