"""How much the pods of a namespace may do to their node."""

from typing import Any

import pytest

from allot.api import errors
from allot.apiserver.admission.podsecurity.checks import CHECKS, Pod, complaints

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


def pod(name: str, wanted: dict[str, Any]):
    return {"metadata": {"name": name, "namespace": "team"}, "spec": wanted}


def deployment(wanted: dict[str, Any]):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": wanted}
    metadata = {"name": "d", "namespace": "team"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template}}


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
        await client.resource("apps", "v1", "deployments").create(deployment(spec(hostNetwork=True)))
        assert said == ['would violate PodSecurity "restricted:latest": host namespaces (hostNetwork=true)']

    allot_server.run(story())


def test_whoever_raises_the_level_hears_of_pods_that_are_above_it(allot_server):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        await labelled(client)
        await client.resource("", "v1", "pods").create(pod("bad", spec(hostPID=True)))
        said.clear()
        patch = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
        await client.resource("", "v1", "namespaces", namespaced=False).patch("team", patch)
        assert said == [
            'existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:latest"',
            "bad: host namespaces (hostPID=true)",
        ]
        labels = {"metadata": {"labels": {"a": "b"}}}
        await client.resource("", "v1", "pods").patch("bad", labels, "team")  # what runs is left alone

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
