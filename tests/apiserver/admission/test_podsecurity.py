"""How much the pods of a namespace may do to their node."""

from typing import Any

import pytest

from allot.api import errors
from allot.apiserver.admission.podsecurity import KINDS
from allot.apiserver.admission.podsecurity.checks import APPARMOR, CHECKS, Pod, complaints
from allot.client import Patch

GOOD = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}


def spec(context: dict[str, Any] | None = None, container: dict[str, Any] | None = None, **more: Any):
    main = {"name": "main", "image": "busybox", "securityContext": {**GOOD, **(context or {})}}
    return {"containers": [{**main, **(container or {})}], **more}


def wrong(level: str, asked: dict[str, Any], minor: int = 37, **annotations: str) -> list[str]:
    return complaints(level, Pod(asked, annotations, minor))


def test_a_pod_of_the_strictest_kind_is_fine():
    assert wrong("restricted", spec()) == []


PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
PROBE = {"livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}}
BASELINE = {
    "host namespaces (hostNetwork=true, hostPID=true)": spec(hostNetwork=True, hostPID=True),
    'privileged (container "main" must not set securityContext.privileged=true)': spec({"privileged": True}),
    'non-default capabilities (container "main" must not include "NET_ADMIN" in'
    " securityContext.capabilities.add)": spec({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}}),
    'hostPath volumes (volume "host")': spec(volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
    'hostPort (container "main" uses hostPort 8080)': spec(container=PORT),
    'probe or lifecycle host (container "main" must not set a host in probes or lifecycle handlers)': spec(
        container=PROBE
    ),
    "forbidden AppArmor profile (pod must not set AppArmor profile type to Unconfined)": spec(
        securityContext={"appArmorProfile": {"type": "Unconfined"}}
    ),
    'seLinuxOptions (container "main" set forbidden securityContext.seLinuxOptions: type "spc_t")': spec(
        {"seLinuxOptions": {"type": "spc_t"}}
    ),
    "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be set)": spec(
        securityContext={"seLinuxOptions": {"user": "root"}}
    ),
    'procMount (container "main" must not set securityContext.procMount)': spec({"procMount": "Unmasked"}),
    'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")': spec(
        securityContext={"seccompProfile": {"type": "Unconfined"}}
    ),
    "forbidden sysctls (kernel.msgmax)": spec(
        securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_syncookies"}]}
    ),
    "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)": spec(
        securityContext={"windowsOptions": {"hostProcess": True}}
    ),
}
RESTRICTED = {
    'restricted volume types (volume "share" uses restricted volume type "nfs")': spec(
        volumes=[{"name": "share", "nfs": {"server": "s", "path": "/"}}, {"name": "ok", "emptyDir": {}}]
    ),
    'allowPrivilegeEscalation != false (container "main" must set'
    " securityContext.allowPrivilegeEscalation=false)": spec({"allowPrivilegeEscalation": None}),
    'runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true)': spec(
        {"runAsNonRoot": None}
    ),
    'runAsNonRoot != true (container "main" must not set securityContext.runAsNonRoot=false)': spec(
        {"runAsNonRoot": False}, securityContext={"runAsNonRoot": True}
    ),
    "runAsUser=0 (pod must not set runAsUser=0)": spec(securityContext={"runAsUser": 0}),
    'seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to'
    ' "RuntimeDefault" or "Localhost")': spec({"seccompProfile": None}),
    'unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"])': spec(
        {"capabilities": {}}
    ),
    'unrestricted capabilities (container "main" must not include "CHOWN" in'
    " securityContext.capabilities.add)": spec({"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
}


@pytest.mark.parametrize("text", BASELINE)
def test_what_the_baseline_forbids(text):
    assert text in wrong("baseline", BASELINE[text])
    assert text in wrong("restricted", BASELINE[text])


@pytest.mark.parametrize("text", RESTRICTED)
def test_what_only_the_strictest_level_forbids(text):
    assert wrong("restricted", RESTRICTED[text]) == [text]
    assert wrong("baseline", RESTRICTED[text]) == []


def test_every_check_has_a_pod_that_it_refuses():
    told = [*BASELINE, *RESTRICTED]
    assert all(any(text.startswith(f"{check.what} (") for text in told) for check in CHECKS)


def test_init_and_ephemeral_containers_are_looked_at_too():
    for name in ("initContainers", "ephemeralContainers"):
        asked = spec(**{name: [{"name": "other", "securityContext": {**GOOD, "privileged": True}}]})
        assert wrong("baseline", asked) == [
            'privileged (container "other" must not set securityContext.privileged=true)'
        ]


def test_an_older_version_asks_what_it_asked():
    assert wrong("baseline", spec(container=PROBE), minor=33) == []
    reserved = spec(securityContext={"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports"}]})
    assert wrong("baseline", reserved, minor=26) != []
    assert wrong("baseline", reserved, minor=27) == []


def test_a_windows_pod_needs_not_what_only_linux_has():
    bare = {"allowPrivilegeEscalation": None, "seccompProfile": None, "capabilities": None}
    assert wrong("restricted", spec(bare, os={"name": "windows"})) == []


# -- through the server -----------------------------------------------------------------------------


async def labelled(client, **levels: str):
    labels = {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in levels.items()}
    namespaces = client.resource("", "v1", "namespaces", namespaced=False)
    await namespaces.create({"metadata": {"name": "team", "labels": labels}})


async def enforced(client, level: str, version: str = "latest"):
    """From now on."""
    prefix = "pod-security.kubernetes.io/enforce"
    labels = {"metadata": {"labels": {prefix: level, f"{prefix}-version": version}}}
    await client.resource("", "v1", "namespaces", namespaced=False).patch("team", labels)


def pod(name: str, wanted: dict[str, Any]):
    return {"metadata": {"name": name, "namespace": "team"}, "spec": wanted}


def workload(wanted: dict[str, Any], kind: str):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {**wanted, "restartPolicy": "Always"}}
    unending = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    ending = {"template": {"spec": {**wanted, "restartPolicy": "Never"}}}
    made = {
        "podtemplates": {"template": template},
        "replicationcontrollers": {"spec": {"selector": {"app": "a"}, "template": template}},
        "statefulsets": {"spec": {**unending, "serviceName": "s"}},
        "jobs": {"spec": ending},
        "cronjobs": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": ending}}},
    }
    return {"metadata": {"name": "d", "namespace": "team"}, **made.get(kind, {"spec": unending})}


def test_a_level_that_is_enforced_refuses_pods_and_not_what_makes_them(allot_server):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        await labelled(client, enforce="baseline", warn="restricted")
        pods = client.resource("", "v1", "pods")
        text = r'violates PodSecurity "baseline:latest": host namespaces \(hostNetwork=true\)'
        with pytest.raises(errors.Forbidden, match=text):
            await pods.create(pod("bad", spec(hostNetwork=True)))
        said.clear()
        await pods.create(pod("good", spec()))
        assert said == []
        deployments = client.resource("apps", "v1", "deployments")
        await deployments.create(workload(spec(hostNetwork=True), "deployments"))
        assert said == ['would violate PodSecurity "restricted:latest": host namespaces (hostNetwork=true)']

    allot_server.run(story())


@pytest.mark.parametrize(("group", "kind"), [one for one in KINDS if one != ("", "pods")])
def test_a_client_is_warned_about_the_pods_of_every_kind_that_makes_some(allot_server, group, kind):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        await labelled(client, warn="baseline")
        makers = client.resource(group, "v1", kind)
        text = 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
        await makers.create(workload(spec(hostPID=True), kind))
        assert text in said
        said.clear()
        await makers.patch("d", {"metadata": {"labels": {"a": "b"}}}, "team")
        assert text not in said  # its pods are as they were

    allot_server.run(story())


def test_whoever_raises_the_level_hears_of_pods_that_are_above_it(allot_server):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        await labelled(client)
        await client.resource("", "v1", "pods").create(pod("bad", spec(hostPID=True)))
        said.clear()
        await enforced(client, "baseline")
        assert said == [
            'existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:latest"',
            "bad: host namespaces (hostPID=true)",
        ]

    allot_server.run(story())


def test_a_newer_version_of_the_same_level_may_forbid_more(allot_server):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        await labelled(client, enforce="baseline", enforce_version="v1.33")
        await client.resource("", "v1", "pods").create(pod("probed", spec(container=PROBE)))
        said.clear()
        await enforced(client, "baseline", "v1.34")
        assert said[0].endswith('violate the new PodSecurity enforce level "baseline:v1.34"')
        assert [one.partition(":")[0] for one in said[1:]] == ["probed"]

    allot_server.run(story())


def test_of_pods_above_a_level_that_was_raised_only_what_is_judged_cannot_change(allot_server):
    """What runs is left alone: others go on to note things on it, and to let it be scheduled."""
    client = allot_server.client()

    async def story():
        await labelled(client)
        pods = client.resource("", "v1", "pods")
        await pods.create(pod("bad", spec(hostPID=True, schedulingGates=[{"name": "g"}])))
        await enforced(client, "baseline")
        await pods.patch("bad", {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}, "team")
        scheduling = [
            {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "a", "operator": "Exists"}},
            {"op": "remove", "path": "/spec/schedulingGates"},
        ]
        await pods.patch("bad", scheduling, "team", type=Patch.JSON)
        image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}]
        profile = {"metadata": {"annotations": {f"{APPARMOR}main": "unconfined"}}}
        with pytest.raises(errors.Forbidden, match="violates PodSecurity"):
            await pods.patch("bad", image, "team", type=Patch.JSON)
        with pytest.raises(errors.Forbidden, match="violates PodSecurity"):
            await pods.patch("bad", profile, "team")

    allot_server.run(story())


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ({"enforce": "strict"}, "must be one of privileged, baseline, restricted"),
        ({"warn": "baseline", "warn_version": "1.30"}, 'must be "latest" or "v1.x"'),
    ],
)
def test_a_level_that_does_not_exist_is_refused(allot_server, levels, text):
    with pytest.raises(errors.Invalid, match=text):
        allot_server.run(labelled(allot_server.client(), **levels))
