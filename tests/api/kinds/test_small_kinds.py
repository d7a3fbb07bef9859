"""Namespaces, nodes, config, secrets, events, leases, quotas, budgets, classes."""

import base64
import copy

import pytest

from allot.api import kinds
from allot.api.kinds import event as events

from .objects import (
    CONTEXT,
    NOW,
    changed,
    fields_of,
    kind_of,
    made,
    named,
    row,
    shown,
    wrong,
)  # fmt: skip

# -- namespaces ---------------------------------------------------------------------------------


def test_a_namespace_is_active_labelled_and_held_by_its_finalizer():
    stored = made("namespaces", {"metadata": {"name": "shop"}})
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert stored["spec"] == {"finalizers": ["kubernetes"]}
    assert stored["status"] == {"phase": "Active"}


def test_an_update_does_not_take_finalizers_off():
    old = made("namespaces", {"metadata": {"name": "shop"}})
    new = copy.deepcopy(old)
    new["spec"]["finalizers"] = []
    kind_of("namespaces").rules.prepare_update(new, old, CONTEXT)
    assert new["spec"]["finalizers"] == ["kubernetes"]


def test_a_finalizer_is_known_or_has_an_owner():
    good = {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/mine"]}}
    bad = {"metadata": {"name": "a"}, "spec": {"finalizers": ["mine"]}}
    assert wrong("namespaces", good) == []
    assert fields_of(wrong("namespaces", bad)) == ["spec.finalizers[0]"]


@pytest.mark.parametrize(
    ("phase", "going", "fine"),
    [
        ("Active", False, True),
        ("Terminating", False, False),
        ("Terminating", True, True),
        ("Active", True, False),
    ],
)
def test_the_phase_of_a_namespace_follows_its_deletion(phase, going, fine):
    metadata = {"name": "a", **({"deletionTimestamp": "2026-11-15T07:00:00Z"} if going else {})}
    new = {"metadata": metadata, "status": {"phase": phase}}
    assert (kind_of("namespaces").rules.validate_status(new, new, CONTEXT) == []) is fine


# -- nodes --------------------------------------------------------------------------------------


def node(**spec):
    return {"metadata": {"name": "n1"}, "spec": spec}


def test_a_node_can_allocate_what_it_has_unless_it_says_less():
    capacity = {"cpu": "4", "example.com/gpu": "8"}
    stored = made("nodes", {**node(), "status": {"capacity": capacity}})
    assert stored["status"]["allocatable"] == capacity
    less = {"capacity": capacity, "allocatable": {"cpu": "3"}}
    assert made("nodes", {**node(), "status": less})["status"]["allocatable"] == {"cpu": "3"}


@pytest.mark.parametrize(
    ("taints", "blamed"),
    [
        ([{"key": "a", "value": "b", "effect": "NoSchedule"}], []),
        ([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}], []),
        ([{"key": "a", "effect": "NoSchedule"}] * 2, ["spec.taints[1]"]),
        ([{"key": "a"}], ["spec.taints[0].effect"]),
        ([{"key": "a", "effect": "Sometimes"}], ["spec.taints[0].effect"]),
        ([{"key": "a b", "effect": "NoSchedule"}], ["spec.taints[0].key"]),
        ([{"key": "a", "value": "b c", "effect": "NoSchedule"}], ["spec.taints[0].value"]),
    ],
)
def test_taints(taints, blamed):
    assert fields_of(wrong("nodes", node(taints=taints))) == blamed


def test_what_may_change_in_a_node():
    old = made("nodes", node(providerID="here://1"))
    assert changed("nodes", old, node(providerID="here://1", unschedulable=True)) == []
    assert fields_of(changed("nodes", old, node(providerID="here://2"))) == ["spec.providerID"]
    assert fields_of(changed("nodes", old, node(providerID="here://1", externalID="x"))) == ["spec"]


def test_amounts_of_a_node_are_amounts():
    new = {**node(), "status": {"capacity": {"example.com/gpu": "0.5", "cpu": "-1"}, "addresses": []}}
    problems = shown(kind_of("nodes").rules.validate_status(new, new, CONTEXT))
    assert fields_of(problems) == ["status.capacity[example.com/gpu]", "status.capacity[cpu]"]


def test_node_columns():
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
    fields = {
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.37.0"},
        },
    }
    cells = row("nodes", fields)
    assert (cells["Status"], cells["Roles"]) == ("NotReady,SchedulingDisabled", "gpu,worker")
    assert (cells["Version"], cells["Internal-IP"], cells["External-IP"]) == ("v1.37.0", "10.0.0.1", "<none>")
    assert row("nodes", {"metadata": {"name": "n"}})["Status"] == "Unknown"


# -- config maps and secrets --------------------------------------------------------------------


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_keys_can_become_file_names():
    assert wrong("configmaps", named(data={"a.txt": "x", "_B-1": "y"})) == []
    assert fields_of(wrong("configmaps", named(data={"..": "x"}))) == ["data[..]"]
    assert fields_of(wrong("configmaps", named(data={"a/b": "x"}))) == ["data[a/b]"]
    assert fields_of(wrong("configmaps", named(data={"a": "x"}, binaryData={"a": "eA=="}))) == ["data[a]"]


def test_a_config_map_is_small():
    assert fields_of(wrong("configmaps", named(data={"a": "x" * (1024 * 1024 + 1)}))) == [""]


def test_what_is_immutable_stays():
    old = named(data={"a": "1"}, immutable=True)
    assert changed("configmaps", old, old) == []
    assert fields_of(changed("configmaps", old, named(data={"a": "2"}, immutable=True))) == ["data"]
    assert fields_of(changed("configmaps", old, named(data={"a": "1"}))) == ["immutable"]


def test_plain_text_in_a_secret_is_encoded_and_not_kept():
    stored = made("secrets", named(data={"a": b64("1"), "b": b64("1")}, stringData={"b": "2"}))
    assert stored["data"] == {"a": b64("1"), "b": b64("2")}
    assert "stringData" not in stored
    assert stored["type"] == "Opaque"


@pytest.mark.parametrize(
    ("kind", "data", "blamed"),
    [
        ("Opaque", {"a": "%%%"}, ["data[a]"]),
        ("kubernetes.io/tls", {"tls.crt": ""}, ["data[tls.key]"]),
        ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]"]),
        ("kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b64("{")}, ["data[.dockerconfigjson]"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b64("{}")}, []),
        ("kubernetes.io/service-account-token", {},
         ["metadata.annotations[kubernetes.io/service-account.name]"]),
        ("example.com/mine", {}, []),
    ],
)  # fmt: skip
def test_secrets_have_what_their_type_promises(kind, data, blamed):
    assert fields_of(wrong("secrets", named(type=kind, data=data))) == blamed


def test_a_refused_secret_is_not_printed():
    (problem,) = wrong("secrets", named(data={"a": "not-base64-but-secret!"}))
    assert "secret!" not in problem[1]


def test_the_type_of_a_secret_stays():
    old = made("secrets", named())
    assert fields_of(changed("secrets", old, named(type="example.com/other"))) == ["type"]


# -- events -------------------------------------------------------------------------------------

OLD = {
    "metadata": {"name": "e", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web"},
    "reason": "Scheduled",
    "message": "assigned",
    "source": {"component": "scheduler", "host": "n1"},
    "count": 3,
    "firstTimestamp": "2026-11-15T07:00:00Z",
    "lastTimestamp": "2026-11-15T07:59:00Z",
    "type": "Normal",
}
NEW = {
    "metadata": {"name": "e", "namespace": "shop"},
    "regarding": {"kind": "Pod", "namespace": "shop", "name": "web"},
    "eventTime": "2026-11-15T07:00:00.000000Z",
    "reportingController": "example.com/scheduler",
    "reportingInstance": "scheduler-1",
    "action": "Binding",
    "reason": "Scheduled",
    "note": "assigned",
    "type": "Normal",
}


def test_both_groups_show_the_same_event():
    assert events.from_core(events.to_core(dict(NEW))) == NEW
    assert events.to_core(events.from_core(dict(OLD))) == OLD
    as_new = events.from_core(dict(OLD))
    assert (as_new["note"], as_new["deprecatedCount"], as_new["regarding"]["name"]) == ("assigned", 3, "web")


def test_an_event_is_where_its_object_is():
    assert wrong("events", OLD) == []
    stray = {**OLD, "involvedObject": {"kind": "Pod", "namespace": "elsewhere", "name": "web"}}
    assert fields_of(wrong("events", stray)) == ["involvedObject.namespace"]
    about_node = {
        **OLD,
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Node"},
    }
    assert wrong("events", about_node) == []


def test_a_new_event_says_who_when_and_why():
    assert wrong("events.events.k8s.io", NEW) == []
    for field in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        lacking = {key: value for key, value in NEW.items() if key != field}
        assert fields_of(wrong("events.events.k8s.io", lacking)) == [field]
    assert fields_of(wrong("events.events.k8s.io", {**NEW, "type": "Odd"})) == ["type"]


def test_what_happened_does_not_change():
    stored = made("events.events.k8s.io", NEW)
    kind = kind_of("events.events.k8s.io")
    goes_on = {**stored, "series": {"count": 2, "lastObservedTime": "2026-11-15T07:30:00.000000Z"}}
    assert kind.rules.validate_update(goes_on, stored, CONTEXT) == []
    rewritten = {**stored, "message": "never mind"}
    assert fields_of(shown(kind.rules.validate_update(rewritten, stored, CONTEXT))) == ["note"]


def test_event_columns_are_the_same_in_both_groups():
    cells = row("events", OLD)
    assert [cells[name] for name in ("Last Seen", "Object", "Source", "Count", "First Seen")] == [
        "60s", "pod/web", "scheduler, n1", "3", "60m",
    ]  # fmt: skip
    cells = row("events.events.k8s.io", made("events.events.k8s.io", NEW))
    assert [cells[name] for name in ("Last Seen", "Object", "Source", "Count")] == [
        "60m", "pod/web", "example.com/scheduler, scheduler-1", "1",
    ]  # fmt: skip


def test_field_selectors_have_the_names_of_their_group():
    core, new = kind_of("events"), kind_of("events.events.k8s.io")
    stored = made("events.events.k8s.io", NEW)
    assert core.selectable["involvedObject.name"](stored) == new.selectable["regarding.name"](stored) == "web"
    assert core.storage == new.storage == ("", "events")


# -- leases, quotas, budgets, classes -----------------------------------------------------------


def test_leases():
    assert wrong("leases.coordination.k8s.io", named(spec={"leaseDurationSeconds": 15})) == []
    bad = named(spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})
    assert fields_of(wrong("leases.coordination.k8s.io", bad)) == [
        "spec.leaseDurationSeconds",
        "spec.leaseTransitions",
    ]


@pytest.mark.parametrize(
    ("spec", "blamed"),
    [
        ({"hard": {"pods": "2", "requests.cpu": "1", "count/jobs.batch": "3", "example.com/x": "1"}}, []),
        ({"hard": {"gpu.deviceclass.resource.k8s.io/devices": "2"}}, []),
        ({"hard": {"pods": "0.5"}}, ["spec.hard[pods]"]),
        ({"hard": {"requests.cpu": "-1"}}, ["spec.hard[requests.cpu]"]),
        ({"hard": {"Nonsense": "1"}}, ["spec.hard[Nonsense]"]),
        ({"scopes": ["BestEffort", "NotBestEffort"]}, ["spec.scopes"]),
        ({"scopes": ["Lazy"]}, ["spec.scopes"]),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
            ["spec.scopeSelector.matchExpressions[0].values"],
        ),
    ],
)
def test_quotas(spec, blamed):
    assert fields_of(wrong("resourcequotas", named(spec=spec))) == blamed


def test_quota_columns_say_used_of_hard():
    status = {"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1", "limits.cpu": "1"}}
    cells = row("resourcequotas", named(status=status))
    assert (cells["Request"], cells["Limit"]) == ("pods: 1/4", "limits.cpu: 1/2")


def test_limit_ranges_follow_from_what_is_said():
    limits = [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}]
    stored = made("limitranges", named(spec={"limits": limits}))["spec"]["limits"][0]
    assert stored["default"] == {"cpu": "2"}
    assert stored["defaultRequest"] == {"memory": "1Gi", "cpu": "2"}
    upside_down = [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]
    blamed = fields_of(wrong("limitranges", named(spec={"limits": upside_down})))
    assert blamed == ["spec.limits[0].min[cpu]"]


@pytest.mark.parametrize(
    ("spec", "blamed"),
    [
        ({"minAvailable": "50%"}, []),
        ({"maxUnavailable": 1, "minAvailable": 1}, ["spec"]),
        ({"minAvailable": -1}, ["spec.minAvailable"]),
        ({"maxUnavailable": "200%"}, ["spec.maxUnavailable"]),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            ["spec.selector.matchExpressions[0].values"],
        ),
        ({"unhealthyPodEvictionPolicy": "Perhaps"}, ["spec.unhealthyPodEvictionPolicy"]),
    ],
)
def test_disruption_budgets(spec, blamed):
    assert fields_of(wrong("poddisruptionbudgets.policy", named(spec=spec))) == blamed


PRIORITY = "priorityclasses.scheduling.k8s.io"


def priority(name, value, **more):
    return {"metadata": {"name": name}, "value": value, **more}


def test_priority_classes():
    assert wrong(PRIORITY, priority("high", 1_000_000_000)) == []
    assert made(PRIORITY, priority("high", 1))["preemptionPolicy"] == "PreemptLowerPriority"
    assert fields_of(wrong(PRIORITY, priority("high", 1_000_000_001))) == ["value"]
    assert fields_of(wrong(PRIORITY, priority("system-mine", 1))) == ["metadata.name"]
    assert wrong(PRIORITY, priority("system-node-critical", 2_000_001_000)) == []
    old = made(PRIORITY, priority("high", 1))
    assert fields_of(changed(PRIORITY, old, priority("high", 2))) == ["value"]
    assert fields_of(changed(PRIORITY, old, priority("high", 1, preemptionPolicy="Never"))) == [
        "preemptionPolicy"
    ]


def test_services():
    stored = made("services", named(spec={"ports": [{"port": 80}]}))
    assert stored["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (stored["spec"]["type"], stored["spec"]["sessionAffinity"]) == ("ClusterIP", "None")
    assert fields_of(wrong("services", named(spec={}))) == ["spec.ports"]
    two = {"ports": [{"port": 80, "name": "a"}, {"port": 81}]}
    assert fields_of(wrong("services", named(spec=two))) == ["spec.ports[1].name"]
    cells = row(
        "services",
        named(spec={"type": "LoadBalancer", "ports": [{"port": 1, "nodePort": 2, "protocol": "TCP"}]}),
    )
    assert (cells["External-IP"], cells["Port(s)"]) == ("<pending>", "1:2/TCP")


def test_volumes_and_claims():
    claim = named(spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
    assert wrong("persistentvolumeclaims", claim) == []
    stored = made("persistentvolumeclaims", claim)
    assert (stored["spec"]["volumeMode"], stored["status"]) == ("Filesystem", {"phase": "Pending"})
    bound = copy.deepcopy(stored)
    bound["spec"]["volumeName"] = "v"
    assert changed("persistentvolumeclaims", stored, bound) == []
    elsewhere = copy.deepcopy(bound)
    elsewhere["spec"]["volumeName"] = "w"
    assert fields_of(changed("persistentvolumeclaims", bound, elsewhere)) == ["spec"]
    assert fields_of(wrong("persistentvolumeclaims", named(spec={}))) == [
        "spec.accessModes",
        "spec.resources[storage]",
    ]


def test_every_moment_is_read_from_what_is_handed_in():
    """Nothing here looks at the clock: the same object at the same moment has the same row."""
    stored = made(
        "pods", {"metadata": {"name": "p", "creationTimestamp": "2026-11-15T07:00:00Z"}, "spec": {}}
    )
    rows = {str(kind_of("pods").row(stored, NOW)) for _ in range(3)}
    assert len(rows) == 1
    assert len(kinds.ALL) > 30
