"""What is accepted and not acted on is said in the answer."""

import pytest

from allot.api import schema, unheeded

POD = {"containers": [{"name": "main", "image": "busybox"}]}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **TERM}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def written(allot_server):
    """What the server warns of when this is created."""

    def write(group, version, plural, spec, **more):
        said: list[str] = []
        resource = allot_server.client(warn=said.append).resource(group, version, plural)
        body = {"metadata": {"name": "x", "namespace": "default"}, "spec": spec, **more}
        made = allot_server.run(resource.create(body))
        return said, resource, made

    return write


def test_a_plain_pod_is_not_warned_about(written):
    said, _, _ = written("", "v1", "pods", POD)
    assert said == []


def test_affinity_to_pods_and_spreading_are_named_by_their_path(written):
    affinity = {"podAntiAffinity": {REQUIRED: [TERM]}, "nodeAffinity": None}
    said, _, _ = written(
        "", "v1", "pods", {**POD, "affinity": affinity, "topologySpreadConstraints": [SPREAD]}
    )
    assert [text.partition(": ")[0] for text in said] == [
        f"spec.affinity.podAntiAffinity.{REQUIRED}",
        "spec.topologySpreadConstraints",
    ]


def test_a_template_is_looked_into_and_a_later_write_of_something_else_is_not_warned_about(
    written, allot_server
):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {**POD, "runtimeClassName": "kata"}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    said, deployments, _ = written("apps", "v1", "deployments", spec)
    assert [text.partition(": ")[0] for text in said] == ["spec.template.spec.runtimeClassName"]
    said.clear()
    allot_server.run(deployments.patch("x", {"spec": {"replicas": 3}}, "default"))
    assert said == []
    spread = {"spec": {"template": {"spec": {"topologySpreadConstraints": [SPREAD]}}}}
    allot_server.run(deployments.patch("x", spread, "default"))
    assert [text.partition(": ")[0] for text in said] == ["spec.template.spec.topologySpreadConstraints"]


def test_failure_policies_of_jobs(written):
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    said, _, _ = written("batch", "v1", "jobs", {"template": template, "podFailurePolicy": {"rules": [rule]}})
    assert said == ["spec.podFailurePolicy: not heeded: every failure counts against backoffLimit"]


def test_a_kind_that_nobody_acts_on(written):
    said, _, _ = written("", "v1", "services", {"ports": [{"port": 80}]})
    assert said == [
        "services are stored and not acted on: no address is given to it and no traffic is routed"
    ]


def test_every_row_of_the_table_is_a_field_that_exists():
    for name, rows in unheeded.FIELDS.items():
        assert rows.keys() <= schema.get(name).fields.keys(), name
