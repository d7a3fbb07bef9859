"""Which pods make sense. Every case spoils a good pod in one place and names the field to be blamed."""

import pytest

from .objects import CONTEXT, changed, container, fields_of, kind_of, made, pod, shown, workload, wrong

C = "spec.containers[0]"


def one(**more):
    return pod(containers=[container(**more)])


def test_a_pod_that_makes_sense_is_accepted():
    rich = pod(
        containers=[
            container(
                ports=[{"containerPort": 80, "name": "http"}],
                env=[{"name": "A", "value": "b"}, {"name": "odd name!", "value": ""}],
                envFrom=[{"configMapRef": {"name": "cm"}}],
                volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "a/b"}],
                resources={
                    "requests": {"cpu": "1", "example.com/gpu": "2"},
                    "limits": {"example.com/gpu": 2},
                    "claims": [{"name": "gpu"}],
                },
                livenessProbe={"tcpSocket": {"port": "http"}},
                lifecycle={"preStop": {"sleep": {"seconds": 1}}},
            )
        ],
        initContainers=[
            container("setup"),
            container("sidecar", restartPolicy="Always", readinessProbe={"exec": {"command": ["true"]}}),
        ],
        volumes=[{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
        tolerations=[
            {"operator": "Exists"},
            {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3},
        ],
        nodeSelector={"zone": "a"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    )
    assert wrong("pods", rich) == []


CASES = [
    (pod(containers=[]), ["spec.containers"]),
    (one(name=""), [f"{C}.name"]),
    (one(name="Main"), [f"{C}.name"]),
    (one(image=""), [f"{C}.image"]),
    (one(image=" app"), [f"{C}.image"]),
    (one(imagePullPolicy="Sometimes"), [f"{C}.imagePullPolicy"]),
    (one(terminationMessagePolicy="Mail"), [f"{C}.terminationMessagePolicy"]),
    (pod(containers=[container(), container()]), ["spec.containers[1].name"]),
    (pod(initContainers=[container()]), ["spec.initContainers[0].name"]),
    (
        pod(initContainers=[container("i", lifecycle={"preStop": {"exec": {"command": ["x"]}}})]),
        ["spec.initContainers[0].lifecycle"],
    ),
    (pod(ephemeralContainers=[container("debug")]), ["spec.ephemeralContainers"]),
    # ports
    (one(ports=[{}]), [f"{C}.ports[0].containerPort"]),
    (one(ports=[{"containerPort": 70000}]), [f"{C}.ports[0].containerPort"]),
    (one(ports=[{"containerPort": 1, "name": "UPPER"}]), [f"{C}.ports[0].name"] * 2),
    (
        one(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        [f"{C}.ports[1].name"],
    ),
    (one(ports=[{"containerPort": 1, "protocol": "ICMP"}]), [f"{C}.ports[0].protocol"]),
    (
        one(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
        [f"{C}.ports[1].hostPort"],
    ),
    (
        pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 1, "hostPort": 2}])]),
        [f"{C}.ports[0].hostPort"],
    ),
    # environment
    (one(env=[{"name": "", "value": "x"}]), [f"{C}.env[0].name"]),
    (one(env=[{"name": "a=b"}]), [f"{C}.env[0].name"]),
    (one(env=[{"name": "a", "valueFrom": {}}]), [f"{C}.env[0].valueFrom"]),
    (
        one(env=[{"name": "a", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
        [f"{C}.env[0].valueFrom"],
    ),
    (
        one(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.everything"}}}]),
        [f"{C}.env[0].valueFrom.fieldRef.fieldPath"],
    ),
    (one(envFrom=[{}]), [f"{C}.envFrom[0]"]),
    # mounts and volumes
    (one(volumeMounts=[{"name": "gone", "mountPath": "/x"}]), [f"{C}.volumeMounts[0].name"]),
    (
        pod(
            volumes=[{"name": "v"}],
            containers=[
                container(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}])
            ],
        ),
        [f"{C}.volumeMounts[1].mountPath"],
    ),
    (
        pod(
            volumes=[{"name": "v"}],
            containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "../.."}])],
        ),
        [f"{C}.volumeMounts[0].subPath"],
    ),
    (pod(volumes=[{"name": "v"}, {"name": "v"}]), ["spec.volumes[1].name"]),
    (pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]), ["spec.volumes[0].hostPath"]),
    (pod(volumes=[{"name": "v", "hostPath": {"path": "/a/../b"}}]), ["spec.volumes[0].hostPath.path"]),
    (
        pod(volumes=[{"name": "v", "secret": {"secretName": "s", "defaultMode": 0o1000}}]),
        ["spec.volumes[0].secret.defaultMode"],
    ),
    (
        pod(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
        ["spec.volumes[0].persistentVolumeClaim.claimName"],
    ),
    # resources
    (one(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), [f"{C}.resources.requests"]),
    (
        one(resources={"limits": {"cpu": "-1"}}),
        [f"{C}.resources.limits[cpu]", f"{C}.resources.requests[cpu]"],
    ),
    (
        one(resources={"limits": {"Fast": "1"}}),
        [f"{C}.resources.limits[Fast]", f"{C}.resources.requests[Fast]"],
    ),
    (
        one(resources={"limits": {"example.com/gpu": "1.5"}}),
        [f"{C}.resources.limits[example.com/gpu]", f"{C}.resources.requests[example.com/gpu]"],
    ),
    (one(resources={"requests": {"example.com/gpu": "1"}}), [f"{C}.resources.limits"]),
    (
        one(resources={"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}),
        [f"{C}.resources.requests"],
    ),
    (one(resources={"limits": {"hugepages-2Mi": "4Mi"}}), [f"{C}.resources"]),
    (one(resources={"claims": [{"name": "gone"}]}), [f"{C}.resources.claims[0]"]),
    (
        pod(resources={"limits": {"example.com/gpu": "1"}}),
        ["spec.resources.limits[example.com/gpu]", "spec.resources.requests[example.com/gpu]"],
    ),
    # probes
    (one(livenessProbe={}), [f"{C}.livenessProbe"]),
    (
        one(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}),
        [f"{C}.livenessProbe.successThreshold"],
    ),
    (one(readinessProbe={"httpGet": {"port": 0}}), [f"{C}.readinessProbe.httpGet.port"]),
    (one(startupProbe={"exec": {}}), [f"{C}.startupProbe.exec.command"]),
    # security
    (one(securityContext={"runAsUser": -1}), [f"{C}.securityContext.runAsUser"]),
    (one(securityContext={"privileged": True, "allowPrivilegeEscalation": False}), [f"{C}.securityContext"]),
    (
        one(securityContext={"seccompProfile": {"type": "Localhost"}}),
        [f"{C}.securityContext.seccompProfile.localhostProfile"],
    ),
    (
        pod(securityContext={"seccompProfile": {"type": "Unconfined", "localhostProfile": "x"}}),
        ["spec.securityContext.seccompProfile.localhostProfile"],
    ),
    (
        pod(securityContext={"appArmorProfile": {"type": "Odd"}}),
        ["spec.securityContext.appArmorProfile.type"],
    ),
    (pod(securityContext={"fsGroupChangePolicy": "Odd"}), ["spec.securityContext.fsGroupChangePolicy"]),
    (pod(securityContext={"supplementalGroups": [1, -1]}), ["spec.securityContext.supplementalGroups[1]"]),
    # the pod itself
    (pod(restartPolicy="Sometimes"), ["spec.restartPolicy"]),
    (pod(dnsPolicy="None"), ["spec.dnsConfig.nameservers"]),
    (pod(nodeName="Not A Node"), ["spec.nodeName"]),
    (pod(nodeSelector={"a b": "c"}), ["spec.nodeSelector"]),
    (pod(activeDeadlineSeconds=0), ["spec.activeDeadlineSeconds"]),
    (pod(terminationGracePeriodSeconds=-1), ["spec.terminationGracePeriodSeconds"]),
    (pod(hostAliases=[{"ip": "nowhere"}]), ["spec.hostAliases[0].ip"]),
    (pod(preemptionPolicy="Maybe"), ["spec.preemptionPolicy"]),
    (pod(schedulingGates=[{"name": "a"}, {"name": "a"}]), ["spec.schedulingGates[1]"]),
    (pod(nodeName="n", schedulingGates=[{"name": "a"}]), ["spec.nodeName"]),
    (pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]), ["spec.tolerations[0].operator"]),
    (pod(tolerations=[{"key": "a", "tolerationSeconds": 1}]), ["spec.tolerations[0].effect"]),
    (pod(tolerations=[{"key": "a", "effect": "Never"}]), ["spec.tolerations[0].effect"]),
    (
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "Never"}]),
        ["spec.topologySpreadConstraints[0].maxSkew", "spec.topologySpreadConstraints[0].whenUnsatisfiable"],
    ),
    (
        pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
        ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"],
    ),
    (
        pod(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}
                    ],
                }
            }
        ),
        ["spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"],
    ),
    (pod(resourceClaims=[{"name": "a"}]), ["spec.resourceClaims[0]"]),
]


@pytest.mark.parametrize(("spoiled", "blamed"), CASES)
def test_a_spoiled_pod_is_refused_for_the_right_field(spoiled, blamed):
    assert fields_of(wrong("pods", spoiled)) == blamed


def test_texts_are_the_ones_people_know():
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    assert wrong("pods", one(resources=resources)) == [
        (f"{C}.resources.requests", 'Invalid value: "2": must be less than or equal to cpu limit of 1')
    ]
    assert wrong("pods", pod(containers=[])) == [("spec.containers", "Required value")]
    assert wrong("pods", one(volumeMounts=[{"name": "gone", "mountPath": "/x"}])) == [
        (f"{C}.volumeMounts[0].name", 'Not found: "gone"')
    ]


def test_a_template_is_judged_like_a_pod_under_its_own_path():
    body = workload()
    body["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    assert fields_of(wrong("deployments.apps", body)) == ["spec.template.spec.containers[0].image"]


# -- what may change ----------------------------------------------------------------------------


def updated(change, **spec):
    old = made("pods", pod(**spec))
    new = made("pods", pod(**spec))
    change(new["spec"])
    return changed("pods", old, new)


def test_images_may_change():
    assert updated(lambda spec: spec["containers"][0].update(image="example/app:2")) == []
    blamed = fields_of(updated(lambda spec: spec["containers"][0].update(image=" ")))
    assert blamed == [f"{C}.image"]


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.update(nodeName="n2"),
        lambda spec: spec["containers"][0].update(command=["x"]),
        lambda spec: spec["containers"][0].update(resources={"limits": {"cpu": "1"}}),
        lambda spec: spec.update(nodeSelector={"a": "b"}),
        lambda spec: spec.update(resourceClaims=[{"name": "a", "resourceClaimName": "b"}]),
        lambda spec: spec.update(restartPolicy="Never"),
        lambda spec: spec.update(terminationGracePeriodSeconds=5),
    ],
)
def test_most_of_a_pod_may_not_change(change):
    assert fields_of(updated(change)) == ["spec"]


def test_containers_do_not_come_and_go():
    blamed = fields_of(updated(lambda spec: spec["containers"].append(container("more"))))
    assert blamed == ["spec.containers"]


def test_a_deadline_may_only_come_nearer():
    assert updated(lambda spec: spec.update(activeDeadlineSeconds=10)) == []
    assert updated(lambda spec: spec.update(activeDeadlineSeconds=5), activeDeadlineSeconds=10) == []
    later = updated(lambda spec: spec.update(activeDeadlineSeconds=20), activeDeadlineSeconds=10)
    gone = updated(lambda spec: spec.pop("activeDeadlineSeconds"), activeDeadlineSeconds=10)
    assert fields_of(later) == fields_of(gone) == ["spec.activeDeadlineSeconds"]


def test_tolerations_may_be_added_and_timed_but_not_taken():
    first = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    more = {"key": "b", "operator": "Exists"}
    assert updated(lambda spec: spec["tolerations"].append(more), tolerations=[first]) == []
    timed = {**first, "tolerationSeconds": 50}
    assert updated(lambda spec: spec.update(tolerations=[timed]), tolerations=[first]) == []
    assert fields_of(updated(lambda spec: spec.update(tolerations=[]), tolerations=[first])) == [
        "spec.tolerations"
    ]


GATES = [{"name": "a"}, {"name": "b"}]


def test_gates_are_only_taken_off():
    assert updated(lambda spec: spec["schedulingGates"].pop(), schedulingGates=GATES) == []
    added = updated(lambda spec: spec["schedulingGates"].append({"name": "c"}), schedulingGates=GATES)
    assert fields_of(added) == ["spec.schedulingGates[2]"]


def test_a_gated_pod_may_be_narrowed_and_not_widened():
    gated = {"schedulingGates": GATES, "nodeSelector": {"zone": "a"}}
    assert updated(lambda spec: spec["nodeSelector"].update(disk="ssd"), **gated) == []
    assert fields_of(updated(lambda spec: spec["nodeSelector"].clear(), **gated)) == ["spec.nodeSelector"]
    free = {"nodeSelector": {"zone": "a"}}
    assert fields_of(updated(lambda spec: spec["nodeSelector"].update(disk="ssd"), **free)) == ["spec"]


# -- status -------------------------------------------------------------------------------------


def status_written(status, old_status=None, **spec):
    kind = kind_of("pods")
    old = made("pods", pod(**spec))
    old["status"].update(old_status or {})
    new = {**old, "status": status}
    kind.rules.prepare_status(new, old, CONTEXT)
    return new["status"], shown(kind.rules.validate_status(new, old, CONTEXT))


def test_addresses_are_said_both_ways():
    status, problems = status_written({"phase": "Running", "podIP": "10.0.0.1"})
    assert (status["podIPs"], problems) == ([{"ip": "10.0.0.1"}], [])
    assert status["qosClass"] == "BestEffort"


def test_quality_of_service_is_decided_once():
    _, problems = status_written({"qosClass": "Guaranteed"})
    assert fields_of(problems) == ["status.qosClass"]


def test_a_container_that_ended_for_good_stays_ended():
    ended = {"name": "main", "state": {"terminated": {"exitCode": 1}}}
    running = {"name": "main", "state": {"running": {}}}
    for policy, allowed in (("Never", False), ("OnFailure", True), ("Always", True)):
        _, problems = status_written(
            {"containerStatuses": [running]}, {"containerStatuses": [ended]}, restartPolicy=policy
        )
        assert (problems == []) is allowed


def test_claim_names_survive_a_writer_that_does_not_know_them():
    named = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu-1"}]}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    status, problems = status_written({"phase": "Running"}, named, resourceClaims=claims)
    assert (status["resourceClaimStatuses"], problems) == (named["resourceClaimStatuses"], [])
