"""What upstream asks of the API server, by its conformance and integration tests: docs/upstream-tests.md."""

import pytest

from allot.api import errors
from kep.objects import NS
from kep.telling import Desk, to_the_server

REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
CLAIM_SPEC = {"devices": {"requests": [REQUEST]}}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
KINDS = {
    "deviceclasses": ("v1", False, {}),
    "devicetaintrules": ("v1", False, {"taint": {"key": "example.com/x", "effect": "NoSchedule"}}),
    "resourceclaims": ("v1", True, CLAIM_SPEC),
    "resourceclaimtemplates": ("v1", True, {"spec": CLAIM_SPEC}),
    "resourceslices": (
        "v1",
        False,
        {"driver": "d.example.com", "pool": POOL, "nodeName": "n", "devices": []},
    ),
}


@pytest.mark.parametrize("plural", KINDS)
@to_the_server()
async def test_every_kind_is_created_read_changed_listed_watched_and_deleted(here: Desk, plural: str):
    version, namespaced, spec = KINDS[plural]
    kind = here.client.resource("resource.k8s.io", version, plural, namespaced=namespaced)
    space = NS if namespaced else ""
    made = await kind.create({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": spec}, space)
    assert (await kind.get("a", space)).uid == made.uid
    with pytest.raises(errors.AlreadyExists):
        await kind.create({"metadata": {"name": "a"}, "spec": spec}, space)
    patched = await kind.patch("a", {"metadata": {"annotations": {"patched": "yes"}}}, space)
    changed = patched.changed({"metadata": {"annotations": {"updated": "yes"}}})
    assert (await kind.update(changed)).metadata.annotations == {"patched": "yes", "updated": "yes"}
    with pytest.raises(errors.Conflict):
        await kind.update(made)
    await kind.create({"metadata": {"name": "b", "labels": {"x": "2"}}, "spec": spec}, space)
    assert [one.name for one in (await kind.list(space)).objects] == ["a", "b"]
    assert [one.name for one in (await kind.list(space, label_selector="x=2")).objects] == ["b"]
    seen = []
    async for event in kind.watch(space, resource_version=made.resource_version):
        seen.append((event.type.name, event.object.name))
        if len(seen) == 3:
            break
    assert seen == [("MODIFIED", "a"), ("MODIFIED", "a"), ("ADDED", "b")]
    await kind.delete("a", space)
    with pytest.raises(errors.NotFound):
        await kind.get("a", space)
    await kind.delete_collection(space, label_selector="x=2")
    assert (await kind.list(space)).objects == ()


def largest_device(at: int, name: str, **more):
    """As many attributes as there may be, each as long as it may be."""
    names = [f"a{one:02}".ljust(32, "x") for one in range(32)]
    attributes = {f"{'d' * 51}.example.com/{one}": {"string": "v" * 64} for one in names}
    return {"name": f"{name}{at:03}".ljust(63, "x"), "attributes": attributes, **more}


@pytest.mark.parametrize("kind", ["plain", "tainted", "counters"])
@to_the_server()
async def test_the_largest_legal_slice_can_be_stored(here: Desk, kind: str):
    """MaxResourceSlice: what the limits allow together fits into one object."""
    spec = {"driver": "d.example.com", "pool": POOL, "nodeName": "n" * 63}
    if kind == "plain":
        spec["devices"] = [largest_device(at, "plain") for at in range(128)]
    elif kind == "tainted":
        taint = {"value": "v" * 63, "effect": "NoSchedule"}
        taints = [{"key": f"{'t' * 50}{at:02}.example.com/{'k' * 63}", **taint} for at in range(16)]
        spec["devices"] = [largest_device(at, "tainted", taints=taints) for at in range(64)]
    else:
        counters = {f"c{at:02}".ljust(63, "x"): {"value": "1" * 18} for at in range(32)}
        spec["sharedCounters"] = [{"name": f"s{at}".ljust(63, "x"), "counters": counters} for at in range(8)]
    made = await here.slices.create({"metadata": {"name": "s" * 253}, "spec": spec})
    found = await here.slices.get("s" * 253)
    assert found.fields["spec"].keys() == made.fields["spec"].keys() == spec.keys()
