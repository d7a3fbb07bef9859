"""Deployments and their like: a template, a selector that finds its pods, and how they are replaced."""

import copy

import pytest

from .objects import (
    CONTEXT,
    changed,
    container,
    fields_of,
    kind_of,
    made,
    row,
    shown,
    template,
    workload,
    wrong,
)  # fmt: skip

LONG_RUNNING = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps")


def spec_of(resource, **spec):
    return made(resource, workload(**spec))["spec"]


def test_a_deployment_rolls_by_quarters():
    spec = spec_of("deployments.apps")
    assert {name: spec[name] for name in ("replicas", "revisionHistoryLimit", "progressDeadlineSeconds")} == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    quarter = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": quarter}
    assert spec_of("deployments.apps", strategy={"type": "Recreate"})["strategy"] == {"type": "Recreate"}


def test_a_stateful_set_goes_one_by_one_and_keeps_its_volumes():
    spec = spec_of("statefulsets.apps", volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {}}])
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert spec["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"


def test_a_daemon_set_has_one_away_at_a_time():
    strategy = spec_of("daemonsets.apps")["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


@pytest.mark.parametrize("resource", LONG_RUNNING)
def test_what_keeps_pods_running(resource):
    good = workload()
    assert wrong(resource, good) == []

    blind = copy.deepcopy(good)
    del blind["spec"]["selector"]
    assert fields_of(wrong(resource, blind)) == ["spec.selector"]

    greedy = workload(selector={})
    assert fields_of(wrong(resource, greedy)) == ["spec.selector"]

    mistaken = workload(selector={"matchLabels": {"app": "other"}})
    assert fields_of(wrong(resource, mistaken)) == ["spec.template.metadata.labels"]

    ending = workload(template=template(restartPolicy="Never", activeDeadlineSeconds=5))
    assert fields_of(wrong(resource, ending)) == [
        "spec.template.spec.restartPolicy",
        "spec.template.spec.activeDeadlineSeconds",
    ]

    negative = workload(minReadySeconds=-1)
    assert "spec.minReadySeconds" in fields_of(wrong(resource, negative))


@pytest.mark.parametrize("resource", LONG_RUNNING)
def test_a_selector_is_chosen_once(resource):
    labels = {"app": "web", "tier": "front"}
    both = {"template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}}
    old = made(resource, workload(**both))
    new = made(resource, workload(selector={"matchLabels": {"tier": "front"}}, **both))
    blamed = "spec" if resource == "statefulsets.apps" else "spec.selector"
    assert fields_of(changed(resource, old, new)) == [blamed]


@pytest.mark.parametrize(
    ("strategy", "blamed"),
    [
        ({"type": "Magic"}, "spec.strategy.type"),
        ({"type": "Recreate", "rollingUpdate": {}}, "spec.strategy.rollingUpdate"),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            "spec.strategy.rollingUpdate.maxUnavailable",
        ),
        ({"rollingUpdate": {"maxSurge": "many"}}, "spec.strategy.rollingUpdate.maxSurge"),
        ({"rollingUpdate": {"maxUnavailable": "101%"}}, "spec.strategy.rollingUpdate.maxUnavailable"),
        ({"rollingUpdate": {"maxSurge": -1}}, "spec.strategy.rollingUpdate.maxSurge"),
    ],
)
def test_a_strategy_must_make_progress(strategy, blamed):
    assert fields_of(wrong("deployments.apps", workload(strategy=strategy))) == [blamed]


def test_a_deadline_leaves_time_to_become_ready():
    late = workload(minReadySeconds=600, progressDeadlineSeconds=600)
    assert fields_of(wrong("deployments.apps", late)) == ["spec.progressDeadlineSeconds"]


def test_most_of_a_stateful_set_stays():
    old = made("statefulsets.apps", workload(serviceName="a"))
    assert (
        changed("statefulsets.apps", old, made("statefulsets.apps", workload(serviceName="a", replicas=3)))
        == []
    )
    blamed = changed("statefulsets.apps", old, made("statefulsets.apps", workload(serviceName="b")))
    assert fields_of(blamed) == ["spec"]


def test_a_daemon_set_either_surges_or_goes_without():
    both = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    neither = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    at = "spec.updateStrategy.rollingUpdate"
    assert fields_of(wrong("daemonsets.apps", workload(updateStrategy=both))) == [f"{at}.maxSurge"]
    assert fields_of(wrong("daemonsets.apps", workload(updateStrategy=neither))) == [f"{at}.maxUnavailable"]


@pytest.mark.parametrize(
    ("resource", "status", "blamed"),
    [
        ("deployments.apps", {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2}, []),
        ("deployments.apps", {"replicas": 1, "updatedReplicas": 2}, ["status.updatedReplicas"]),
        ("replicasets.apps", {"replicas": 2, "availableReplicas": 1}, ["status.availableReplicas"]),
        ("statefulsets.apps", {"replicas": -1}, ["status.replicas"]),
        ("deployments.apps", {"collisionCount": 1}, ["status.collisionCount"]),
    ],
)
def test_no_part_exceeds_the_whole(resource, status, blamed):
    old = {
        **made(resource, workload()),
        "status": {"collisionCount": 2} if "collisionCount" in status else {},
    }
    new = {**old, "status": status}
    found = kind_of(resource).rules.validate_status(new, old, CONTEXT)
    assert fields_of(shown(found)) == blamed


def test_columns():
    stored = made("deployments.apps", workload(replicas=3))
    stored["status"] = {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}
    cells = row("deployments.apps", stored)
    assert (cells["Ready"], cells["Up-to-date"], cells["Available"]) == ("2/3", 1, 2)
    assert (cells["Containers"], cells["Images"], cells["Selector"]) == ("main", "example/app:1", "app=web")
    needs = [{"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "a", "operator": "Exists"}]
    stored["spec"]["selector"]["matchExpressions"] = needs
    assert row("deployments.apps", stored)["Selector"] == "a,app=web,b in (x,y)"


# -- replication controllers --------------------------------------------------------------------


def test_a_replication_controller_takes_its_selector_from_the_template():
    stored = made("replicationcontrollers", {"metadata": {"name": "x"}, "spec": {"template": template()}})
    assert stored["spec"]["selector"] == stored["metadata"]["labels"] == {"app": "web"}
    assert stored["spec"]["replicas"] == 1


# -- jobs ---------------------------------------------------------------------------------------


def job(**spec):
    inside = {"containers": [container()], "restartPolicy": "Never"}
    return {"metadata": {"name": "j", "uid": "u-1"}, "spec": {"template": {"spec": inside}, **spec}}


def test_a_job_finds_its_pods_by_its_own_uid():
    stored = made("jobs.batch", job())
    uid = {"batch.kubernetes.io/controller-uid": "u-1"}
    assert stored["spec"]["selector"] == {"matchLabels": uid}
    labels = stored["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        **uid, "batch.kubernetes.io/job-name": "j", "controller-uid": "u-1", "job-name": "j",
    }  # fmt: skip
    assert wrong("jobs.batch", job()) == []


@pytest.mark.parametrize(
    ("said", "completions", "parallelism"),
    [({}, 1, 1), ({"parallelism": 3}, None, 3), ({"completions": 4}, 4, 1)],
)
def test_how_much_a_job_does_when_it_does_not_say(said, completions, parallelism):
    spec = made("jobs.batch", job(**said))["spec"]
    assert (spec.get("completions"), spec["parallelism"]) == (completions, parallelism)


@pytest.mark.parametrize(
    ("spec", "blamed"),
    [
        ({"completions": -1}, ["spec.completions"]),
        ({"completionMode": "Indexed", "parallelism": 2}, ["spec.completions"]),
        ({"completionMode": "Sorted"}, ["spec.completionMode"]),
        ({"backoffLimitPerIndex": 1}, ["spec.backoffLimitPerIndex"]),
        ({"manualSelector": True}, ["spec.selector"]),
        ({"managedBy": "somebody"}, ["spec.managedBy"]),
        ({"managedBy": f"example.com/{'x' * 60}"}, ["spec.managedBy"]),
        ({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}, ["spec.podFailurePolicy.rules[0]"]),
        ({"template": {"spec": {"containers": [container()]}}}, ["spec.template.spec.restartPolicy"]),
    ],
)
def test_a_job_that_makes_no_sense(spec, blamed):
    assert fields_of(wrong("jobs.batch", job(**spec))) == blamed


def test_what_a_job_is_stays_and_how_fast_it_goes_may_change():
    old = made("jobs.batch", job(completions=3))
    faster = copy.deepcopy(old)
    faster["spec"]["parallelism"] = 9
    assert changed("jobs.batch", old, faster) == []
    longer = copy.deepcopy(old)
    longer["spec"]["completions"] = 9
    assert fields_of(changed("jobs.batch", old, longer)) == ["spec.completions"]
    given_away = copy.deepcopy(old)
    given_away["spec"]["managedBy"] = "example.com/queue"
    assert fields_of(changed("jobs.batch", old, given_away)) == ["spec.managedBy"]
    other = copy.deepcopy(old)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"
    assert fields_of(changed("jobs.batch", old, other)) == ["spec.template"]


def test_a_job_that_never_started_may_be_sent_elsewhere():
    old = made("jobs.batch", job(suspend=True))
    moved = copy.deepcopy(old)
    moved["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "b"}
    assert changed("jobs.batch", old, moved) == []
    old["status"] = {"startTime": "2026-11-15T07:00:00Z"}
    assert fields_of(changed("jobs.batch", old, moved)) == ["spec.template"]


def test_an_indexed_job_may_grow_with_its_parallelism():
    old = made("jobs.batch", job(completionMode="Indexed", completions=2, parallelism=2))
    new = copy.deepcopy(old)
    new["spec"].update(completions=4, parallelism=4)
    assert changed("jobs.batch", old, new) == []


@pytest.mark.parametrize(
    ("spec", "status", "state", "completions", "duration"),
    [
        ({}, {}, "Running", "0/1", ""),
        ({"parallelism": 4}, {"succeeded": 2}, "Running", "2/1 of 4", ""),
        ({"completions": 5}, {"startTime": "2026-11-15T07:50:00Z"}, "Running", "0/5", "10m"),
        (
            {},
            {
                "conditions": [{"type": "Complete", "status": "True"}],
                "startTime": "2026-11-15T07:00:00Z",
                "completionTime": "2026-11-15T07:00:42Z",
                "succeeded": 1,
            },
            "Complete",
            "1/1",
            "42s",
        ),
        (
            {"suspend": True},
            {"conditions": [{"type": "Suspended", "status": "True"}]},
            "Suspended",
            "0/1",
            "",
        ),
    ],
)
def test_job_columns(spec, status, state, completions, duration):
    cells = row("jobs.batch", {**made("jobs.batch", job(**spec)), "status": status})
    assert (cells["Status"], cells["Completions"], cells["Duration"]) == (state, completions, duration)


# -- cron jobs ----------------------------------------------------------------------------------


def cron_job(**spec):
    inside = {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}
    return {
        "metadata": {"name": "c"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": inside}, **spec},
    }


def test_a_cron_job():
    stored = made("cronjobs.batch", cron_job())
    assert {
        name: stored["spec"][name] for name in ("concurrencyPolicy", "suspend", "failedJobsHistoryLimit")
    } == {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "failedJobsHistoryLimit": 1,
    }
    assert wrong("cronjobs.batch", cron_job()) == []
    assert wrong("cronjobs.batch", cron_job(schedule="@daily")) == []
    cells = row("cronjobs.batch", {**stored, "status": {"lastScheduleTime": "2026-11-15T07:58:00Z"}})
    assert (cells["Schedule"], cells["Suspend"], cells["Last Schedule"]) == ("*/5 * * * *", "False", "2m")


@pytest.mark.parametrize("schedule", ["", "* * *", "@often", "TZ=UTC * * * * *", "a b c d e f"])
def test_a_schedule_has_five_parts(schedule):
    assert fields_of(wrong("cronjobs.batch", cron_job(schedule=schedule))) == ["spec.schedule"]
