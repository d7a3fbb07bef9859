"""What may be written into a claim's status, and by whom."""

import pytest

from allot.api import Action, Gates, User, resource
from api.context import FakeContext
from api.resource.objects import (
    allocation,
    alternative,
    claim,
    condition,
    either,
    on_node,
    opaque,
    pod_reference,
    report,
    request,
    result,
    with_change,
)
from api.resource.writes import ALL_GATES, create, write_status

CLAIM = resource.RESOURCE_CLAIM
EVERYTHING = FakeContext(gates=Gates(ALL_GATES))
SHARE = "01234567-89ab-cdef-0123-456789abcdef"
A = "status.allocation"
ONE = f"{A}.devices.results[0]"
CONFIG = f"{A}.devices.config[0]"


def stored(status=None, *requests):
    made = create(CLAIM, claim(*requests)).hub
    if status is not None:
        written = write_status(CLAIM, made, status)
        assert written.causes == []
        return written.hub
    return made


def allocated(*results, **more):
    return stored({"allocation": allocation(*results, **more)})


RESULT_ROWS = [
    (result(), []),
    (result(request="zz"), [f"{ONE}.request invalid"]),
    (result(request=""), [f"{ONE}.request invalid"] * 2),
    (result(driver=""), [f"{ONE}.driver required"]),
    (result(driver="d" * 64), [f"{ONE}.driver too_long"]),
    (result(pool=""), [f"{ONE}.pool required"]),
    (result(pool="a//b"), [f"{ONE}.pool invalid"]),
    (result(device="D_"), [f"{ONE}.device invalid"]),
    (result(shareID=SHARE), []),
    (result(shareID=SHARE.upper()), [f"{ONE}.shareID invalid"]),
    (result(shareID="ABC"), [f"{ONE}.shareID invalid"]),
    (result(consumedCapacity={"memory": "1Gi"}), []),
    (result(bindingConditions=["a"]), [f"{ONE}.bindingFailureConditions invalid"]),
    (result(tolerations=[{"operator": "X"}]), [f"{ONE}.tolerations[0].operator unsupported"]),
    (result(skipNodeOperations=["NodePrepareResources"]), [f"{ONE}.skipNodeOperations invalid"]),
]


@pytest.mark.parametrize(("one", "causes"), RESULT_ROWS)
def test_an_allocated_device(one, causes):
    status = {"allocation": allocation(one)}
    assert write_status(CLAIM, stored(), status, context=EVERYTHING).causes == causes


def test_a_result_may_name_the_alternative_that_was_chosen():
    old = stored(None, either("r", alternative("s")))
    assert write_status(CLAIM, old, {"allocation": allocation(result(request="r/s"))}).causes == []
    assert write_status(CLAIM, old, {"allocation": allocation(result(request="r"))}).causes == []
    bad = write_status(CLAIM, old, {"allocation": allocation(result(request="r/t"))})
    assert bad.causes == [f"{ONE}.request invalid"]


@pytest.mark.parametrize(
    ("devices", "causes"),
    [
        ({"results": [result(f"d{i}") for i in range(33)]}, [f"{A}.devices.results too_many"]),
        ({"results": [result(f"d{i}") for i in range(32)]}, []),
        ({"config": [{"source": "FromClass", **opaque()}]}, []),
        ({"config": [{"source": "FromClaim", "requests": ["r"], **opaque()}]}, []),
        ({"config": [opaque()]}, [f"{CONFIG}.source required"]),
        ({"config": [{"source": "X", **opaque()}]}, [f"{CONFIG}.source unsupported"]),
        ({"config": [{"source": "FromClass"}]}, [f"{CONFIG}.opaque required"]),
        (
            {"config": [{"source": "FromClass", "requests": ["zz"], **opaque()}]},
            [f"{CONFIG}.requests[0] invalid"],
        ),
        ({"config": [{"source": "FromClass", **opaque()}] * 64}, []),
        ({"config": [{"source": "FromClass", **opaque()}] * 65}, [f"{A}.devices.config too_many"]),
    ],
)
def test_results_and_configuration_of_an_allocation(devices, causes):
    assert write_status(CLAIM, stored(), {"allocation": {"devices": devices}}).causes == causes


def test_an_empty_allocation_counts_as_allocated():
    written = write_status(CLAIM, stored(), {"allocation": {}, "reservedFor": [pod_reference()]})
    assert written.causes == []


def test_the_node_selector_of_an_allocation_is_judged():
    bad = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Gt", "values": ["1"]}]}]
    }
    written = write_status(CLAIM, stored(), {"allocation": {"nodeSelector": bad}})
    assert written.causes == [f"{A}.nodeSelector.nodeSelectorTerms[0].matchFields[0].operator invalid"]


# Set once


def test_an_allocation_never_changes():
    """2.4: not even a missing timestamp may be added later."""
    old = allocated()
    timed = {"allocation": allocation(allocationTimestamp="2026-11-15T08:00:00Z")}
    assert write_status(CLAIM, old, timed).texts == [
        f"{A}: Invalid value: null: field cannot be modified once set"
    ]
    assert write_status(CLAIM, old, {"allocation": allocation(result("gpu-1"))}).causes == [f"{A} invalid"]
    assert write_status(CLAIM, old, old["status"]).causes == []
    assert write_status(CLAIM, old, {}).causes == []


def test_a_claim_that_is_being_deleted_may_still_be_allocated():
    old = with_change(stored(), "metadata.deletionTimestamp", "2026-11-15T08:00:00Z")
    assert write_status(CLAIM, old, {"allocation": allocation()}).causes == []


# Reservations


def test_reservations_need_an_allocation():
    written = write_status(CLAIM, stored(), {"reservedFor": [pod_reference()]})
    assert written.causes == ["status.reservedFor forbidden"]


@pytest.mark.parametrize(
    ("references", "causes"),
    [
        ([pod_reference()], []),
        ([pod_reference(str(i)) for i in range(256)], []),
        ([pod_reference(str(i)) for i in range(257)], ["status.reservedFor too_many"]),
        ([pod_reference("a"), pod_reference("a", "b")], ["status.reservedFor[1] duplicate"]),
        ([{"name": "p", "uid": "u"}], ["status.reservedFor[0].resource required"]),
        ([{"resource": "pods", "uid": "u"}], ["status.reservedFor[0].name required"]),
        ([{"resource": "pods", "name": "p"}], ["status.reservedFor[0].uid required"]),
    ],
)
def test_who_a_claim_is_reserved_for(references, causes):
    old = allocated()
    assert write_status(CLAIM, old, {**old["status"], "reservedFor": references}).causes == causes


def test_a_claim_that_is_being_deleted_takes_no_new_reservations():
    """Entries may go, and may not be altered."""
    old = stored({"allocation": allocation(), "reservedFor": [pod_reference("a"), pod_reference("b")]})
    old = with_change(old, "metadata.deletionTimestamp", "2026-11-15T08:00:00Z")

    def reserve(*references):
        return write_status(CLAIM, old, {**old["status"], "reservedFor": list(references)}).causes

    assert reserve(pod_reference("a")) == []
    assert reserve() == []
    assert reserve(pod_reference("c")) == ["status.reservedFor forbidden"]
    assert reserve(pod_reference("a", "other")) == ["status.reservedFor forbidden"]


# Reports of drivers


D = "status.devices[0]"
NET = f"{D}.networkData"

REPORT_ROWS = [
    (report(), []),
    (report("gpu-9"), [f"{D} invalid"]),
    (report(shareID=SHARE), [f"{D} invalid"]),  # another share than the allocated one
    (report(shareID="ABC"), [f"{D} invalid", f"{D}.shareID invalid"]),
    (report(conditions=[condition()]), []),
    (report(conditions=[condition(f"C{i}") for i in range(9)]), [f"{D}.conditions too_many"]),
    (report(conditions=[condition(), condition()]), [f"{D}.conditions[1].type duplicate"]),
    (report(conditions=[condition("-")]), [f"{D}.conditions[0].type invalid"]),
    (report(conditions=[condition("")]), [f"{D}.conditions[0].type required"]),
    (
        report(conditions=[condition(lastTransitionTime=None)]),
        [f"{D}.conditions[0].lastTransitionTime required"],
    ),
    (report(conditions=[condition(reason="R" * 1025)]), [f"{D}.conditions[0].reason too_long"]),
    (report(conditions=[condition(status="X")]), [f"{D}.conditions[0].status unsupported"]),
    (report(conditions=[condition(reason="")]), [f"{D}.conditions[0].reason required"]),
    (report(conditions=[condition(reason="no way")]), [f"{D}.conditions[0].reason invalid"]),
    (report(conditions=[condition(message="x" * 32_769)]), [f"{D}.conditions[0].message too_long"]),
    (
        report(conditions=[condition(observedGeneration=-1)]),
        [f"{D}.conditions[0].observedGeneration invalid"],
    ),
    (report(data={"a": 1}), []),
    (report(data=[1]), [f"{D}.data invalid"]),
    (report(data={"a": "x" * 10_241}), [f"{D}.data too_long"]),
    (report(networkData={"interfaceName": "x" * 257}), [f"{NET}.interfaceName too_long"]),
    (report(networkData={"hardwareAddress": "x" * 129}), [f"{NET}.hardwareAddress too_long"]),
    (report(networkData={"ips": ["192.0.2.5/24", "2001:db8::5/64"]}), []),
    (report(networkData={"ips": ["192.0.2.5"]}), [f"{NET}.ips[0] invalid"]),
    (report(networkData={"ips": ["192.0.2.005/24"]}), [f"{NET}.ips[0] invalid"]),
    (report(networkData={"ips": ["2001:DB8::5/64"]}), [f"{NET}.ips[0] invalid"]),
    (report(networkData={"ips": ["2001:db8:0::5/64"]}), [f"{NET}.ips[0] invalid"]),
    (report(networkData={"ips": ["1.2.3.4/24"] * 2}), [f"{NET}.ips[1] duplicate"]),
    (report(networkData={"ips": [f"1.2.3.{i}/24" for i in range(17)]}), [f"{NET}.ips too_many"]),
]


@pytest.mark.parametrize(("one", "causes"), REPORT_ROWS)
def test_what_a_driver_reports_of_a_device(one, causes):
    old = allocated()
    assert write_status(CLAIM, old, {**old["status"], "devices": [one]}).causes == causes


def test_two_shares_of_one_device_are_two_reports():
    other = SHARE.replace("0", "f")
    old = allocated(result(shareID=SHARE), result(shareID=other))
    both = [report(shareID=SHARE), report(shareID=other)]
    assert write_status(CLAIM, old, {**old["status"], "devices": both}).causes == []
    twice = [report(shareID=SHARE)] * 2
    assert write_status(CLAIM, old, {**old["status"], "devices": twice}).causes == [
        "status.devices[1] duplicate"
    ]


def test_reports_go_with_the_allocation_they_belong_to():
    """2.4: the server removes them, so that one write can deallocate."""
    old = stored({"allocation": allocation(), "devices": [report()]})
    written = write_status(CLAIM, old, {**old["status"], "allocation": None})
    assert written.causes == []
    assert written.hub["status"] == {}


def test_conditions_of_a_report_are_shown_as_null_when_there_are_none():
    """2.6."""
    hub = stored({"allocation": allocation(), "devices": [report()]})
    assert hub["status"]["devices"] == [{**report(), "conditions": None}]


# Administrator access, again


def test_results_with_admin_access_need_the_label_again():
    admin = FakeContext(namespace_labels={"resource.kubernetes.io/admin-access": "true"})
    old = create(CLAIM, claim(request(adminAccess=True)), context=admin).hub
    status = {"allocation": allocation(result(adminAccess=True))}
    assert write_status(CLAIM, old, status).causes == [f"{ONE}.adminAccess forbidden"]
    given = write_status(CLAIM, old, status, context=admin)
    assert given.causes == []
    kept = {**status, "reservedFor": [pod_reference()]}
    assert write_status(CLAIM, given.hub, kept).causes == []


# Who may write what


BINDING = Action("update", "resource.k8s.io", "resourceclaims", "binding")


def driver_action(verb, driver="d.example.com"):
    return Action(verb, "resource.k8s.io", "resourceclaims", "driver", namespace="default", name=driver)


def permitted(*actions, user=None, verb="update"):
    return FakeContext(permits=actions, user=user or User("alice"), verb=verb)


def test_allocations_and_reservations_need_the_binding_permission():
    """Cluster-wide: neither namespace nor name. The answer is 422 with a Forbidden cause."""
    status = {"allocation": allocation()}
    assert write_status(CLAIM, stored(), status, context=permitted(BINDING)).causes == []
    refused = write_status(CLAIM, stored(), status, context=permitted())
    assert refused.causes == ["status.allocation forbidden"]
    assert 'resource="resourceclaims/binding", verb="update" permission' in refused.texts[0]
    assert 'User "alice" cannot update resource "resourceclaims/binding"' in refused.texts[0]

    old = allocated()
    reserved = {**old["status"], "reservedFor": [pod_reference()]}
    assert write_status(CLAIM, old, reserved, context=permitted()).causes == ["status.allocation forbidden"]


def test_the_verb_of_the_request_is_the_verb_that_must_be_permitted():
    status = {"allocation": allocation()}
    patching = permitted(BINDING, verb="patch")
    assert write_status(CLAIM, stored(), status, context=patching).causes == ["status.allocation forbidden"]


def test_reports_need_the_permission_for_their_driver():
    old = allocated()
    status = {**old["status"], "devices": [report()]}
    anywhere = permitted(driver_action("arbitrary-node:update"))
    assert write_status(CLAIM, old, status, context=anywhere).causes == []
    refused = write_status(
        CLAIM, old, status, context=permitted(driver_action("arbitrary-node:update", "other"))
    )
    assert refused.causes == ["status.devices forbidden"]
    assert 'verb="[arbitrary-node:update]"' in refused.texts[0]


def test_a_drivers_token_for_the_claims_node_is_enough():
    old = allocated(node="n1")
    status = {**old["status"], "devices": [report()]}

    def driver_on(*nodes, name="system:serviceaccount:ns:driver"):
        user = User(name, extra={"authentication.kubernetes.io/node-name": nodes})
        return permitted(driver_action("associated-node:update"), user=user)

    assert write_status(CLAIM, old, status, context=driver_on("n1")).causes == []
    for stranger in (driver_on("n2"), driver_on(), driver_on("n1", "n2"), driver_on("n1", name="bob")):
        assert write_status(CLAIM, old, status, context=stranger).causes == ["status.devices forbidden"]


def test_modified_and_removed_reports_count_as_changes():
    old = stored({"allocation": allocation(), "devices": [report()]})
    nobody = permitted()
    same = write_status(CLAIM, old, old["status"], context=nobody)
    changed = write_status(CLAIM, old, {**old["status"], "devices": [report(data={"a": 1})]}, context=nobody)
    removed = write_status(CLAIM, old, {"allocation": allocation()}, context=nobody)
    assert (same.causes, changed.causes, removed.causes) == (
        [],
        ["status.devices forbidden"],
        ["status.devices forbidden"],
    )


def test_deallocating_needs_no_permission_for_the_reports_that_go_with_it():
    old = stored({"allocation": allocation(), "devices": [report()]})
    assert write_status(CLAIM, old, {}, context=permitted(BINDING)).causes == []


def test_without_the_gate_nobody_is_asked():
    gates = Gates({"DRAResourceClaimGranularStatusAuthorization": False})
    context = FakeContext(permits=(), gates=gates)
    assert write_status(CLAIM, stored(), {"allocation": allocation()}, context=context).causes == []


SEVERAL = [
    on_node("n1")["nodeSelectorTerms"] + on_node("n2")["nodeSelectorTerms"],
    [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}],
    [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}],
]


@pytest.mark.parametrize("terms", SEVERAL)
def test_an_allocation_for_several_nodes_is_nobodys_own(terms):
    old = allocated(nodeSelector={"nodeSelectorTerms": terms})
    user = User("system:serviceaccount:ns:d", extra={"authentication.kubernetes.io/node-name": ("n1",)})
    context = permitted(driver_action("associated-node:update"), user=user)
    status = {**old["status"], "devices": [report()]}
    assert write_status(CLAIM, old, status, context=context).causes == ["status.devices forbidden"]
