"""Pods as people know them, with the real kubectl, on a node whose containers are processes."""

import json
import time
from collections.abc import Iterator

import pytest

from allot.testing import cluster
from components import binary
from e2e.process import Kubectl

SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {greeting: hello}
"""
WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeSelector: {kubernetes.io/hostname: NODE}
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: settings, configMap: {name: settings}}
  containers:
  - name: main
    image: none
    command: [sh, -c, 'cat /settings/greeting; echo; sleep 1; touch /tmp/$MY_UID; sleep 300']
    env:
    - {name: MY_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    volumeMounts:
    - {name: settings, mountPath: /settings}
    readinessProbe:
      exec: {command: [sh, -c, 'test -e /tmp/$MY_UID']}
      periodSeconds: 1
      timeoutSeconds: 20
"""


@pytest.fixture(scope="module")
def running() -> Iterator[Kubectl]:
    """kubectl, and a pod that is ready: each test stands alone, in whatever order they come."""
    with cluster("plain", nodes=1, agents=1) as here:
        kubectl = Kubectl(binary("kubectl"), here.kubeconfig)
        kubectl("apply", "-f", "-", stdin=SETTINGS)
        kubectl("apply", "-f", "-", stdin=WEB.replace("NODE", here.agents[0].name))
        kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=60s")
        yield kubectl
        kubectl("delete", "pod", "web", "--timeout=60s")


def test_a_pod_with_settings_and_a_probe_becomes_ready_and_its_story_is_told(running):
    kubectl = running
    assert kubectl("logs", "web", "-c", "main") == "hello\n"
    assert kubectl("get", "pod", "web", "--no-headers").split()[1:3] == ["1/1", "Running"]
    told = kubectl("describe", "pod", "web")
    for words in ("Scheduled", "Container created", "Container started", "Readiness probe failed"):
        assert words in told, told


def test_kubectl_debug_adds_a_container_that_is_seen(running):
    kubectl = running
    script = "echo looking around"
    kubectl("debug", "web", "--image=none", "--container=dbg", "--", "sh", "-c", script)
    end = time.monotonic() + 60
    while True:
        status = json.loads(kubectl("get", "pod", "web", "-o", "json"))["status"]
        (one,) = status.get("ephemeralContainerStatuses") or [{}]
        if "terminated" in one.get("state", {}):
            break
        assert time.monotonic() < end, status
        time.sleep(0.2)
    assert kubectl("logs", "web", "-c", "dbg") == "looking around\n"
