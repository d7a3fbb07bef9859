"""Which devices a container gets: what it asked for and nothing else (N4)."""

from typing import Any

from allot.api import core
from allot.node import ClaimRef
from allot.nodeagent.giving import cdi_ids, given
from allot.nodeagent.told import Device, Entry, Part
from allot.nodeagent.views import Pod
from node.objects import pod


def entry(claim: str, *devices: Device, driver: str = "gpu") -> Entry:
    return Entry(ClaimRef(f"uid-{claim}", "default", claim), {driver: Part(devices=devices)})


def device(name: str, *requests: str) -> Device:
    return Device("pool", name, requests, (f"v/c={name}",))


def ids(container: dict[str, Any], *entries: Entry, status: dict[str, Any] | None = None) -> tuple[str, ...]:
    claims = [
        {"name": "mine", "resourceClaimName": "a"},
        {"name": "made", "resourceClaimTemplateName": "t"},
    ]
    spec = {"resourceClaims": claims, "containers": [{"name": "main", **container}]}
    made = [{"name": "made", "resourceClaimName": "p-made-x"}]
    one = pod(spec=spec, status={"resourceClaimStatuses": made, **(status or {})})
    return cdi_ids(given(one.view(core.Pod), one.view(Pod).spec.containers[0], entries))


def asks(*claims: dict[str, str]) -> dict[str, Any]:
    return {"resources": {"claims": claims}}


def test_a_container_that_names_a_claim_gets_all_of_its_devices():
    assert ids(asks({"name": "mine"}), entry("a", device("0", "x"), device("1", "y"))) == ("v/c=0", "v/c=1")


def test_one_that_names_a_request_gets_the_devices_of_that_and_those_of_all():
    found = ids(
        asks({"name": "mine", "request": "x"}), entry("a", device("0", "x"), device("1", "y"), device("2"))
    )
    assert found == ("v/c=0", "v/c=2")


def test_one_that_names_nothing_gets_nothing():
    assert ids({}, entry("a", device("0"))) == ()


def test_a_claim_made_from_a_template_is_found_by_the_pods_status():
    assert ids(asks({"name": "made"}), entry("p-made-x", device("0")), entry("a", device("1"))) == ("v/c=0",)


def test_a_device_that_is_asked_for_twice_is_given_once():
    assert ids(asks({"name": "mine"}, {"name": "mine", "request": "x"}), entry("a", device("0", "x"))) == (
        "v/c=0",
    )


def test_each_container_gets_what_its_mappings_name_whatever_requests_are_called():
    """5004-ACT-05, 5004-ACT-06."""
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "any-name"}
    other = {**mapping, "containerName": "side", "requestName": "container-0-request-0"}
    status = {
        "extendedResourceClaimStatus": {"resourceClaimName": "special", "requestMappings": [mapping, other]}
    }
    special = entry("special", device("0", "container-0-request-0"), device("1", "any-name"))
    assert ids({}, special, status=status) == ("v/c=1",)
