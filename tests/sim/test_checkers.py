"""Checkers see what they are for: each one is shown a history that breaks its promise."""

import json

import pytest

from allot.api import Object
from allot.sim.checkers import judge
from allot.sim.recording import Seen

FINALIZER = "resource.kubernetes.io/delete-protection"


def claim(
    revision, name="c", *, device="gpu-0", reserved=(), owner="", finalizer=True, allocated=True, **more
):
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **more}
    if finalizer:
        metadata["finalizers"] = [FINALIZER]
    if owner:
        metadata["ownerReferences"] = [
            {"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    status = {}
    if allocated:
        result = {"request": "r", "driver": "d", "pool": "p", "device": device}
        status["allocation"] = {"devices": {"results": [result]}}
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in reserved]
    return seen(revision, "resourceclaims", {"metadata": metadata, "status": status})


def pod(revision, name="p", *, phase="Running", node="n", type="MODIFIED", claims=()):
    status = {
        "phase": phase,
        "resourceClaimStatuses": [{"name": "own", "resourceClaimName": c} for c in claims],
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return seen(revision, "pods", {"metadata": metadata, "spec": {"nodeName": node}, "status": status}, type)


def seen(revision, resource, fields, type="MODIFIED"):
    return Seen(revision, resource, type, Object(json.dumps(fields).encode()))


def names(history):
    return sorted({text.split(": ")[1] for text in judge(history)})


def test_a_history_without_fault_is_good():
    assert judge([pod(1), claim(2, reserved=["p"])]) == []


@pytest.mark.parametrize(
    "promise, history",
    [
        ("D1", [pod(1), pod(1, "q"), claim(2, "a", reserved=["p"]), claim(3, "b", reserved=["q"])]),
        ("C1", [claim(1, finalizer=False)]),
        ("C1", [pod(1, phase="Succeeded"), claim(2, reserved=["p"]), claim(3)]),
        ("C2", [pod(1), claim(2, allocated=False, reserved=["p"])]),
        ("C3", [claim(1, reserved=["gone"])]),
        ("C3", [pod(1, phase="Failed"), claim(2, owner="p", allocated=False)]),
        ("C4", [pod(1), pod(1, "q"), claim(2, owner="p", reserved=["q"])]),
        ("C4", [pod(1), pod(2, "q", claims=["c"]), claim(3, owner="p", reserved=["p"])]),
        ("C6", [pod(1), claim(2, reserved=["p"]), claim(3, allocated=False)]),
    ],
)
def test_a_broken_promise_is_named(promise, history):
    assert promise in names(history)
