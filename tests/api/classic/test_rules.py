"""What classic objects may say, rule by rule, without a server."""

import pytest

from allot.api import Gates, classic
from api.classic.objects import DRIVER, ON_N1, allocated, claim, class_, consumer, pod_scheduling, template
from api.context import FakeContext
from api.resource.writes import create, shown, update, write_status

CLAIM, TEMPLATE = classic.RESOURCE_CLAIM, classic.RESOURCE_CLAIM_TEMPLATE
CLASS, SCHEDULING = classic.RESOURCE_CLASS, classic.POD_SCHEDULING
VERSION = "v1alpha1"


def made(body=None, kind=CLAIM):
    """The stored form of an object that was accepted."""
    written = create(kind, body or claim(), VERSION)
    assert written.errors == []
    return written.hub


def with_status(status, **metadata):
    hub = made()
    return {**hub, "metadata": {**hub["metadata"], **metadata}, "status": status}


def judged(old, status, **context):
    """What is wrong with a status write to a claim; both statuses in the stored form."""
    return write_status(CLAIM, old, status, VERSION, FakeContext(**context)).causes


# Classes


def test_a_class_names_its_driver():
    """3063-CLASS-01, 3063-CLASS-02, 3063-CLASS-03, 3063-CLASS-05."""
    assert create(CLASS, class_(), VERSION).causes == []
    assert create(CLASS, class_("another"), VERSION).causes == []
    assert create(CLASS, {"metadata": {"name": "c"}}, VERSION).causes == ["driverName required"]
    assert create(CLASS, class_(driver="no_name"), VERSION).causes == ["driverName invalid"]
    empty = class_(parametersRef={})
    assert create(CLASS, empty, VERSION).causes == [
        "parametersRef.kind required",
        "parametersRef.name required",
    ]
    whole = {"apiGroup": "gpu.example.com", "kind": "Init", "name": "n", "namespace": "ns"}
    assert create(CLASS, class_(parametersRef=whole, suitableNodes=ON_N1), VERSION).causes == []
    wrong = class_(
        suitableNodes={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "x"}]}]}
    )
    assert create(CLASS, wrong, VERSION).causes == [
        "suitableNodes.nodeSelectorTerms[0].matchExpressions[0].operator invalid"
    ]


def test_a_class_may_change():
    old = made(class_(), CLASS)
    assert update(CLASS, old, class_(driver="other.example.com"), VERSION).causes == []
    assert update(CLASS, old, class_(driver=""), VERSION).causes == ["driverName required"]


# The spec of claims and templates


def test_a_claim_names_a_class_and_waits_for_a_pod_unless_it_says_otherwise():
    """3063-CLAIM-01, 3063-CLAIM-02, 3063-CLAIM-03, 3063-CLAIM-04."""
    hub = made()
    assert shown(CLAIM, hub, VERSION)["spec"] == {
        "resourceClassName": "gpu",
        "allocationMode": "WaitForFirstConsumer",
    }
    assert create(CLAIM, claim(allocationMode="Immediate"), VERSION).causes == []
    assert create(CLAIM, claim(allocationMode="Later"), VERSION).causes == ["spec.allocationMode unsupported"]
    assert create(CLAIM, {"metadata": {"name": "c"}}, VERSION).causes == ["spec.resourceClassName required"]
    assert create(CLAIM, claim("No_Class"), VERSION).causes == ["spec.resourceClassName invalid"]


def test_parameters_are_named_by_kind_and_name():
    """3063-CLAIM-05, 3063-PARAM-02, 3063-REF-01."""
    for reference in ({"kind": "ConfigMap", "name": "c"}, {"apiGroup": "x.y", "kind": "K", "name": "n"}):
        assert create(CLAIM, claim(parametersRef=reference), VERSION).causes == []
    assert create(CLAIM, claim(parametersRef={"apiGroup": "no_group"}), VERSION).causes == [
        "spec.parametersRef.apiGroup invalid",
        "spec.parametersRef.kind required",
        "spec.parametersRef.name required",
    ]


def test_a_claims_parameters_are_in_its_own_namespace():
    """3063-PARAM-04: there is no field to name another."""
    written = create(CLAIM, claim(parametersRef={"kind": "K", "name": "n", "namespace": "other"}), VERSION)
    assert written.unknown == ("spec.parametersRef.namespace",)


def test_a_claim_cannot_have_both_shapes():
    both = claim(devices={"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]})
    assert create(CLAIM, both, VERSION).causes == ["spec.devices forbidden"]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_classic_claims_are_made_in_their_own_version(version):
    refused = create(CLAIM, claim(), version)
    assert refused.causes == ["spec.resourceClassName forbidden"]
    assert f"resource.k8s.io/v1alpha1, this is {version}" in refused.texts[0]
    assert create(TEMPLATE, template(), version).causes == ["spec.spec.resourceClassName forbidden"]


def test_with_the_gate_off_the_members_of_new_objects_are_dropped():
    """3063-API-01, 3063-API-05."""
    off = FakeContext(gates=Gates({"DRAControlPlaneController": False}))
    body = claim(devices={"requests": []}, parametersRef={"kind": "K", "name": "n"})
    written = create(CLAIM, body, "v1", off)
    assert (written.causes, written.hub["spec"]) == ([], {"devices": {"requests": []}})
    assert create(TEMPLATE, template(), "v1", off).hub["spec"]["spec"] == {"devices": {"requests": None}}


def test_with_the_gate_off_what_is_there_stays():
    """3063-PRR-06."""
    off = FakeContext(gates=Gates({"DRAControlPlaneController": False}))
    old = with_status(allocated(resourceHandle="h"))
    written = update(
        CLAIM, old, {"metadata": {"name": "c", "labels": {"a": "b"}}, "spec": old["spec"]}, "v1", off
    )
    assert (written.causes, written.hub["spec"], written.hub["status"]) == ([], old["spec"], old["status"])


def test_a_structured_claim_has_no_members_of_a_classic_one():
    stray = {
        "devices": {"requests": []},
        "parametersRef": {"kind": "K", "name": "n"},
        "allocationMode": "Immediate",
    }
    body = {"metadata": {"name": "c"}, "spec": stray}
    assert create(CLAIM, body).causes == ["spec.parametersRef forbidden", "spec.allocationMode forbidden"]
    body = {"metadata": {"name": "t"}, "spec": {"spec": stray}}
    assert create(TEMPLATE, body).causes == [
        "spec.spec.parametersRef forbidden",
        "spec.spec.allocationMode forbidden",
    ]
    old = create(CLAIM, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": []}}}).hub
    status = {
        "driverName": DRIVER,
        "deallocationRequested": True,
        "allocation": {"resourceHandle": "h", "shareable": True},
    }
    assert write_status(CLAIM, old, status).causes == [
        "status.driverName forbidden",
        "status.deallocationRequested forbidden",
        "status.allocation.resourceHandle forbidden",
        "status.allocation.shareable forbidden",
    ]


def test_a_spec_never_changes():
    """3063-STATE-02, 3063-TMPL-01."""
    old = made()
    for body in (
        claim("nic"),
        claim(allocationMode="Immediate"),
        claim(parametersRef={"kind": "K", "name": "n"}),
    ):
        assert update(CLAIM, old, body, VERSION).causes == ["spec invalid"]
    assert update(CLAIM, old, claim(), VERSION).causes == []
    kept = made(template(), TEMPLATE)
    assert update(TEMPLATE, kept, template("nic"), VERSION).causes == ["spec invalid"]
    assert update(TEMPLATE, kept, template(), VERSION).causes == []


def test_a_template_holds_a_claim_and_nothing_but_labels_and_annotations():
    """3063-TMPL-03, 3063-TMPL-04."""
    body = template()
    body["spec"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert create(TEMPLATE, body, VERSION).causes == []
    body["spec"]["metadata"]["finalizers"] = ["a.b/c"]
    assert create(TEMPLATE, body, VERSION).causes == ["spec.metadata.finalizers forbidden"]
    assert create(TEMPLATE, template(""), VERSION).causes == ["spec.spec.resourceClassName required"]


# The status of a claim: O-08


def test_reservations_need_an_allocation():
    """3063-SHARE-02, 3063-ALLOC-06, 3063-ALLOC-07."""
    assert judged(made(), {"reservedFor": [consumer()]}) == ["status.reservedFor forbidden"]
    exclusive, shared = allocated(), allocated(shareable=True)
    assert judged(with_status(exclusive), {**exclusive, "reservedFor": [consumer()]}) == []
    two = [consumer("a"), consumer("b")]
    assert judged(with_status(exclusive), {**exclusive, "reservedFor": two}) == [
        "status.reservedFor forbidden"
    ]
    assert judged(with_status(shared), {**shared, "reservedFor": two}) == []


def test_an_allocation_is_there_when_it_says_nothing():
    """3063-STATE-12."""
    hub = write_status(CLAIM, made(), {**allocated(), "reservedFor": [consumer()]}, VERSION)
    assert (hub.causes, hub.hub["status"]["allocation"]) == ([], {})


def test_thirty_two_may_share():
    """3063-CLAIM-11."""
    shared = allocated(shareable=True)
    many = [consumer(f"u{at}") for at in range(33)]
    assert judged(with_status(shared), {**shared, "reservedFor": many[:32]}) == []
    assert judged(with_status(shared), {**shared, "reservedFor": many}) == ["status.reservedFor too_many"]


def test_a_consumer_is_named_by_resource_and_uid_and_listed_once():
    """3063-REF-01, 3063-SHARE-05."""
    shared = allocated(shareable=True)
    wrong = {**shared, "reservedFor": [{"resource": "pods"}]}
    assert judged(with_status(shared), wrong) == [
        "status.reservedFor[0].name required",
        "status.reservedFor[0].uid required",
    ]
    twice = {**shared, "reservedFor": [consumer(), consumer()]}
    assert judged(with_status(shared), twice) == ["status.reservedFor[1] duplicate"]
    other = consumer(resource="jobs", apiGroup="batch")
    assert judged(with_status(shared), {**shared, "reservedFor": [other]}) == []


def test_nobody_is_added_to_what_is_wanted_back_or_deleted():
    """3063-CLAIM-14, and O-09."""
    shared = allocated(shareable=True)
    one, two = [consumer("a")], [consumer("a"), consumer("b")]
    leaving = with_status({**shared, "reservedFor": one}, deletionTimestamp="2026-11-15T08:00:00Z")
    assert judged(leaving, {**shared, "reservedFor": two}) == ["status.reservedFor forbidden"]
    assert judged(leaving, shared) == []
    wanted = {**shared, "deallocationRequested": True}
    assert "status.reservedFor forbidden" in judged(with_status(wanted), {**wanted, "reservedFor": one})


def test_an_allocation_is_not_taken_from_its_users():
    used = {**allocated(), "reservedFor": [consumer()]}
    assert judged(with_status(used), {}) == ["status.allocation forbidden"]
    assert judged(with_status(allocated()), {}) == []


def test_deallocation_is_requested_of_what_is_allocated_and_idle_and_ends_with_the_allocation():
    """3063-CLAIM-13, 3063-STATE-10: no watcher sees half of it."""
    flag = {"deallocationRequested": True}
    assert judged(made(), flag) == ["status.deallocationRequested forbidden"]
    used = {**allocated(), "reservedFor": [consumer()]}
    assert judged(with_status(used), {**used, **flag}) == ["status.deallocationRequested forbidden"]
    assert judged(with_status(used), {**allocated(), **flag}) == []  # 3063-COORD-07: both in one write
    wanted = with_status({**allocated(), **flag})
    assert judged(wanted, allocated()) == ["status.deallocationRequested forbidden"]
    assert judged(wanted, {}) == []


def test_an_allocation_names_its_driver_for_as_long_as_it_lasts():
    """3063-CLAIM-08."""
    assert judged(made(), {"allocation": {}}) == ["status.driverName required"]
    assert judged(with_status(allocated()), allocated("other.example.com")) == ["status.driverName invalid"]


def test_the_class_says_whose_a_claim_is_until_its_driver_has_begun():
    """3063-CLAIM-08, 3063-CLASS-08: also if the class is changed or replaced meanwhile."""
    classes = {"gpu": class_(driver="other.example.com")}
    assert judged(made(), allocated(), classes=classes) == ["status.driverName forbidden"]
    begun = with_status({}, finalizers=[f"{DRIVER}/deletion-protection"])
    assert judged(begun, allocated(), classes=classes) == []
    assert judged(made(), allocated("other.example.com"), classes=classes) == []
    held = with_status(allocated())
    assert judged(held, allocated(resourceHandle="new"), classes=classes) == []


def test_a_driver_that_its_class_does_not_name_writes_its_name_nowhere():
    """C8: neither beside an allocation nor before one, where it would keep out the claim's own driver."""
    classes = {"gpu": class_(driver="other.example.com")}
    assert judged(made(), {"driverName": DRIVER}, classes=classes) == ["status.driverName forbidden"]
    assert judged(made(), {"driverName": "other.example.com"}, classes=classes) == []
    named = with_status({"driverName": DRIVER})
    assert judged(named, {"driverName": DRIVER}, classes=classes) == []  # it was so before


MINE, THEIRS = (f"{name}/deletion-protection" for name in (DRIVER, "other.example.com"))


@pytest.mark.parametrize(
    ("finalizers", "before", "status", "driver", "wrong"),
    [
        ([MINE], [], {}, DRIVER, []),
        ([MINE], [], {}, "other.example.com", ["metadata.finalizers[0] forbidden"]),
        (["a/b", THEIRS, MINE], [THEIRS], {}, "other.example.com", ["metadata.finalizers[2] forbidden"]),
        ([MINE], [MINE], {}, "other.example.com", []),  # it has begun, and the class has changed since
        ([MINE], [], allocated(), "other.example.com", []),  # somebody took it away, and it is held
        ([MINE], [], {}, None, []),  # no class, nobody to judge by
        (["example.com/mine", "orphan"], [], {}, "other.example.com", []),
    ],
)
def test_a_driver_begins_with_claims_of_its_class_alone(finalizers, before, status, driver, wrong):
    """C8, C9: its finalizer says from when on a claim is its own, whatever becomes of the class."""
    classes = {"gpu": class_(driver=driver)} if driver is not None else {}
    old = with_status(status, finalizers=before)
    new = {**old, "metadata": {**old["metadata"], "finalizers": finalizers}}
    assert (
        update(CLAIM, old, shown(CLAIM, new, VERSION), VERSION, FakeContext(classes=classes)).causes == wrong
    )


def test_a_handle_has_a_size():
    """3063-ALLOC-01, 3063-ALLOC-02: bytes count, not characters."""
    assert judged(made(), allocated(resourceHandle="x" * 16384)) == []
    assert judged(made(), allocated(resourceHandle="x" * 16385)) == [
        "status.allocation.resourceHandle too_long"
    ]
    assert judged(made(), allocated(resourceHandle="é" * 8193)) == [
        "status.allocation.resourceHandle too_long"
    ]


def test_where_a_claim_can_be_used_stays_while_it_is_used():
    """X-23: its handle may change, and it may become shareable."""
    here = allocated(nodeSelector=ON_N1)
    used = with_status({**here, "reservedFor": [consumer()]})
    users = {"reservedFor": [consumer()]}
    assert judged(used, {**allocated(), **users}) == ["status.allocation.availableOnNodes forbidden"]
    assert (
        judged(used, {**allocated(nodeSelector=ON_N1, resourceHandle="new", shareable=True), **users}) == []
    )
    shared = {**allocated(shareable=True), "reservedFor": [consumer("a"), consumer("b")]}
    exclusive = {**allocated(), "reservedFor": shared["reservedFor"]}
    assert judged(with_status(shared), exclusive) == ["status.reservedFor forbidden"]


def test_a_driver_writes_no_structured_results():
    results = {"results": [{"request": "classic", "driver": DRIVER, "pool": "p", "device": "d"}]}
    assert judged(made(), allocated(devices=results)) == ["status.allocation.devices forbidden"]


# PodScheduling


def test_node_lists_are_sets_of_at_most_256():
    """3063-PSCHED-06, and O-23."""
    nodes = [f"n{at}" for at in range(257)]
    for count, expected in ((128, []), (256, []), (257, ["spec.potentialNodes too_many"])):
        assert create(SCHEDULING, pod_scheduling(potentialNodes=nodes[:count]), VERSION).causes == expected
    twice = pod_scheduling(potentialNodes=["n1", "n1"], selectedNode="No Node")
    assert create(SCHEDULING, twice, VERSION).causes == [
        "spec.selectedNode invalid",
        "spec.potentialNodes[1] duplicate",
    ]
    assert create(SCHEDULING, pod_scheduling(), VERSION).causes == []


def test_drivers_answer_once_for_each_claim():
    """3063-PSCHED-06, 3063-PSCHED-13: an entry without nodes is an answer."""
    old = made(pod_scheduling(), SCHEDULING)
    nodes = [f"n{at}" for at in range(257)]

    def answered(*entries):
        context = FakeContext(version=VERSION)
        new = {**old, "status": {"resourceClaims": list(entries)}}
        found = SCHEDULING.rules.validate_status(new, old, context)
        return [f"{one.path} {one.wrong.name.lower()}" for one in found]

    assert answered({"name": "gpu"}, {"name": "nic", "unsuitableNodes": nodes[:256]}) == []
    assert answered({"name": "gpu"}, {"name": "gpu"}) == ["status.resourceClaims[1] duplicate"]
    assert answered({"unsuitableNodes": nodes}) == [
        "status.resourceClaims[0].name required",
        "status.resourceClaims[0].unsuitableNodes too_many",
    ]
