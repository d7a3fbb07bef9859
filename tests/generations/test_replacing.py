"""Classic claims and templates of a namespace, replaced."""

from typing import Any

from allot.generations import Mapping, replacing

GPU = Mapping({"fast": {"deviceClassName": "gpu.example.com"}})


def thing(kind: str, name: str, class_name: str = "fast", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"resourceClassName": class_name}
    if kind == "ResourceClaimTemplate":
        spec = {"spec": spec}
    return {
        "apiVersion": "resource.k8s.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "uid": "u"},
        "spec": spec,
        **more,
    }


def user(kind: str, name: str, **claim: str) -> dict[str, Any]:
    spec = {"resourceClaims": [{"name": "gpu", **claim}]}
    return {
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec if kind == "Pod" else {"template": {"spec": spec}},
    }


def test_what_is_free_is_replaced_and_its_users_are_named():
    users = [
        user("Deployment", "web", resourceClaimTemplateName="t"),
        user("Pod", "alone", resourceClaimName="c"),
        user("Pod", "other", resourceClaimName="d"),
    ]
    found = replacing([thing("ResourceClaim", "c"), thing("ResourceClaimTemplate", "t")], users, GPU)
    assert [(one.plural, one.name, one.users) for one in found.replacements] == [
        ("resourceclaims", "c", ("Pod alone",)),
        ("resourceclaimtemplates", "t", ("Deployment web",)),
    ]
    manifest = found.replacements[0].manifest
    assert manifest["apiVersion"] == "resource.k8s.io/v1"
    assert "uid" not in manifest["metadata"]


def test_what_is_in_use_and_what_is_not_mapped_stays():
    held = thing("ResourceClaim", "held", status={"reservedFor": [{"name": "p"}]})
    allocated = thing("ResourceClaim", "allocated", status={"allocation": {}, "driverName": "d"})
    allocated["status"]["allocation"] = {"shareable": True}
    unknown = thing("ResourceClaim", "unknown", "slow")
    structured = thing("ResourceClaim", "structured", "")
    found = replacing([held, allocated, unknown, structured], [], GPU)
    assert found.replacements == ()
    assert [words.partition(":")[0] for words in found.in_use] == [
        "ResourceClaim held is in use, by p",
        "ResourceClaim allocated is in use",
    ]
    assert "--class slow=NAME" in found.impossible[0]


def test_a_claim_that_was_made_for_a_pod_stays():
    """It goes with its pod; the next one is made from the template of then."""
    made = thing("ResourceClaim", "p-gpu")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "u", "controller": True}]
    assert replacing([made], [], GPU).replacements == ()
