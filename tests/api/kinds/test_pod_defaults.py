"""What a pod means when it does not say."""

import pytest

from .objects import container, made, pod, workload


def test_a_small_pod_is_filled_in():
    assert made("pods", pod()) == {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "example/app:1",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry:5000/app", "Always"),
        ("registry:5000/app:1", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
        ("app:latest@sha256:abc", "IfNotPresent"),
    ],
)
def test_what_may_move_is_pulled_every_time(image, policy):
    spec = made("pods", pod(containers=[container(image=image)]))["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == policy


def test_a_limit_is_also_the_request_unless_one_is_said():
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = made("pods", pod(containers=[container(resources=resources)]))["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_a_template_is_not_a_pod():
    """Requests follow limits when the pod is made, not before: its template stays as it was written."""
    limited = {"limits": {"cpu": "2"}}
    spec = {"containers": [container(resources=limited)]}
    stored = made(
        "deployments.apps", workload(template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    )
    inside = stored["spec"]["template"]["spec"]
    assert inside["containers"][0]["resources"] == limited
    assert "enableServiceLinks" not in inside
    assert inside["restartPolicy"] == "Always"


def test_probes_ports_and_environment():
    main = container(
        ports=[{"containerPort": 80}],
        env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        livenessProbe={"httpGet": {"port": 80}},
        readinessProbe={"grpc": {"port": 80}, "periodSeconds": 3},
    )
    stored = made("pods", pod(containers=[main]))["spec"]["containers"][0]
    assert stored["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert stored["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert stored["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert stored["readinessProbe"]["grpc"]["service"] == ""
    assert stored["readinessProbe"]["periodSeconds"] == 3


def test_volumes():
    volumes = [
        {"name": "none"},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    none, secret, host, projected = made("pods", pod(volumes=volumes))["spec"]["volumes"]
    assert none == {"name": "none", "emptyDir": {}}
    assert secret["secret"]["defaultMode"] == 0o644
    assert host["hostPath"]["type"] == ""
    assert projected["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_on_the_hosts_network_a_port_is_the_hosts():
    main = container(ports=[{"containerPort": 80}])
    stored = made("pods", pod(hostNetwork=True, containers=[main]))
    assert stored["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_both_names_of_the_service_account_say_the_same():
    assert made("pods", pod(serviceAccountName="robot"))["spec"]["serviceAccount"] == "robot"
    assert made("pods", pod(serviceAccount="robot"))["spec"]["serviceAccountName"] == "robot"


def test_a_gated_pod_says_why_it_waits():
    status = made("pods", pod(schedulingGates=[{"name": "example.com/wait"}]))["status"]
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [("PodScheduled", "SchedulingGated")]


def test_label_keys_become_requirements():
    """Whoever reads the pod later need not know of matchLabelKeys."""
    term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "matchLabelKeys": ["rev", "absent"],
        "mismatchLabelKeys": ["app"],
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    stored = made("pods", pod(labels={"app": "web", "rev": "7"}, affinity=affinity))
    needed = stored["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert needed["labelSelector"]["matchExpressions"] == [
        {"key": "rev", "operator": "In", "values": ["7"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
    ]


# -- quality of service -------------------------------------------------------------------------


def quality(*resources, **spec):
    containers = [container(f"c{n}", resources=r) for n, r in enumerate(resources)]
    return made("pods", pod(containers=containers, **spec))["status"]["qosClass"]


FULL = {"limits": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}], "BestEffort"),
        ([FULL], "Guaranteed"),
        ([FULL, FULL], "Guaranteed"),
        ([FULL, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "500m"}, **FULL}], "Burstable"),
        ([{"requests": {"cpu": "1000m", "memory": "1024Mi"}, **FULL}], "Guaranteed"),
    ],
)
def test_quality_of_service_follows_requests_and_limits(resources, expected):
    assert quality(*resources) == expected


def test_resources_of_the_pod_decide_alone():
    assert quality({}, resources=FULL) == "Guaranteed"
    assert quality({}, resources={"requests": {"cpu": "1"}}) == "Burstable"
