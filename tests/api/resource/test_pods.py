"""The pod's side of claims."""

import pytest

from allot.api import Gates
from allot.api.field import Path
from allot.api.resource import pods

SPEC = Path("spec")
CLAIMS = [{"name": "gpu", "resourceClaimName": "c"}, {"name": "nic", "resourceClaimTemplateName": "t"}]


def pod(*uses, claims=CLAIMS, requests=None, **status):
    container = {"name": "main", "resources": {"claims": list(uses), "requests": requests or {}}}
    return {"spec": {"resourceClaims": claims, "containers": [container]}, "status": status}


def brief(errors):
    return [f"{error.path} {error.wrong.name.lower()}" for error in errors]


@pytest.mark.parametrize(
    ("claims", "causes"),
    [
        (CLAIMS, []),
        ([{"name": "gpu"}], ["spec.resourceClaims[0] required"]),
        ([{**CLAIMS[0], "resourceClaimTemplateName": "t"}], ["spec.resourceClaims[0] invalid"]),
        ([{"resourceClaimName": "c"}], ["spec.resourceClaims[0].name required"]),
        ([{"name": "G_", "resourceClaimName": "c"}], ["spec.resourceClaims[0].name invalid"]),
        ([CLAIMS[0], CLAIMS[0]], ["spec.resourceClaims[1].name duplicate"]),
        ([{"name": "gpu", "resourceClaimName": "C_"}], ["spec.resourceClaims[0].resourceClaimName invalid"]),
        ([CLAIMS[0], {"name": "other", "resourceClaimName": "c"}], []),  # the same claim under two names
    ],
)
def test_the_claims_of_a_pod(claims, causes):
    assert brief(pods.spec_errors({"resourceClaims": claims}, SPEC)) == causes


USES = "spec.containers[0].resources.claims"


@pytest.mark.parametrize(
    ("uses", "causes"),
    [
        ([{"name": "gpu"}, {"name": "nic"}], []),
        ([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}], []),
        ([{"name": "gpu"}, {"name": "gpu"}], [f"{USES}[1] duplicate"]),
        ([{"name": "gpu"}, {"name": "gpu", "request": "a"}], [f"{USES}[1] duplicate"]),
        ([{"name": "gpu", "request": "a"}, {"name": "gpu"}], [f"{USES}[1] duplicate"]),
        ([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "a"}], [f"{USES}[1] duplicate"]),
        ([{"name": "gpu", "request": "a/b"}], [f"{USES}[0].request invalid"]),
        ([{"name": "zz"}], [f"{USES}[0] not_found"]),
        ([{"name": ""}], [f"{USES}[0] required"]),
    ],
)
def test_what_a_container_uses(uses, causes):
    assert brief(pods.spec_errors(pod(*uses)["spec"], SPEC)) == causes


def test_static_pods_have_no_claims():
    mirror = {"kubernetes.io/config.mirror": "x"}
    assert brief(pods.spec_errors({"resourceClaims": CLAIMS}, SPEC, mirror)) == [
        "spec.resourceClaims forbidden"
    ]
    assert pods.spec_errors({}, SPEC, mirror) == []


def test_a_pods_own_resources_have_no_claims():
    spec = {"resourceClaims": CLAIMS, "resources": {"claims": [{"name": "gpu"}]}}
    assert brief(pods.spec_errors(spec, SPEC)) == ["spec.resources.claims forbidden"]


@pytest.mark.parametrize(
    ("statuses", "causes"),
    [
        ([{"name": "gpu", "resourceClaimName": "c-x"}], []),
        ([{"name": "gpu"}], []),  # generation intentionally skipped
        ([{"name": "zz"}], ["status.resourceClaimStatuses[0].name invalid"]),
        ([{"name": "gpu"}, {"name": "gpu"}], ["status.resourceClaimStatuses[1].name duplicate"]),
        (
            [{"name": "gpu", "resourceClaimName": "C_"}],
            ["status.resourceClaimStatuses[0].resourceClaimName invalid"],
        ),
    ],
)
def test_the_claims_that_were_generated(statuses, causes):
    assert brief(pods.status_errors(pod(resourceClaimStatuses=statuses))) == causes


EXT = "status.extendedResourceClaimStatus"


def mapping(container="main", resource="example.com/gpu", request="container-0-request-0"):
    return {"containerName": container, "resourceName": resource, "requestName": request}


@pytest.mark.parametrize(
    ("extended", "causes"),
    [
        ({"resourceClaimName": "c", "requestMappings": [mapping()]}, []),
        ({"resourceClaimName": "c"}, [f"{EXT}.requestMappings required"]),
        ({}, [f"{EXT}.resourceClaimName invalid", f"{EXT}.requestMappings required"]),
        (
            {"resourceClaimName": "c", "requestMappings": [mapping("zz")]},
            [f"{EXT}.requestMappings[0].containerName invalid"],
        ),
        (
            {"resourceClaimName": "c", "requestMappings": [mapping(resource="x/y")]},
            [f"{EXT}.requestMappings[0].resourceName invalid"],
        ),
        (
            {"resourceClaimName": "c", "requestMappings": [mapping(), mapping()]},
            [f"{EXT}.requestMappings[1] duplicate"],
        ),
    ],
)
def test_the_claim_for_extended_resources(extended, causes):
    made = pod(requests={"example.com/gpu": "1"}, extendedResourceClaimStatus=extended)
    assert brief(pods.status_errors(made)) == causes


HEALTH = "status.containerStatuses[0].allocatedResourcesStatus[0]"


@pytest.mark.parametrize(
    ("resource", "causes"),
    [
        ({"name": "claim:gpu/a", "resources": [{"resourceID": "x", "health": "Healthy"}]}, []),
        (
            {
                "name": "claim:gpu/a",
                "resources": [{"resourceID": "x", "health": "Unhealthy", "message": "it is too hot"}],
            },
            [],
        ),
        ({"name": "claim:nic", "resources": []}, []),
        ({"name": "claim:ext/r0"}, []),
        ({"name": "claim:gpu"}, [f"{HEALTH}.name invalid"]),
        (
            {"name": "claim:gpu/a", "resources": [{"resourceID": "x", "health": "Ill"}]},
            [f"{HEALTH}.resources[0].health unsupported"],
        ),
        (
            {"name": "claim:gpu/a", "resources": [{"resourceID": "x"}] * 2},
            [f"{HEALTH}.resources[1].resourceID duplicate"],
        ),
        (
            {"name": "claim:gpu/a", "resources": [{"resourceID": "x", "message": "m" * 1025}]},
            [f"{HEALTH}.resources[0].message too_long"],
        ),
    ],
)
def test_the_health_of_what_a_container_got(resource, causes):
    made = pod(
        {"name": "gpu", "request": "a"},
        {"name": "nic"},
        requests={"example.com/gpu": "1"},
        containerStatuses=[{"name": "main", "allocatedResourcesStatus": [resource]}],
        extendedResourceClaimStatus={"resourceClaimName": "ext", "requestMappings": [mapping(request="r0")]},
    )
    assert brief(pods.status_errors(made)) == causes


def test_a_resource_is_reported_on_once():
    twice = [{"name": "claim:nic"}] * 2
    made = pod({"name": "nic"}, containerStatuses=[{"name": "main", "allocatedResourcesStatus": twice}])
    path = "status.containerStatuses[0].allocatedResourcesStatus[1].name"
    assert brief(pods.status_errors(made)) == [f"{path} duplicate"]


def test_ephemeral_containers_have_no_devices():
    made = pod(ephemeralContainerStatuses=[{"name": "e", "allocatedResourcesStatus": [{"name": "x"}]}])
    assert brief(pods.status_errors(made)) == [
        "status.ephemeralContainerStatuses[0].allocatedResourcesStatus forbidden"
    ]


def test_node_allocatable_claims_name_claims_and_containers():
    path = "status.nodeAllocatableResourceClaimStatuses"
    listed = [{"resourceClaimName": "c", "containers": ["main", "zz"]}, {}, {"resourceClaimName": "c"}]
    assert brief(pods.status_errors(pod(nodeAllocatableResourceClaimStatuses=listed))) == [
        f"{path}[0].containers[1] invalid",
        f"{path}[1].resourceClaimName required",
        f"{path}[2].resourceClaimName duplicate",
    ]


def test_a_status_write_that_says_nothing_of_claims_keeps_what_is_there():
    """Old clients would lose it; an explicit empty list is said, and clears."""
    old = pod(resourceClaimStatuses=[{"name": "gpu"}], extendedResourceClaimStatus={"resourceClaimName": "c"})
    silent, clearing = {"status": {"phase": "Running"}}, {"status": {"resourceClaimStatuses": []}}
    pods.keep_unsaid_status(silent, old)
    pods.keep_unsaid_status(clearing, old)
    assert silent["status"] == {"phase": "Running", **old["status"]}
    assert clearing["status"]["resourceClaimStatuses"] == []
    assert clearing["status"]["extendedResourceClaimStatus"] == {"resourceClaimName": "c"}


def test_gated_status_fields_are_dropped_unless_in_use():
    said = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]}
    new, kept = pod(**said), pod(**said)
    pods.drop_gated(new, None, Gates())
    pods.drop_gated(kept, pod(**said), Gates())
    assert new["status"] == {}
    assert kept["status"] == said
