"""What a pod says of itself to its containers."""

import pytest

from allot.nodeagent.fields import Around, UnknownField, field, file, hostname, resource
from allot.nodeagent.views import Container, ResourceRef, Resources
from node.objects import pod

AROUND = Around("10.0.0.1", {"cpu": "8", "memory": "16Gi", "example.com/gpu": "4"})
MAIN = Container(name="main", resources=Resources(limits={"cpu": "1500m"}, requests={"memory": "100Mi"}))
OTHER = Container(name="other", resources=Resources(limits={"memory": "1Gi"}))


def amount(what: str, divisor: str = "0", container: str = "", own: str = "main") -> str:
    ref = ResourceRef(container_name=container, resource=what, divisor=divisor)
    return resource((MAIN, OTHER), own, ref, AROUND)


@pytest.mark.parametrize(
    ("what", "divisor", "expected"),
    [
        ("limits.cpu", "0", "2"),
        ("limits.cpu", "1", "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", "100m", "15"),
        ("requests.memory", "1", str(100 * 2**20)),
        ("requests.memory", "1Mi", "100"),
        ("requests.memory", "64Mi", "2"),
        ("requests.cpu", "1", "0"),
        ("limits.memory", "1Gi", "16"),
        ("limits.hugepages-2Mi", "1Mi", "0"),
    ],
)
def test_resources_are_counted_in_units_of_the_divisor_and_rounded_up(what, divisor, expected):
    """A limit that nobody has set is what the node has."""
    assert amount(what, divisor) == expected


def test_a_file_names_the_container_that_it_is_about():
    assert amount("limits.memory", "1Mi", container="other", own="") == "1024"
    with pytest.raises(UnknownField, match="the pod has no container none"):
        amount("limits.cpu", container="none")


def test_what_is_not_known_is_named():
    with pytest.raises(UnknownField, match=r"field spec\.nonsense"):
        field(pod(), "spec.nonsense", AROUND)
    with pytest.raises(UnknownField, match="resource nonsense"):
        amount("nonsense")


def test_all_labels_are_a_file_of_lines_whose_values_are_quoted():
    labelled = pod(metadata={"labels": {"b": 'say "hi"', "a": "1\n2"}, "annotations": {"x/y": "z\\"}})
    assert file(labelled, "metadata.labels", AROUND) == 'a="1\\n2"\nb="say \\"hi\\""'
    assert file(labelled, "metadata.annotations", AROUND) == 'x/y="z\\\\"'
    assert file(labelled, "metadata.labels['b']", AROUND) == 'say "hi"'


def test_a_pod_is_called_by_its_name_as_far_as_the_system_takes_one():
    """64 bytes; a name may have 253, and what is left must be one."""
    assert hostname(pod()) == "p" and hostname(pod(spec={"hostname": "web"})) == "web"
    assert hostname(pod("a" * 63)) == "a" * 63
    assert hostname(pod("a" * 100)) == "a" * 63
    assert hostname(pod("a" * 60 + "-.-" + "b" * 100)) == "a" * 60
