"""Strategic merge patches, as kubectl writes them."""

import copy
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.errors import BadRequest
from allot.api.schema import get
from allot.apiserver.patch import strategic_merge

POD = get("io.k8s.api.core.v1.Pod")
NODE = get("io.k8s.api.core.v1.Node")
DEPLOYMENT = get("io.k8s.api.apps.v1.Deployment")
CLAIM = get("io.k8s.api.resource.v1.ResourceClaim")
BUDGET = get("io.k8s.api.policy.v1.PodDisruptionBudget")


def patched(document, patch, schema=POD):
    before = copy.deepcopy((document, patch))
    result = strategic_merge(document, patch, schema)
    assert (document, patch) == before
    return result


def containers(*items):
    return {"spec": {"containers": list(items)}}


def test_containers_merge_by_name():
    pod = containers({"name": "a", "image": "1", "args": ["x"]}, {"name": "b"})
    patch = containers({"name": "a", "image": "2"}, {"name": "c", "image": "3"})
    assert patched(pod, patch) == containers(
        {"name": "a", "image": "2", "args": ["x"]}, {"name": "b"}, {"name": "c", "image": "3"}
    )


def test_environment_merges_inside_containers():
    pod = containers({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]})
    patch = containers({"name": "a", "env": [{"name": "X", "value": None, "valueFrom": {"fieldRef": {}}}]})
    assert patched(pod, patch)["spec"]["containers"][0]["env"] == [
        {"name": "X", "valueFrom": {"fieldRef": {}}},
        {"name": "Y", "value": "2"},
    ]


def test_tolerations_are_replaced():
    pod = {"spec": {"tolerations": [{"key": "a"}]}}
    assert patched(pod, {"spec": {"tolerations": [{"key": "b"}]}}) == {
        "spec": {"tolerations": [{"key": "b"}]}
    }


def test_taints_of_a_node_are_replaced():
    node = {"spec": {"taints": [{"key": "a"}]}}
    assert patched(node, {"spec": {"taints": [{"key": "b"}]}}, NODE)["spec"]["taints"] == [{"key": "b"}]


def test_an_element_is_deleted_by_its_key():
    pod = containers({"name": "a"}, {"name": "b"})
    assert patched(pod, containers({"name": "a", "$patch": "delete"})) == containers({"name": "b"})
    both = containers({"name": "a", "image": "new"}, {"name": "a", "$patch": "delete"})
    assert patched(pod, both) == containers({"name": "b"}, {"name": "a", "image": "new"})


def test_a_consumer_leaves_a_claim_by_its_uid():
    claim = {"status": {"reservedFor": [{"uid": "1", "name": "p"}, {"uid": "2", "name": "q"}]}}
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}}
    assert patched(claim, patch, CLAIM) == {"status": {"reservedFor": [{"uid": "2", "name": "q"}]}}


def test_devices_of_a_claim_are_replaced():
    claim = {"spec": {"devices": {"requests": [{"name": "a"}]}}}
    patch = {"spec": {"devices": {"requests": [{"name": "b"}]}}}
    assert patched(claim, patch, CLAIM) == patch


def test_a_list_can_be_replaced_as_a_whole():
    pod = containers({"name": "a"}, {"name": "b"})
    assert patched(pod, containers({"$patch": "replace"}, {"name": "c"})) == containers({"name": "c"})
    assert patched(pod, containers({"$patch": "replace"})) == containers()


def test_an_object_can_be_replaced_or_emptied():
    pod = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    assert patched(pod, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}) == {
        "metadata": {"labels": {"c": "3"}}
    }
    assert patched(pod, {"metadata": {"labels": {"$patch": "delete"}}}) == {"metadata": {"labels": {}}}
    assert patched(pod, {"metadata": {"labels": {"$patch": "merge", "a": None}}}) == {
        "metadata": {"labels": {"b": "2"}}
    }


def test_a_volume_keeps_only_the_source_it_retains():
    """An emptyDir becomes a configMap; merging both would be invalid."""
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}}
    change = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}
    assert patched(pod, {"spec": {"volumes": [change]}})["spec"]["volumes"] == [
        {"name": "v", "configMap": {"name": "c"}},
        {"name": "w", "emptyDir": {}},
    ]


def test_a_strategy_keeps_only_what_it_retains():
    old = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(old, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_a_budget_selector_is_replaced():
    old = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert patched(old, patch, BUDGET) == patch


def test_finalizers_are_a_set():
    old = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(old, {"metadata": {"finalizers": ["c", "b", "c"]}})["metadata"]["finalizers"] == [
        "a",
        "b",
        "c",
    ]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["z"]}}
    assert patched(old, patch)["metadata"]["finalizers"] == ["b", "z"]


def test_the_patch_decides_the_order_of_what_it_knows():
    pod = containers({"name": "a"}, {"name": "server"}, {"name": "b"})
    order = [{"name": "b"}, {"name": "new"}, {"name": "a"}]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": [{"name": "new"}]}}
    assert [c["name"] for c in patched(pod, patch)["spec"]["containers"]] == ["server", "b", "new", "a"]


def test_order_alone_can_be_patched():
    old = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}
    assert patched(old, patch)["metadata"]["finalizers"] == ["b", "a"]


def test_what_is_new_brings_no_directives_and_no_nulls():
    affinity = {"nodeAffinity": None, "x": {"$patch": "merge"}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"]}], "affinity": affinity}}
    assert patched({}, patch) == {"spec": {"volumes": [{"name": "v"}], "affinity": {"x": {}}}}


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"$patch": "explode"}},
        {"spec": {"containers": [{"image": "x"}]}},
        {"spec": {"containers": ["x"]}},
        {"spec": {"containers": [{"$patch": "delete"}]}},
        {"spec": {"$retainKeys": "name"}},
        {"spec": {"$retainKeys": ["a"], "nodeName": "n"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        {"metadata": {"$setElementOrder/finalizers": {}}},
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch):
    with pytest.raises(BadRequest):
        patched(containers({"name": "a"}), patch)


def test_long_lists_take_no_time():
    many = [str(i) for i in range(50_000)]
    started = time.process_time()
    old = {"metadata": {"finalizers": many}, "spec": {"containers": [{"name": name} for name in many]}}
    patched(old, {"metadata": {"$deleteFromPrimitiveList/finalizers": many, "finalizers": many}})
    patched(old, {"spec": {"containers": [{"name": name, "$patch": "delete"} for name in many]}})
    patched(old, {"spec": {"$setElementOrder/containers": [{"name": name} for name in reversed(many)]}})
    assert time.process_time() - started < 3


names = st.sampled_from("abcd")
pods = st.builds(
    lambda cs, labels: {"metadata": {"labels": labels}, "spec": {"containers": cs}},
    st.lists(
        st.fixed_dictionaries({"name": names}, optional={"image": names}), unique_by=lambda c: c["name"]
    ),
    st.dictionaries(names, names, max_size=3),
)


@given(pods, pods)
def test_merging_twice_is_merging_once(old, patch):
    once = patched(old, patch)
    assert patched(once, patch) == once
    got = {c["name"]: c.get("image") for c in once["spec"]["containers"]}
    was = {c["name"]: c.get("image") for c in old["spec"]["containers"]}
    said = {c["name"]: c.get("image") for c in patch["spec"]["containers"]}
    assert got == {n: said.get(n) or was.get(n) for n in {*was, *said}}


def test_a_dollar_within_a_name_is_no_directive():
    assert patched({"data": {"a": "1"}}, {"data": {"b$c": "2"}}) == {"data": {"a": "1", "b$c": "2"}}
    assert patched({"data": {"b$c": "1"}}, {"data": {"$retainKeys": ["b$c"], "b$c": "2"}}) == {
        "data": {"b$c": "2"}
    }
