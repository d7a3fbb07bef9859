"""Server-side apply: stories of several writers, then every small history."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.errors import BadRequest
from allot.api.schema import apply_defaults, check, from_structural, get
from allot.apiserver.apply import Applied, Author, apply
from allot.apiserver.apply.compare import compare
from allot.apiserver.apply.configured import configured
from allot.apiserver.apply.fieldset import EMPTY, difference, intersection, paths, union

from .worlds import DEPLOYMENT, World, deployments

CLAIM = get("io.k8s.api.resource.v1.ResourceClaim")
POD = get("io.k8s.api.core.v1.Pod")


def config(**spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def pod_template(*containers):
    return {"spec": {"containers": list(containers)}}


def test_an_apply_may_create():
    world = World()
    assert world.apply("ann", config(replicas=3)) is None
    assert world.content == config(replicas=3)
    assert world.managed == [
        {
            "manager": "ann",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": "t001",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }
    ]


def test_a_field_of_another_is_a_conflict_that_names_the_owner():
    world = World()
    world.apply("ann", config(replicas=3, paused=True))
    before = copy.deepcopy(world.live)

    error = world.apply("bob", config(replicas=5)).error()

    assert error.message == 'Apply failed with 1 conflict: conflict with "ann": .spec.replicas'
    assert [tuple(cause) for cause in error.causes] == [
        ("FieldManagerConflict", 'conflict with "ann"', ".spec.replicas")
    ]
    assert (error.code, error.reason) == (409, "Conflict")
    assert world.live == before


def test_conflicts_with_updaters_say_which_version_they_used():
    world = World()
    world.update("kubectl-edit", lambda fields: fields.update(config(replicas=3, paused=True)))
    message = world.apply("bob", config(replicas=5, paused=False)).error().message
    assert message.splitlines() == [
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using apps/v1:',
        "- .spec.replicas",
        "- .spec.paused",
    ]


def test_force_takes_the_field():
    world = World()
    world.apply("ann", config(replicas=3, paused=True))
    assert world.apply("bob", config(replicas=5), force=True) is None
    assert world.content["spec"] == {"replicas": 5, "paused": True}
    assert world.owned("bob") == {".spec.replicas"}
    assert world.owned("ann") == {".spec.paused"}


def test_two_who_agree_share():
    """APPLY4. Neither can remove the field alone."""
    world = World()
    world.apply("ann", config(replicas=3))
    assert world.apply("bob", config(replicas=3)) is None
    world.apply("ann", config())
    assert world.content["spec"] == {"replicas": 3}
    world.apply("bob", config())
    assert world.content["spec"] == {}


def test_what_is_given_up_goes_and_what_others_have_stays():
    """APPLY2."""
    world = World()
    world.apply("ann", config(replicas=3, paused=True, minReadySeconds=1))
    world.update("bob", lambda fields: fields["spec"].update(minReadySeconds=9))
    world.apply("ann", config(replicas=3))
    assert world.content["spec"] == {"replicas": 3, "minReadySeconds": 9}
    assert world.owned("bob") == {".spec.minReadySeconds"}


def test_an_unowned_field_stays():
    world = World()
    world.apply("ann", config(replicas=3))
    world.live["spec"]["progressDeadlineSeconds"] = 600  # what the server assumed
    world.apply("ann", config(paused=True))
    assert world.content["spec"] == {"paused": True, "progressDeadlineSeconds": 600}


def test_containers_of_several_appliers_live_side_by_side():
    world = World()
    world.apply("ann", config(template=pod_template({"name": "a", "image": "1"})))
    world.apply("bob", config(template=pod_template({"name": "b", "image": "2"})))
    world.apply(
        "bob", config(template=pod_template({"name": "a", "command": ["x"]}, {"name": "c"})), force=True
    )
    assert world.content["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "1", "command": ["x"]},
        {"name": "c"},
    ]
    world.apply("bob", config())
    assert world.content["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "1"}]


def test_an_element_goes_with_its_last_maker_whatever_others_put_into_it():
    world = World()
    world.apply("ann", config(template=pod_template({"name": "a"}, {"name": "b"})))
    containers = lambda fields: fields["spec"]["template"]["spec"]["containers"]  # noqa: E731
    world.update("injector", lambda fields: containers(fields)[1].update(image="x"))
    world.apply("ann", config(template=pod_template({"name": "a"})))
    assert containers(world.content) == [{"name": "a"}]
    assert world.owned("injector") == set()


def test_new_elements_take_their_place_in_the_order_of_the_configuration():
    world = World()
    world.apply("ann", config(template=pod_template({"name": "a"}, {"name": "c"})))
    world.update("bob", lambda f: f["spec"]["template"]["spec"]["containers"].insert(1, {"name": "server"}))
    world.apply("ann", config(template=pod_template({"name": "c"}, {"name": "new"}, {"name": "a"})))
    found = world.content["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in found] == ["c", "new", "a", "server"]


def test_elements_with_the_same_key_survive_an_apply_that_does_not_mention_them():
    """Environments may name a variable twice."""
    world = World()
    twice = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]
    template = pod_template({"name": "c", "env": twice})
    world.update("old", lambda fields: fields.update(spec={"template": template}))
    world.apply("ann", config(template=pod_template({"name": "c", "env": [{"name": "C"}]})))
    assert world.content["spec"]["template"]["spec"]["containers"][0]["env"] == [*twice, {"name": "C"}]
    world.apply(
        "ann", config(template=pod_template({"name": "c", "env": [{"name": "A", "value": "3"}]})), force=True
    )
    found = world.content["spec"]["template"]["spec"]["containers"][0]["env"]
    assert found == [{"name": "A", "value": "3"}, {"name": "B"}]


def test_finalizers_are_owned_one_by_one():
    world = World()
    world.apply("ann", {"metadata": {"finalizers": ["a", "b"]}})
    world.apply("bob", {"metadata": {"finalizers": ["b", "c"]}})
    world.apply("ann", {"metadata": {"finalizers": ["a"]}})
    assert world.content["metadata"]["finalizers"] == ["a", "b", "c"]
    world.apply("ann", {"metadata": {}})
    assert world.content["metadata"]["finalizers"] == ["b", "c"]


def test_emptied_containers_go_too():
    world = World()
    world.apply(
        "ann", {"metadata": {"labels": {"a": "1"}}, "spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}}
    )
    world.apply("ann", {"metadata": {}})
    assert world.content == {"metadata": {}}


def test_an_atomic_list_has_one_owner():
    world = World(CLAIM, "resource.k8s.io/v1")
    claim = {"metadata": {}, "spec": {"devices": {"requests": [{"name": "a"}]}}}
    world.apply("ann", claim)
    other = {"metadata": {}, "spec": {"devices": {"requests": [{"name": "b"}]}}}
    assert list(paths(world.apply("bob", other).conflicts[0].fields)) == [".spec.devices.requests"]


def test_what_the_server_assumes_is_neither_owned_nor_a_conflict():
    """The live list has defaults that the configuration does not mention."""

    def settle(fields):
        check(fields, POD)
        apply_defaults(fields, POD)
        return fields

    def applied(live, who):
        container = {"name": "c", "ports": [{"containerPort": 80}]}
        pod = {"metadata": {}, "spec": {"tolerations": [{"key": "k"}], "containers": [container]}}
        before = copy.deepcopy((live, pod))
        result = apply(live, pod, Author(who, "v1"), "t", POD, settle=settle)
        assert (live, pod) == before
        return result

    first = applied(None, "ann")
    assert first.fields["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    (entry,) = first.fields["metadata"]["managedFields"]
    port = '.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]'
    assert port in set(paths(entry["fieldsV1"])) and f"{port}.protocol" not in set(paths(entry["fieldsV1"]))
    assert isinstance(applied(first.fields, "bob"), Applied)


@pytest.mark.parametrize(
    "status", [{"replicas": 2, "conditions": [{"type": "A", "status": "True"}]}, {}, None]
)
def test_what_a_status_is_applied_with_beside_it_changes_nothing_of_who_owns_it(status):
    """APPLY1: most who apply a status say which object is meant and no more."""
    said = {"status": status} if status is not None else {}
    owned = []
    for metadata in ({"name": "d", "uid": "u", "resourceVersion": "1"}, {"name": "d", "labels": {"a": "b"}}):
        world = World()
        world.apply("ann", config(replicas=3))
        world.apply("bob", {**config(), "spec": {}, "metadata": metadata, **said}, subresource="status")
        whole = [one["fieldsV1"] for one in world.managed if one["manager"] == "bob"]
        world = World()
        world.apply("ann", config(replicas=3))
        world.apply("bob", {"metadata": metadata, **said}, subresource="status")
        owned.append(whole)
        owned.append([one["fieldsV1"] for one in world.managed if one["manager"] == "bob"])
    assert owned == [owned[0]] * 4


def test_a_list_that_names_an_element_twice_is_refused_beside_a_status_too():
    world = World()
    world.apply("ann", config(replicas=3))
    twice = {"metadata": {"name": "d", "finalizers": ["a/b", "a/b"]}, "status": {"replicas": 1}}
    with pytest.raises(BadRequest, match="duplicate entries"):
        world.apply("bob", twice, subresource="status")


def test_status_is_applied_through_its_subresource_only():
    world = World()
    world.apply("ann", {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 1}})
    assert world.owned("ann") == {".metadata.labels.a"}
    world.apply(
        "ann",
        {"metadata": {"labels": {"c": "d"}}, "status": {"replicas": 2}},
        subresource="status",
        force=True,
    )
    entries = {e.get("subresource", ""): e["fieldsV1"] for e in world.managed}
    assert entries == {
        "": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "status": {"f:status": {"f:replicas": {}}},
    }


def test_the_first_apply_finds_owners_for_what_is_there():
    world = World()
    world.live = config(replicas=3)
    conflicts = world.apply("ann", config(replicas=4))
    assert conflicts.error().message.startswith(
        'Apply failed with 1 conflict: conflict with "before-first-apply"'
    )
    assert world.apply("ann", config(replicas=3)) is None
    assert world.owned("before-first-apply") == world.owned("ann") == {".spec.replicas"}


def test_applying_again_moves_nothing_not_even_the_time():
    """APPLY5."""
    world = World()
    world.apply("ann", config(replicas=3))
    before = copy.deepcopy(world.live)
    world.apply("ann", config(replicas=3))
    assert world.live == before


def test_another_value_moves_the_time():
    world = World()
    world.apply("ann", config(replicas=3))
    world.apply("ann", config(replicas=4))
    assert [entry["time"] for entry in world.managed] == ["t002"]


def test_a_configuration_that_says_nothing_owns_nothing():
    world = World()
    world.apply("ann", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}})
    world.apply("bob", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}})
    assert world.managed == []


def test_a_configuration_does_not_say_who_owns_what():
    with pytest.raises(BadRequest, match="managedFields"):
        World().apply("ann", {"metadata": {"managedFields": [{"manager": "x"}]}})


@pytest.mark.parametrize("containers", [[{"name": "a"}, {"name": "a"}], [{"image": "x"}]])
def test_elements_must_be_told_apart(containers):
    with pytest.raises(BadRequest, match="list element"):
        World().apply("ann", config(template=pod_template(*containers)))


# --- from client-side apply to server-side apply ----------------------------------------------


def client_side(world, fields):
    text = json.dumps(fields)

    def change(live):
        live.update(copy.deepcopy(fields))
        live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": text}

    world.update("kubectl-client-side-apply", change)


def test_kubectl_may_go_over_to_server_side_apply():
    world = World()
    client_side(world, config(replicas=3, paused=True))
    assert world.apply("kubectl", config(replicas=5, paused=True)) is None
    assert world.content["spec"]["replicas"] == 5
    text = world.content["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(text) == config(replicas=5, paused=True)


def test_others_may_not_and_neither_may_kubectl_where_somebody_else_has_been():
    world = World()
    client_side(world, config(replicas=3))
    assert world.apply("ann", config(replicas=5)) is not None
    world.update("scaler", lambda fields: fields["spec"].update(replicas=4))
    conflicts = world.apply("kubectl", config(replicas=5))
    assert [conflict.owner.manager for conflict in conflicts.conflicts] == ["scaler"]


def test_a_broken_memory_allows_nothing():
    for text in ("{", "[]", '{"spec": 1}', '{"apiVersion": "apps/v1", "spec": {"replicas": "x"}}'):
        world = World()
        client_side(world, config(replicas=3))
        world.live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = text
        assert world.apply("kubectl", config(replicas=5)) is not None


# --- custom resources and versions --------------------------------------------------------------


def test_free_form_objects_are_merged_field_by_field():
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    world = World(from_structural({"type": "object", "properties": {"spec": free}}), "e.com/v1")
    world.apply("ann", {"metadata": {}, "spec": {"a": {"x": 1}, "l": [1]}})
    world.apply("bob", {"metadata": {}, "spec": {"a": {"y": 2}}})
    assert world.content["spec"] == {"a": {"x": 1, "y": 2}, "l": [1]}
    world.apply("ann", {"metadata": {}, "spec": {"a": {"x": 1}}})
    assert world.content["spec"] == {"a": {"x": 1, "y": 2}}


def test_a_key_of_a_map_goes_with_its_last_maker():
    """As an element of a list does, whatever others put into it."""
    part = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    parts = {"type": "object", "additionalProperties": part}
    spec = {"type": "object", "properties": {"parts": parts}}
    world = World(from_structural({"type": "object", "properties": {"spec": spec}}), "e.com/v1")
    world.apply("ann", {"metadata": {}, "spec": {"parts": {"a": {"x": 1}, "b": {"x": 2}}}})
    assert world.owned("ann") >= {".spec.parts.a", ".spec.parts.a.x"}
    world.update("bob", lambda fields: fields["spec"]["parts"]["a"].update(y=5))
    world.apply("ann", {"metadata": {}, "spec": {"parts": {"b": {"x": 2}}}})
    assert world.content["spec"] == {"parts": {"b": {"x": 2}}}


class Alike:
    """Versions that show the same."""

    def convert(self, fields, version):
        return fields, DEPLOYMENT

    def keep_parts(self, version):
        return False


def test_an_applier_stays_the_same_in_another_version():
    world = World()
    world.apply("ann", config(replicas=3, paused=True))
    author = Author("ann", "apps/v2")
    result = apply(
        world.live,
        config(replicas=3),
        author,
        "t9",
        DEPLOYMENT,
        versions=Alike(),
    )
    assert result.fields["spec"] == {"replicas": 3}
    assert [e["apiVersion"] for e in result.fields["metadata"]["managedFields"]] == ["apps/v2"]


# --- for every small history --------------------------------------------------------------------

who = st.sampled_from(["ann", "bob", "cat"])
steps = st.lists(st.tuples(who, st.sampled_from(["apply", "force", "update"]), deployments), max_size=5)


def played(history):
    world = World()
    for manager, how, fields in history:
        if how == "update":
            if world.live is not None and not world.managed:
                continue  # nobody keeps a record of such an object
            world.update(manager, lambda new, fields=fields: (new.clear(), new.update(copy.deepcopy(fields))))
        else:
            world.apply(manager, fields, force=how == "force")
    return world


@settings(max_examples=150)
@given(steps, who, deployments)
def test_applying_twice_is_applying_once(history, manager, fields):
    """APPLY5, APPLY1."""
    world = played(history)
    world.apply(manager, fields, force=True)
    once = copy.deepcopy(world.live)
    assert world.apply(manager, fields) is None
    assert world.live == once
    mine = [e["fieldsV1"] for e in world.managed if (e["manager"], e["operation"]) == (manager, "Apply")]
    wanted = difference(configured(fields, DEPLOYMENT), {"f:status": {"f:replicas": {}, ".": {}}})
    assert mine == ([wanted] if wanted else [])


@settings(max_examples=150)
@given(steps, who, deployments)
def test_nobody_loses_a_field_to_an_apply_without_force(history, manager, fields):
    """APPLY2, APPLY3."""
    world = played(history)
    others = [e for e in world.managed if (e["manager"], e["operation"]) != (manager, "Apply")]
    before = world.live or {}
    conflicts = world.apply(manager, fields)
    after = world.live or {}
    if conflicts is not None:
        assert after == before and conflicts.error().causes
        return
    changes = compare(before, after, DEPLOYMENT)
    for entry in others:
        assert not intersection(entry["fieldsV1"], changes.written)
        lost = intersection(entry["fieldsV1"], changes.removed)
        made = {p for p in paths(lost) if p.rpartition("[")[0] or p}
        assert all("[" in path for path in made), "only inside an element that its maker took away"


@settings(max_examples=150)
@given(steps, who, deployments)
def test_what_is_applied_is_there(history, manager, fields):
    world = played(history)
    if world.apply(manager, fields) is None and world.live is not None:
        said = copy.deepcopy(fields)
        missing = compare(world.live, said, DEPLOYMENT)
        assert not missing.changed and not missing.added


@settings(max_examples=150)
@given(steps)
def test_only_what_is_there_has_owners(history):
    world = played(history)
    if world.live is None:
        return
    everything = EMPTY
    for entry in world.managed:
        assert entry["fieldsV1"]
        everything = union(everything, entry["fieldsV1"])
    gone = compare(world.live, {}, DEPLOYMENT)
    nowhere = difference(everything, union(gone.removed, gone.changed))
    assert set(paths(nowhere)) <= {  # parts that every deployment has, said or not
        ".spec", ".spec.strategy", ".spec.template", ".spec.template.spec", ".spec.template.spec.containers",
    }  # fmt: skip
