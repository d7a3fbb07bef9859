"""What schemas, patches and the record of owners cost on the path of a write.

    python bench/machinery.py        # prints one JSON object, and writes bench/results/machinery.json

Microseconds of processor time for one object of about 3 KB (a pod of two containers, with its token
volume and defaults, as a server sees it): the best of several rounds, for neighbours
on the machine can only add.
"""

import copy
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from allot.api import schema
from allot.apiserver.apply import Applied, Author, apply, track_update
from allot.apiserver.patch import json_patch, merge_patch, strategic_merge

RESULTS = Path(__file__).parent / "results" / "machinery.json"

POD = schema.get("io.k8s.api.core.v1.Pod")
NOW = "2026-01-01T00:00:00Z"

ROUNDS = 9
ROUND_S = 0.05


def container(number: int) -> dict[str, Any]:
    return {
        "name": f"c{number}",
        "image": "images.example.com/team/app:1.2.3",
        "command": ["/bin/app", "--verbose"],
        "args": ["--listen=:8080"],
        "ports": [{"name": "http", "containerPort": 8080 + number, "protocol": "TCP"}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "C", "value": "x"},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
            "claims": [{"name": "gpu"}],
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def toleration(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def pod() -> dict[str, Any]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "uid": "6e8f1a52-9f7e-4a55-9ac6-0f7f5f0b3f10",
            "creationTimestamp": NOW,
            "labels": {"app": "web", "tier": "front", "pod-template-hash": "abc123"},
            "annotations": {"example.com/a": "b"},
        },
        "spec": {
            "volumes": [
                {"name": "data", "emptyDir": {}},
                {"name": "token", "projected": {"sources": sources, "defaultMode": 420}},
            ],
            "containers": [container(0), container(1)],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                toleration("node.kubernetes.io/not-ready"),
                toleration("node.kubernetes.io/unreachable"),
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def micros(call: Callable[[], object]) -> float:
    """Best over rounds of the mean time of one call."""
    call()
    started = time.process_time()
    call()
    repeat = max(10, int(ROUND_S / max(time.process_time() - started, 1e-6)))
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(repeat):
            call()
        rounds.append((time.process_time() - started) / repeat * 1e6)
    return round(min(rounds), 1)


def reading(fields: dict[str, Any]) -> dict[str, float]:
    body = msgspec.json.encode(fields)
    odd = {**fields, "spec": {**fields["spec"], "colour": "red"}}

    def stamped() -> object:
        fields["metadata"]["creationTimestamp"] = None
        return schema.check(fields, POD)

    return {
        "decode": micros(lambda: schema.decode(body)),
        "check": micros(lambda: schema.check(fields, POD)),
        "apply_defaults": micros(lambda: schema.apply_defaults(fields, POD)),
        "check_with_a_null_stamp": micros(stamped),
        "check_with_an_unknown_field": micros(lambda: schema.check(odd, POD)),
    }


def owning(fields: dict[str, Any]) -> dict[str, float]:
    creator, kubelet = Author("kubectl", "v1"), Author("kubelet", "v1", "status")
    live = copy.deepcopy(fields)
    live["metadata"]["managedFields"] = track_update(None, fields, creator, NOW, POD)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": NOW}
    started = {**live, "status": {**live["status"], "phase": "Running", "conditions": [ready]}}
    moved = {**live, "metadata": {**live["metadata"], "resourceVersion": "7"}}
    config = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c0", "image": "new"}]},
    }
    applied = apply(live, config, Author("ann", "v1"), NOW, POD, force=True)
    assert isinstance(applied, Applied)
    return {
        "track_create": micros(lambda: track_update(None, fields, creator, NOW, POD)),
        "track_status_update": micros(lambda: track_update(live, started, kubelet, NOW, POD)),
        "track_no_change": micros(lambda: track_update(live, moved, kubelet, NOW, POD)),
        "apply": micros(lambda: apply(live, config, Author("ann", "v1"), NOW, POD, force=True)),
        "apply_again": micros(lambda: apply(applied.fields, config, Author("ann", "v1"), NOW, POD)),
    }


def patching(fields: dict[str, Any]) -> dict[str, float]:
    operations = [
        {"op": "test", "path": "/metadata/name", "value": "web-1"},
        {"op": "add", "path": "/metadata/labels/new", "value": "x"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "other"},
        {"op": "remove", "path": "/spec/tolerations/1"},
        {"op": "add", "path": "/spec/containers/1/env/-", "value": {"name": "D", "value": "y"}},
    ]
    merge = {"metadata": {"labels": {"new": "x", "tier": None}}, "spec": {"priority": 1}}
    change = {"name": "c0", "image": "other", "env": [{"name": "D", "value": "y"}]}
    strategic = {"metadata": {"labels": {"new": "x"}}, "spec": {"containers": [change]}}
    return {
        "json_patch_5_operations": micros(lambda: json_patch(fields, operations)),
        "merge_patch": micros(lambda: merge_patch(fields, merge)),
        "strategic_merge": micros(lambda: strategic_merge(fields, strategic, POD)),
    }


def loading_ms() -> float:
    """All shapes with all their fields, in a fresh process."""
    script = (
        "import time; from allot.api import schema; t = time.process_time();"
        "[schema.get(name).fields for name in schema.names()]; print((time.process_time() - t) * 1e3)"
    )
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, check=True) for _ in range(5)]
    return round(min(float(run.stdout) for run in runs), 1)


def main() -> None:
    fields = pod()
    figures = {
        "bytes": len(msgspec.json.encode(fields)),
        "us": {**reading(fields), **owning(fields), **patching(fields)},
        "load_all_schemas_ms": loading_ms(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
