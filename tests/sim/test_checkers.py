"""Checkers see what they are for: each one is shown a history that breaks its promise.

A history is a list of events as the API would tell them. It begins in a world with a
namespace, a node, a device class and a template, and ends quietly.
"""

import json
import re

import pytest

from allot.api import Object
from allot.sim.checkers import ClaimRules, all_checkers, for_any_cluster, judge
from allot.sim.checkers.whole import Whole
from allot.sim.recording import EVENTS, FOLLOWED, PROVIDER, Seen
from sim.test_autoscaler_checkers import SHOWN as OF_AUTOSCALERS
from sim.test_classic_checkers import SHOWN as OF_CLASSIC
from sim.test_compute_checker import SHOWN as OF_COMPUTE
from sim.test_numeric import SHOWN as OF_NUMERIC

FINALIZER = "resource.kubernetes.io/delete-protection"
NUMERIC_FINALIZER = "numeric.dra.k8s.io/delete-protection"
SELECTOR = 'device.attributes["gpu.example.com"].model == "large"'
KEPT = {"labels": {"sim.allot.dev/kept": "true"}}
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
DRIVER = "gpu.example.com"
EXTENDED = "requests.example.com/gpu"


def seen(resource, name, *, type="MODIFIED", namespace="default", owners=(), meta=None, at=0.0, **fields):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **(meta or {})}
    if not namespace:
        del metadata["namespace"]
    if owners:
        metadata["ownerReferences"] = [dict(one) for one in owners]
    return Seen(0, resource, type, Object(json.dumps({"metadata": metadata, **fields}).encode()), at)


def gone(event):
    return event._replace(type="DELETED")


def new(event):
    return event._replace(type="ADDED")


def owner(name, **more):
    return {"kind": "K", "name": name, "uid": f"uid-{name}", **more}


def made_by(name):
    return owner(name, controller=True)


def namespace(name="default", **more):
    return seen("namespaces", name, namespace="", **more)


def leaving(event):
    fields = json.loads(event.object.raw)
    fields["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return event._replace(object=Object(json.dumps(fields).encode()))


def node(name="n", taints=(), ready=True):
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return seen("nodes", name, namespace="", spec={"taints": list(taints)}, status=status)


def device_class(extended="example.com/gpu"):
    spec = {"extendedResourceName": extended} if extended else {}
    return seen("deviceclasses", "gpu", namespace="", spec=spec)


def resource_slice(*devices, name="s", generation=1, count=1, node="n"):
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    listed = [{"name": one, "attributes": {"model": {"string": model}}} for one, model in devices]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return seen("resourceslices", name, namespace="", spec=spec)


def taint(device="gpu-0", effect="NoExecute", **more):
    spec = {
        "deviceSelector": {"driver": DRIVER, "pool": "p", "device": device},
        "taint": {"key": "unhealthy", "effect": effect},
    }
    return seen("devicetaintrules", f"unhealthy-{device}", namespace="", spec=spec, **more)


def card():
    """Of two parts, to be had whole or in halves; and a port."""
    sizes = {"whole": "2", "half": "1"}
    devices = [
        {"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"parts": {"value": size}}}]}
        for name, size in sizes.items()
    ]
    devices.append({"name": "port", "capacity": {"bandwidth": {"value": "10"}}})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    counters = [{"name": "card", "counters": {"parts": {"value": "2"}}}]
    spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": devices, "sharedCounters": counters}
    return seen("resourceslices", "s", namespace="", spec=spec)


WORLD = [
    namespace(),
    node(),
    device_class(),
    resource_slice(("gpu-0", "large"), ("1", "small"), ("2", "small")),
    seen("resourceclaimtemplates", "t", spec={}),
]


def claim(
    name="c",
    *,
    device="gpu-0",
    on="n",
    reserved=(),
    others=(),
    owner="",
    finalizer=True,
    allocated=True,
    count=1,
    large=False,
    constraints=(),
    extended=False,
    consumed="",
    **more,
):
    meta = {"finalizers": [FINALIZER]} if finalizer else {}
    if owner:
        meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": "own"}
    if extended:
        meta["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    status = {}
    if allocated:
        devices = [device] if isinstance(device, str) else device
        results = [{"request": "r", "driver": DRIVER, "pool": "p", "device": one} for one in devices]
        if consumed:
            results[0] |= {"shareID": f"share-{name}", "consumedCapacity": {"bandwidth": consumed}}
        fields = [{"key": "metadata.name", "operator": "In", "values": [on]}]
        selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
    users = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in reserved]
    users += [{"resource": "trainings", "name": one, "uid": f"uid-{one}"} for one in others]
    if users:
        status["reservedFor"] = users
    selectors = [{"cel": {"expression": SELECTOR}}] if large else []
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count, "selectors": selectors}}
    spec = {"devices": {"requests": [request], "constraints": list(constraints)}}
    owners = [made_by(owner)] if owner else []
    return seen("resourceclaims", name, owners=owners, meta=meta, status=status, spec=spec, **more)


def pod(
    name="p",
    *,
    phase="Running",
    node="n",
    claims=(),
    own=(),
    ready=True,
    containers_ready=False,
    extended=0,
    special="",
    why="",
    disrupted="",
    **more,
):
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    entries += [{"name": "own", "resourceClaimTemplateName": "t"}] if own is None or own else []
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    status["conditions"] += [{"type": "ContainersReady", "status": str(ready or containers_ready)}]
    if why:
        status["conditions"] += [{"type": "PodScheduled", "status": "False", "message": why}]
    if special:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": special}
    if disrupted:
        status["conditions"] += [{"type": "DisruptionTarget", "status": "True", "reason": disrupted}]
    if own:
        status["resourceClaimStatuses"] = [{"name": "own", "resourceClaimName": own}]
    container = {
        "name": "m",
        "resources": {"requests": {"example.com/gpu": str(extended)}} if extended else {},
    }
    spec = {"containers": [container], "resourceClaims": entries, **({"nodeName": node} if node else {})}
    return seen("pods", name, spec=spec, status=status, **more)


def quota(hard, used=None, name="q", told=None):
    """`told`: the limits that its status still tells, where they are others."""
    hard, said, told = (
        {key: str(value) for key, value in amounts.items()}
        for amounts in (hard, used or {}, hard if told is None else told)
    )
    return seen("resourcequotas", name, spec={"hard": hard}, status={"hard": told, "used": said})


def prepared(*uids, node="n"):
    return seen("preparedclaims", node, namespace="", status={"claims": [{"uid": uid} for uid in uids]})


def replica_set(name="rs", replicas=1, said=1, owners=(), edition="1"):
    template = {"metadata": {"labels": {"edition": edition, "pod-template-hash": name}}}
    spec = {"replicas": replicas, "template": template}
    return seen("replicasets", name, spec=spec, status={"replicas": said}, owners=owners)


def deployment(replicas=1, edition="1", observed=1, updated=1):
    spec = {"replicas": replicas, "template": {"metadata": {"labels": {"edition": edition}}}}
    status = {"observedGeneration": observed, "updatedReplicas": updated}
    return seen("deployments", "d", meta={"generation": 1}, spec=spec, status=status)


def daemon_set(edition="1"):
    return seen("daemonsets", "ds", spec={"template": {"metadata": {"labels": {"edition": edition}}}})


def stateful_set(replicas=1, edition="1", policy="OrderedReady"):
    template = {"metadata": {"labels": {"edition": edition}}}
    spec = {"replicas": replicas, "template": template, "podManagementPolicy": policy}
    return seen("statefulsets", "db", spec=spec)


def ordinal(number, edition="1", ready=True):
    return pod(f"db-{number}", owners=[made_by("db")], meta={"labels": {"edition": edition}}, ready=ready)


def cron_job(at=0, **spec):
    return seen("cronjobs", "nightly", spec=spec, at=at)


def due_job(name, at=0):
    annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:00:00Z"}
    due = seen("jobs", name, meta={"annotations": annotations}, owners=[made_by("nightly")], at=at, spec={})
    return new(due)


def job(*conditions, succeeded=0, **spec):
    told = [{"type": one, "status": "True"} for one in conditions]
    return seen("jobs", "j", spec=spec, status={"conditions": told, "succeeded": succeeded})


def history(*events):
    return [event._replace(revision=at + 1) for at, event in enumerate([*WORLD, *events])]


SPECIAL = claim(owner="p", extended=True, reserved=["p"])
LISTED = claim(owner="p", extended=True, reserved=["p"], others=["t"])

GOOD = {
    "a pod with a claim": [pod(claims=["c"]), claim(reserved=["p"]), prepared("uid-c")],
    "a claim that is given back": [
        pod(claims=["c"]),
        claim(reserved=["p"]),
        pod(phase="Succeeded"),
        claim(allocated=False),
    ],
    "a quota that is full": [
        quota({"pods": 1, EXTENDED: 2}, {"pods": 0, EXTENDED: 0}),
        new(pod(extended=2)),
        quota({"pods": 1, EXTENDED: 2}, {"pods": 1, EXTENDED: 2}),
    ],
    "a limit that is gone, and still told of": [
        quota({"pods": 0}, {"pods": 0}),
        quota({DEVICES: 1}, told={"pods": 0}),
        new(pod()),
        quota({DEVICES: 1}, {DEVICES: 0}),
    ],
    "an ordered set whose first pod is not ready keeps what is too many": [
        node(),
        stateful_set(1),
        ordinal(0, ready=False),
        ordinal(1),
    ],
    "a pod on a node that is silent is not ready": [
        node(ready=False),
        pod(ready=False, containers_ready=True),
    ],
    "a deployment at rest": [
        deployment(),
        replica_set(owners=[made_by("d")]),
        replica_set("old", 0, 0, owners=[made_by("d")], edition="0"),
        pod(owners=[made_by("rs")]),
    ],
    "a daemon on every node": [daemon_set(), pod(owners=[made_by("ds")], meta={"labels": {"edition": "1"}})],
    "a job that is complete": [
        job(),
        pod(phase="Succeeded", owners=[made_by("j")]),
        job("Complete", succeeded=1),
    ],
    "a pod with extended resources": [
        pod(extended=1, special="c"),
        claim(owner="p", extended=True, reserved=["p"]),
        quota({EXTENDED: 1, DEVICES: 1}, {EXTENDED: 1, DEVICES: 1}),
    ],
    "a pod that waits for room": [
        *(pod(f"p{n}") for n in range(3)),
        *(claim(f"c{n}", device=one, reserved=[f"p{n}"]) for n, one in enumerate(("gpu-0", "1", "2"))),
        pod(node="", claims=["c"], phase="Pending", why="no device is free"),
        claim(allocated=False),
    ],
    "a device of a pool that was there a minute ago": [
        resource_slice(generation=2)._replace(at_s=1000),
        claim(at=1060),
    ],
    "a device that was tainted a minute before it was given away": [
        taint(effect="NoSchedule", at=1000),
        pod(),
        claim(reserved=["p"], at=1060),
    ],
    "a pod that waits for a device that is well": [
        *(taint(one, "NoSchedule") for one in ("gpu-0", "1", "2")),
        pod(node="", claims=["c"], phase="Pending", why="all are tainted"),
        claim(allocated=False),
    ],
    "a pod that had to leave": [
        pod(),
        claim(reserved=["p"]),
        taint(),
        gone(pod()),
        claim(allocated=False),
    ],
    "a card in halves and a port for two": [
        resource_slice(),
        card(),
        *(pod(f"p{n}") for n in range(3)),
        claim("a", device="half", reserved=["p0"]),
        *(claim(f"c{n}", device="port", consumed="5", reserved=[f"p{n}"]) for n in (1, 2)),
    ],
    "a claim for extended resources that somebody is listed in stays when its pod has gone": [
        pod(extended=1, special="c"),
        LISTED,
        gone(pod()),
        leaving(claim(owner="p", extended=True, others=["t"])),
    ],
    "a pod that names the claim of another waits, and one that was put on a node by hand": [
        pod(extended=1, special="c"),
        SPECIAL,
        pod("q", node="", claims=["c"], why="it is another pod's"),
        pod("hand", claims=["c"], phase="Pending"),
    ],
    "a claim for extended resources that is given back": [
        pod(extended=1, special="c"),
        SPECIAL,
        pod(extended=1, special="c", phase="Succeeded"),
        claim(owner="p", extended=True, allocated=False),
        gone(claim(owner="p", extended=True, allocated=False)),
    ],
    "a claim with two kinds of consumers": [
        pod(),
        claim(reserved=["p"], others=["t"]),
        pod(phase="Failed"),
        claim(others=["t"]),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_without_fault_is_good(name):
    assert judge(history(*GOOD[name]), all_checkers(real_scheduler=True)) == []


LIMITED = quota({"pods": 1, DEVICES: 1, EXTENDED: 1}, {"pods": 0, DEVICES: 0, EXTENDED: 0})
TREE = [
    seen("configmaps", "root"),
    seen("configmaps", "leaf", owners=[owner("root", blockOwnerDeletion=True)]),
]
FOREGROUND = leaving(seen("configmaps", "root", meta={"finalizers": ["foregroundDeletion"]}))
ORPHANING = leaving(seen("configmaps", "root", meta={"finalizers": ["orphan"]}, at=1000))

BROKEN = [
    ("D1", [pod(), pod("q"), claim("a", reserved=["p"]), claim("b", reserved=["q"])]),
    ("D2", [card(), claim("a", device="half"), claim("b", device="whole")]),
    ("D2", [card(), *(claim(f"c{n}", device="port", consumed="6") for n in range(2))]),
    ("D2", [card(), *(claim(f"c{n}", device="port", consumed="6000m") for n in range(2))]),
    ("D3", [claim(device="none")]),
    ("D3", [resource_slice(("new", "small"), name="t", generation=2, count=2), claim(at=1000)]),
    ("D3", [resource_slice(("new", "small"), name="t", generation=2, count=2), claim(device="new")]),
    ("D4", [claim(count=2)]),
    ("D4", [claim(device=["1", "1"], count=2)]),
    ("D4", [claim(device="1", large=True)]),
    ("D4", [claim(device=["gpu-0", "1"], count=2, constraints=[{"matchAttribute": "x/model"}])]),
    ("D4", [claim(on="elsewhere")]),
    ("D4", [gone(device_class()), claim()]),
    ("D4", [taint(effect="NoSchedule"), claim(at=1000)]),
    ("TAINT1", [pod(), claim(reserved=["p"]), taint()]),
    ("P2", [taint(), gone(taint()), pod(node="", claims=["c"], why="no"), claim(allocated=False, count=3)]),
    ("C1", [claim(finalizer=False)]),
    ("C1", [pod(phase="Succeeded"), claim(reserved=["p"]), claim()]),
    ("C1", [claim(), gone(claim())]),
    ("C2", [pod(), claim(allocated=False, reserved=["p"])]),
    ("C2", [pod(), pod("q"), claim(reserved=["p"]), leaving(claim(reserved=["p", "q"]))]),
    ("C2", [claim(reserved=[f"p{n}" for n in range(257)])]),
    ("C3", [claim(reserved=["gone"])]),
    ("C3", [pod(phase="Failed"), claim(owner="p", allocated=False)]),
    ("C3", [pod(own=None)]),
    ("C3", [pod(own="c"), claim(allocated=False)]),
    ("C3", [pod(own="c1"), claim("c1", owner="p", device="1"), claim("c2", owner="p", device="2")]),
    ("C4", [pod(), pod("q"), claim(owner="p", reserved=["q"])]),
    ("C4", [pod(), pod("q", own="c"), claim(owner="p", reserved=["p"])]),
    ("C4", [pod(own="c"), claim(reserved=["p"])]),
    ("C4", [pod(own="c"), claim(), gone(claim())]),
    (
        "C5",
        [
            pod(special="a"),
            *(claim(c, owner="p", extended=True, device=d) for c, d in zip("ab", "12", strict=True)),
        ],
    ),
    ("C5", [pod(node="", why="no"), claim(owner="p", extended=True)]),
    ("C5", [pod(special="other"), claim(owner="p", extended=True)]),
    ("C6", [pod(), claim(reserved=["p"]), claim(allocated=False)]),
    ("C6", [pod(), claim(reserved=["p"]), gone(claim(reserved=["p"]))]),
    ("C7", [claim(others=["t"]), claim(allocated=False)]),
    ("C12", [pod(special="c"), pod("q"), SPECIAL, claim(owner="p", extended=True, reserved=["p", "q"])]),
    ("C12", [pod(special="c"), SPECIAL, pod("q", node="", claims=["c"]), pod("q", claims=["c"])]),
    ("C12", [pod(special="c"), LISTED, claim(owner="p", extended=True, allocated=False)]),
    ("C12", [pod(special="c"), LISTED, gone(LISTED)]),
    ("N1", [pod(phase="Pending", claims=["c"]), pod(claims=["c"])]),
    ("N1", [claim(allocated=False), pod(phase="Pending", claims=["c"]), pod(claims=["c"])]),
    ("N1", [claim(reserved=["q"]), pod(phase="Pending", claims=["c"]), pod(claims=["c"])]),
    ("N1", [prepared(), claim(reserved=["p"]), pod(phase="Pending", claims=["c"]), pod(claims=["c"])]),
    ("N2", [prepared("uid-c"), claim(), claim(allocated=False)]),
    ("N2", [prepared("uid-c"), claim(), gone(claim())]),
    ("P1", [pod(node="", claims=["c"]), claim(reserved=[]), pod(claims=["c"])]),
    ("P1", [pod(node="", own=None), pod(own=None)]),
    ("P1", [pod(node="", extended=1), pod(extended=1)]),
    (
        "P1",
        [
            pod(node="", extended=1),
            claim(owner="p", extended=True, allocated=False),
            pod(extended=1, special="c"),
        ],
    ),
    ("P2", [pod(node="", claims=["c"], why="no"), claim(allocated=False)]),
    ("P2", [pod(node="", why="no")]),
    ("P3", [pod(node="")]),
    ("P3", [pod(node="", why="0/2 nodes are available: 2 Insufficient cpu.")]),
    ("P4", [pod(node="n"), pod(node="m")]),
    ("Q1", [LIMITED, new(pod()), new(pod("q"))]),
    ("Q1", [LIMITED, new(claim(allocated=False)), new(claim("d", allocated=False))]),
    ("Q1", [LIMITED, new(pod(extended=1)), new(claim(allocated=False))]),
    ("Q1", [quota({"pods": 3}, {"pods": 2}), new(pod())]),
    ("Q1", [quota({"pods": 3}, told={})]),
    ("Q1", [quota({"pods": 0}, {"pods": 0}, told={"pods": 1}), new(pod()), quota({"pods": 0}, {"pods": 1})]),
    (
        "Q1",
        [device_class(""), new(claim(allocated=False)), device_class(), quota({EXTENDED: 1}, {EXTENDED: 0})],
    ),
    ("RSET3", [replica_set(replicas=2, said=1), pod(owners=[made_by("rs")])]),
    ("RSET3", [replica_set(said=0), pod(owners=[made_by("rs")])]),
    ("ROLL3", [deployment(observed=0)]),
    ("ROLL3", [deployment(edition="2"), replica_set(owners=[made_by("d")]), pod(owners=[made_by("rs")])]),
    ("ROLL1", [deployment(), *(replica_set(f"rs{n}", 1, 0, owners=[made_by("d")]) for n in range(3))]),
    ("DSET1", [daemon_set()]),
    ("DSET1", [daemon_set(), pod(owners=[made_by("ds")]), pod("q", owners=[made_by("ds")])]),
    ("DSET1", [daemon_set("2"), pod(owners=[made_by("ds")], meta={"labels": {"edition": "1"}})]),
    ("SSET1", [stateful_set(2), ordinal(0)]),
    ("SSET1", [stateful_set(1), ordinal(0), ordinal(1)]),
    ("SSET1", [stateful_set(1), ordinal(0), ordinal(1, ready=False)]),
    ("SSET1", [stateful_set(1, policy="Parallel"), ordinal(0, ready=False), ordinal(1)]),
    ("SSET1", [stateful_set(edition="2"), ordinal(0)]),
    ("N9", [node(), pod(ready=False, containers_ready=True)]),
    ("CRON1", [cron_job(), due_job("a"), due_job("b")]),
    ("CRON2", [cron_job(suspend=True), due_job("a", at=900)]),
    ("CRON2", [cron_job(), gone(cron_job()), due_job("a", at=900)]),
    ("JOB1", [job(), pod(phase="Succeeded", owners=[made_by("j")]), job("Complete", succeeded=2)]),
    ("JOB1", [job(), pod(phase="Succeeded", owners=[made_by("j")]), job("Complete", succeeded=0)]),
    ("JOB2", [job("Complete", "Failed")]),
    ("JOB2", [job("Complete"), job("Failed")]),
    ("JOB2", [job("Complete"), new(pod(owners=[made_by("j")], at=90)), gone(pod(owners=[made_by("j")]))]),
    ("JOB2", [job()]),
    ("OWNED1", [seen("configmaps", "leaf", owners=[owner("gone")])]),
    (
        "OWNED1",
        [seen("configmaps", "root"), seen("configmaps", "leaf", owners=[owner("root"), owner("gone")])],
    ),
    ("OWNED2", [seen("configmaps", "root", meta=KEPT), gone(seen("configmaps", "root", meta=KEPT))]),
    ("OWNED2", [TREE[0], gone(seen("configmaps", "leaf", meta=KEPT, owners=[owner("root")]))]),
    ("OWNED3", [*TREE, FOREGROUND, gone(FOREGROUND)._replace(at_s=1000)]),
    ("OWNED4", [*TREE, ORPHANING, gone(ORPHANING), gone(TREE[1])]),
    ("NSEND1", [leaving(namespace("other"))]),
    ("NSEND1", [namespace("other"), seen("configmaps", "m", namespace="other"), gone(namespace("other"))]),
    ("NSEND2", [leaving(namespace("other")), new(seen("configmaps", "m", namespace="other"))]),
    ("LOST1", [pod(node="gone")]),
    ("LOST1", [leaving(pod(node=""))]),
    ("LOST2", [pod(at=1000, disrupted="DeletionByPodGC", phase="Failed")]),
]


@pytest.mark.parametrize(
    "promise, events", BROKEN, ids=[f"{name} {at}" for at, (name, _) in enumerate(BROKEN)]
)
def test_a_broken_promise_is_named(promise, events):
    names = {text.split(": ")[1] for text in judge(history(*events), all_checkers(real_scheduler=True))}
    assert promise in names


def by_scheduler(event, of="frob"):
    """The claim, as of a resource class whose claims the scheduler allocates with numeric parameters."""
    fields = json.loads(event.object.raw)
    fields["spec"] = {"resourceClassName": of}
    fields["metadata"]["finalizers"] = [NUMERIC_FINALIZER]
    return event._replace(object=Object(json.dumps(fields).encode()))


def by_driver(event):
    """The claim, as one that the driver of its class has allocated."""
    fields = json.loads(by_scheduler(event, of="gpu").object.raw)
    fields["metadata"]["finalizers"] = [f"{DRIVER}/deletion-protection"]
    return event._replace(object=Object(json.dumps(fields).encode()))


HELD = claim(reserved=["p"])
FINISHED = [pod(), HELD, pod(phase="Succeeded")]
AT_ONCE = {
    "it was protected, and its pod is done": ([*FINISHED, gone(HELD)], ""),
    "its pod is gone": ([pod(), HELD, gone(pod()), gone(HELD)], ""),
    "nothing protected it": (
        [claim(finalizer=False), gone(claim(finalizer=False))],
        "C1: claim c went while it was allocated: nothing protected it",
    ),
    "its pod waits": (
        [pod(node=""), HELD, gone(HELD)],
        "C1: claim c went while it was allocated, and pod p needs it",
    ),
    "its pod is being deleted on its node": (
        [leaving(pod()), HELD, gone(HELD)],
        "C1: claim c went while it was allocated, and pod p needs it",
    ),
    "its pod was deleted before it came to a node": ([leaving(pod(node="")), HELD, gone(HELD)], ""),
    "one of two pods needs it": (
        [pod("q"), claim(reserved=["p", "q"]), *FINISHED[::2], gone(claim(reserved=["p", "q"]))],
        "C1: claim c went while it was allocated, and pod q needs it",
    ),
    "its user is no pod, though one has its uid": (
        [pod(), claim(others=["p"]), gone(claim(others=["p"]))],
        "",
    ),
    "the scheduler protected it": (
        [pod(), by_scheduler(HELD), pod(phase="Succeeded"), gone(by_scheduler(HELD))],
        "",
    ),
    "the scheduler protected it, and its class is of no made-up world": (
        [pod(), by_scheduler(HELD, of="counted"), gone(pod()), gone(by_scheduler(HELD, of="counted"))],
        "",
    ),
    "only its driver protected it": (
        [pod(), by_driver(HELD), pod(phase="Succeeded"), gone(by_driver(HELD))],
        "C1: claim c went while it was allocated: nothing protected it",
    ),
}


@pytest.mark.parametrize(("events", "wrong"), AT_ONCE.values(), ids=AT_ONCE)
def test_a_claim_that_is_given_back_and_goes_at_once_goes_allocated(events, wrong):
    """As those who watch are told: what it was before."""
    told = [text.partition(": ")[2] for text in judge(history(*events), [ClaimRules(transactions=True)])]
    assert (wrong in told) if wrong else told == []


def test_without_transactions_no_claim_goes_allocated():
    (told,) = judge(history(*FINISHED, gone(HELD)), [ClaimRules()])
    assert told.endswith("C1: claim c went while it was allocated: nothing protected it")


@pytest.mark.parametrize(
    ("checkers", "is_wrong"),
    [(all_checkers(), True), (all_checkers(transactions=True), False), (for_any_cluster(), False)],
    ids=["nobody has transactions", "somebody has", "any cluster"],
)
def test_whoever_judges_says_whether_a_claim_may_be_given_back_and_go_at_once(checkers, is_wrong):
    told = judge(history(*FINISHED, gone(HELD)), checkers)
    assert any("nothing protected it" in text for text in told) == is_wrong


@pytest.mark.parametrize(("until_s", "is_waiting"), [(119.0, True), (121.0, False)])
def test_a_job_rests_between_two_attempts_and_not_for_ever(until_s, is_waiting):
    """Twenty seconds after the second failure."""
    failures = [
        pod(name, phase="Failed", owners=[made_by("j")], at=at) for name, at in (("p", 50), ("q", 100))
    ]
    wrong = judge(history(job(), *failures), all_checkers(real_scheduler=True, until_s=until_s))
    assert (wrong == []) == is_waiting, wrong


def at_revision(revision, event):
    return event._replace(revision=revision)


def waits_for_its_device(event):
    fields = json.loads(event.object.raw)
    for one in fields["status"]["allocation"]["devices"]["results"]:
        one["bindingConditions"] = ["example.com/ready"]
    return event._replace(object=Object(json.dumps(fields).encode()))


WAITING, BOUND = pod(node="", extended=1), pod(extended=1, special="c")
FOR_ITSELF, EMPTY = new(SPECIAL), new(claim(owner="p", extended=True, allocated=False))
BEFORE = "WHOLE1: claim c was there at revision 5, before pod p was bound"
PLACEMENTS = {
    "the claim and then the pod": (
        [at_revision(5, FOR_ITSELF), at_revision(6, BOUND)],
        f"revision 6: {BEFORE}",
    ),
    "both at once": ([at_revision(5, FOR_ITSELF), at_revision(5, BOUND)], ""),
    "both at once, of which the pod is told first": ([at_revision(5, BOUND), at_revision(5, FOR_ITSELF)], ""),
    "the claim, and at once a pod that is not bound": (
        [at_revision(5, FOR_ITSELF), at_revision(5, WAITING), at_revision(6, BOUND)],
        f"revision 5: {BEFORE}",
    ),
    "the claim alone": (
        [at_revision(5, FOR_ITSELF)],
        "at rest: WHOLE1: claim c was there at revision 5, and its pod was not bound",
    ),
    "a claim whose device is made ready first": (
        [at_revision(5, waits_for_its_device(FOR_ITSELF)), at_revision(6, BOUND)],
        "",
    ),
    "a claim that is given such a device later": (
        [at_revision(5, EMPTY), at_revision(6, waits_for_its_device(SPECIAL)), at_revision(7, BOUND)],
        "",
    ),
    "a claim that was made from a template": (
        [at_revision(5, new(claim(owner="p"))), at_revision(6, BOUND)],
        "",
    ),
}


@pytest.mark.parametrize(("events", "wrong"), PLACEMENTS.values(), ids=PLACEMENTS)
def test_half_of_a_placement_is_named_and_a_whole_one_is_not(events, wrong):
    """Of these only the revisions tell, and histories elsewhere give every event its own."""
    assert judge([at_revision(4, WAITING), *events], [Whole()]) == ([wrong] if wrong else [])


def test_every_checker_follows_what_is_recorded():
    recorded = {one.plural for one in (*FOLLOWED, EVENTS)} | {PROVIDER}
    for checker in all_checkers(real_scheduler=True, late_autoscaler_s=()):
        assert set(checker.follows) <= recorded, type(checker).__name__


def test_what_a_checker_says_begins_with_a_promise_that_some_history_breaks():
    """Whoever adds a checker adds a history that it finds."""
    shown = {name for name, _ in BROKEN} | OF_CLASSIC | OF_COMPUTE | OF_NUMERIC | OF_AUTOSCALERS
    documented = {
        name
        for checker in all_checkers(real_scheduler=True, late_autoscaler_s=())
        for name in re.findall(
            r"\b[A-Z]\d+\b", __import__(type(checker).__module__, fromlist=["_"]).__doc__ or ""
        )
    }
    assert documented <= shown
