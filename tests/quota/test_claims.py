"""Claims are charged by class, and the names of one class agree. Rule 6.4, KEP-5004 "Resource Quota"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Quantity, meta, resource
from allot.quota import CLAIMS, Context, Owner, add, extended_names, sources, usage
from quota.objects import DEVICES, EXTENDED, GPU, IMPLICIT, MAPPED, asking, claim, exactly, pod, special, used

ONE_CLAIM = {"count/resourceclaims.resource.k8s.io": "1", "resourceclaims": "1"}


def test_a_claim_is_charged_for_each_device_that_it_asks_for():
    """Rule 6.4: `count/resourceclaims.resource.k8s.io`, and the count under the names of the class."""
    found = used(claim({"exactly": exactly(2)}, {"exactly": exactly(3)}))
    assert found == {**ONE_CLAIM, DEVICES: "5", IMPLICIT: "5", IMPLICIT.removeprefix("requests."): "5"}


def test_all_counts_as_the_most_that_one_claim_can_hold():
    """5004-QUOTA-10: Rule 6.4: 32 for All."""
    assert used(claim({"exactly": exactly(mode="All")}))[DEVICES] == "32"


def test_admin_access_is_charged_too():
    """5004-QUOTA-10: Rule 6.4: adminAccess is not exempt."""
    assert used(claim({"exactly": exactly(1, adminAccess=True)}))[DEVICES] == "1"


def test_of_alternatives_the_largest_in_each_class_is_charged():
    """5004-QUOTA-10: Rule 6.4: firstAvailable counts the maximum over its subrequests in each class, and
    the sum over classes: alternatives in different classes are each charged."""
    options = [exactly(4), exactly(1), exactly(2, "nic.example.com")]
    found = used(claim({"firstAvailable": options}, {"exactly": exactly(1)}))
    assert (found[DEVICES], found["nic.example.com.deviceclass.resource.k8s.io/devices"]) == ("5", "2")


def test_capacity_that_is_shared_is_not_charged():
    """5004-QUOTA-10: Rule 6.4: there is no quota on consumable capacity; a share counts as a device."""
    shared = exactly(1, capacity={"requests": {"memory": "10Gi"}})
    assert used(claim({"exactly": shared})) == used(claim({"exactly": exactly(1)}))


def test_an_ordinary_claim_is_charged_under_the_extended_name_of_its_class():
    """Rule 6.4: `requests.<extendedResourceName>` and the implicit name too."""
    found = used(claim({"exactly": exactly(2)}), MAPPED)
    assert (found[DEVICES], found[IMPLICIT], found[EXTENDED]) == ("2", "2", "2")


def owned(subject, *claims):
    return Context(MAPPED.extended_names, lambda claim: Owner(subject.fields, [one.fields for one in claims]))


def test_the_claim_of_a_pod_does_not_pay_again_what_the_pod_has_paid():
    """Rule 6.4: what the owning pod was charged is subtracted; here it was charged under every name."""
    asker = pod(asking({"example.com/gpu": "2"}))
    made = special(asker, {"exactly": exactly(3)})
    found = used(made, owned(asker))
    assert (found[DEVICES], found[IMPLICIT], found[EXTENDED]) == ("1", "1", "1")


def test_a_pod_is_charged_under_every_name_of_the_class_that_its_extended_resource_stands_for():
    """KEP-5004 "Resource Quota": devices of a device plugin, for which no claim is made, count as well."""
    for name in ("example.com/gpu", f"deviceclass.resource.kubernetes.io/{GPU}"):
        found = used(pod(asking({name: "2"})), MAPPED)
        assert (found[DEVICES], found[IMPLICIT], found[EXTENDED]) == ("2", "2", "2")


def named(name: str, created: str, extended: str | None = "example.com/gpu") -> resource.DeviceClass:
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:0{created}Z"}
    spec = {"extendedResourceName": extended} if extended else {}
    return meta.view(resource.DeviceClass, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("classes", "serves"),
    [
        ([named("a", "1"), named("b", "2")], "b"),
        ([named("b", "2"), named("a", "1")], "b"),
        ([named("b", "1"), named("a", "1")], "a"),
        ([named("a", "1"), named("b", "2", None)], "a"),
    ],
    ids=["the later", "the later, heard of first", "of one second the first by name", "who has the name"],
)
def test_an_extended_name_is_that_of_the_class_that_serves_it(classes, serves):
    """5004-QUOTA-08: the scheduler's rule."""
    assert extended_names(classes) == {serves: "example.com/gpu"}


def test_claims_of_a_class_that_does_not_serve_its_name_do_not_count_under_it():
    """5004-QUOTA-08: a pod that uses the name counts under the names of the class that serves it."""
    names = extended_names([named(GPU, "1"), named("other", "2")])
    assert EXTENDED not in used(claim({"exactly": exactly(2)}), Context(names))
    found = used(pod(asking({"example.com/gpu": "2"})), Context(names))
    assert (found["other.deviceclass.resource.k8s.io/devices"], found[EXTENDED]) == ("2", "2")
    assert DEVICES not in found


def test_without_extended_resources_by_claims_each_view_stands_for_itself():
    """5004-QUOTA-15: Rule 6.4: the `requests.*` names of a class exist with DRAExtendedResource alone."""
    off = Context(None)
    assert used(claim({"exactly": exactly(2)}), off) == {**ONE_CLAIM, DEVICES: "2"}
    assert DEVICES not in used(pod(asking({"example.com/gpu": "2"})), off)


def test_a_claim_that_only_looks_like_the_pods_pays():
    """5004-QUOTA-11: Rule 6.4: the owner's uid is verified before anything is subtracted."""
    asker = pod(asking({"example.com/gpu": "2"}))
    other = pod(asking({"example.com/gpu": "2"}), uid="another")
    assert used(special(other, {"exactly": exactly(2)}), owned(asker))[EXTENDED] == "2"
    forged = claim(
        {"exactly": exactly(2)}, annotations={"resource.kubernetes.io/extended-resource-claim": "true"}
    )
    assert used(forged, owned(asker))[EXTENDED] == "2"  # fmt: skip


def test_of_two_claims_for_one_pod_one_is_paid_for():
    """5004-QUOTA-11: Rule 6.4: the claim that pod.status names, else the oldest. A scheduler that started
    over left the older one; later the pod says which one it has."""
    asker = pod(asking({"example.com/gpu": "2"}))
    old = special(asker, {"exactly": exactly(2)}, name="old", made="t1")
    new = special(asker, {"exactly": exactly(2)}, name="new", made="t2")
    before = owned(asker, old, new)
    assert (used(old, before)[EXTENDED], used(new, before)[EXTENDED]) == ("0", "2")
    asker.fields["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "new"}}
    assert (used(old, before)[EXTENDED], used(new, before)[EXTENDED]) == ("2", "0")


def test_the_claim_of_a_finished_pod_pays_for_itself():
    """5004-QUOTA-12: The pod pays no more, and the devices are still held."""
    asker = pod(asking({"example.com/gpu": "2"}), phase="Succeeded")
    assert used(special(asker, {"exactly": exactly(2)}), owned(asker))[EXTENDED] == "2"


@given(
    explicit=st.integers(0, 5),
    implicit=st.integers(0, 5),
    ordinary=st.lists(st.integers(1, 5), max_size=4),
)
def test_the_three_names_of_a_class_agree(explicit, implicit, ordinary):
    """QUOTA2, whichever way devices were asked for, once the scheduler has made the pod's claim."""
    asked = {"example.com/gpu": explicit, f"deviceclass.resource.kubernetes.io/{GPU}": implicit}
    asker = pod(asking({name: str(count) for name, count in asked.items() if count}))
    subjects = [asker, *(claim({"exactly": exactly(count)}) for count in ordinary)]
    if explicit + implicit:
        subjects.append(special(asker, {"exactly": exactly(explicit + implicit)}))
    total: dict[str, Quantity] = {}
    for subject in subjects:
        total = add(total, usage(subject, owned(asker)))
    counted = {total.get(name, Quantity(0)).as_int() for name in (DEVICES, IMPLICIT, EXTENDED)}
    assert counted == {explicit + implicit + sum(ordinary)}


def test_claims_are_followed_for_every_name_that_they_use():
    assert all(CLAIMS in sources(name) for name in used(claim({"exactly": exactly()}), MAPPED))


# Classic claims: KEP-3063


def test_a_classic_claim_counts_as_a_claim_of_its_class_and_holds_no_devices():
    """3063-RISK-07, 3063-RISK-08, 3063-RISK-10: the request that it shows is nobody's to count."""
    shown = claim({"exactly": exactly(1)})
    shown.fields["spec"]["resourceClassName"] = GPU
    assert used(shown) == {**ONE_CLAIM, f"{GPU}.resourceclass.node.k8s.io/resourceclaims": "1"}


def test_whose_objects_count_under_the_names_of_claims():
    """3063-COMP-02."""
    assert sources("resourceclaims") == (CLAIMS,)
    assert sources("gpu.resourceclass.node.k8s.io/resourceclaims") == (CLAIMS,)
