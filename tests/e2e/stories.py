"""Work for every controller, such that it can be seen to be half done. For tests that kill them.

A story gives its controller pieces of work, says through the API alone how many steps of
them are done, and what is wrong with how it ended. Stories do not touch each other, so
that one server can be told all of them at once, and each more than once.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from allot.api import Object, errors
from allot.client import Client, Resource

NS = "default"
CONTAINER = {"name": "main", "image": "app:1"}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
EVERYTHING = {"operator": "Exists"}
Fields = dict[str, Any]


class Api:
    def __init__(self, client: Client) -> None:
        self.pods = client.resource("", "v1", "pods")
        self.configs = client.resource("", "v1", "configmaps")
        self.accounts = client.resource("", "v1", "serviceaccounts")
        self.quotas = client.resource("", "v1", "resourcequotas")
        self.nodes = client.resource("", "v1", "nodes", namespaced=False)
        self.namespaces = client.resource("", "v1", "namespaces", namespaced=False)
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.rules = client.resource("resource.k8s.io", "v1", "devicetaintrules", namespaced=False)
        self.slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.questions = client.resource(
            "resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", namespaced=False
        )
        self.deployments = client.resource("apps", "v1", "deployments")
        self.replica_sets = client.resource("apps", "v1", "replicasets")
        self.stateful_sets = client.resource("apps", "v1", "statefulsets")
        self.cron_jobs = client.resource("batch", "v1", "cronjobs")
        self.daemon_sets = client.resource("apps", "v1", "daemonsets")
        self.budgets = client.resource("policy", "v1", "poddisruptionbudgets")
        self.jobs = client.resource("batch", "v1", "jobs")
        self.leases = client.resource("coordination.k8s.io", "v1", "leases")

    async def leader(self) -> str:
        try:
            lease = await self.leases.get("kube-controller-manager", "kube-system")
        except errors.ApiError:
            return ""
        return lease.fields["spec"].get("holderIdentity") or ""


@dataclass
class Telling:
    """One telling of one story: where, and what was given so far."""

    api: Api
    run: str  # is in every name, and tells tellings apart
    names: list[str] = field(default_factory=list)  # of the pieces

    def next(self, count: int) -> list[str]:
        more = [f"{self.run}-{len(self.names) + number}" for number in range(count)]
        self.names += more
        return more


class Story:
    controller: ClassVar[str]
    at_once: ClassVar[int] = 12  # so many pieces keep the controller busy for a while
    steps: ClassVar[int] = 1  # that can be seen of each piece

    async def prepare(self, here: Telling) -> None:
        """What has to be there before the first piece."""

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        """Write down more work, a piece for each name."""
        raise NotImplementedError

    async def done(self, here: Telling) -> int:
        """How many steps are done."""
        raise NotImplementedError

    async def wrong(self, here: Telling) -> str:
        """What is not as it should be in the end; "" if nothing."""
        done, wanted = await self.done(here), len(here.names) * self.steps
        return "" if done == wanted else f"{done} of {wanted} steps are done"


# -- claims and devices -------------------------------------------------------------------------


class ClaimsAreMade(Story):
    """Every pod gets one claim from its template, and it is recorded in the pod's status."""

    controller = "resourceclaim-controller"
    steps = 2

    async def prepare(self, here: Telling) -> None:
        spec = {"spec": {"devices": {"requests": [REQUEST]}}}
        await here.api.templates.create(_named(f"claims-{here.run}", spec=spec), NS)

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        wanted = {"name": "gpu", "resourceClaimTemplateName": f"claims-{here.run}"}
        await _all(here.api.pods, (_pod(f"claims-{one}", resourceClaims=[wanted]) for one in names))

    async def done(self, here: Telling) -> int:
        recorded = sum(len(_recorded(pod)) for pod in await self._pods(here))
        return recorded + min(len(await self._claims(here)), len(here.names))

    async def wrong(self, here: Telling) -> str:
        recorded = sorted(name for pod in await self._pods(here) for name in _recorded(pod))
        there = sorted(claim.name for claim in await self._claims(here))
        if recorded != there:
            return f"recorded are {recorded}, and there are {there}"
        return await super().wrong(here)

    async def _pods(self, here: Telling) -> Sequence[Object]:
        return await _those(here.api.pods, f"claims-{here.run}-")

    async def _claims(self, here: Telling) -> Sequence[Object]:
        return await _those(here.api.claims, f"claims-{here.run}-")


class DevicesAreLeft(Story):
    """Pods whose devices a rule taints are told why they must go, and deleted."""

    controller = "device-taint-eviction-controller"
    steps = 2

    async def prepare(self, here: Telling) -> None:
        await here.api.nodes.create(_node(f"tainted-{here.run}"))
        selector = {"pool": f"tainted-{here.run}"}
        spec = {"deviceSelector": selector, "taint": {"key": "broken", "effect": "NoExecute"}}
        await here.api.rules.create(_named(f"tainted-{here.run}", spec=spec))

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await asyncio.gather(*(self._run(here.api, f"tainted-{here.run}", f"tainted-{one}") for one in names))

    async def _run(self, api: Api, pool: str, name: str) -> None:
        claims = [{"name": "gpu", "resourceClaimName": name}]
        pod = await api.pods.create(_pod(name, nodeName=pool, resourceClaims=claims), NS)
        await api.claims.create(_named(name, spec={"devices": {"requests": [REQUEST]}}), NS)
        result = {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": name}
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await api.claims.patch(name, {"status": status}, NS, subresource="status")

    async def done(self, here: Telling) -> int:
        pods = await _those(here.api.pods, f"tainted-{here.run}-")
        return sum(_is_told(pod) + (pod.metadata.deletion_timestamp is not None) for pod in pods)

    async def wrong(self, here: Telling) -> str:
        rule = await here.api.rules.get(f"tainted-{here.run}")
        has_status = bool((rule.fields.get("status") or {}).get("conditions"))
        return await super().wrong(here) if has_status else "the rule has no status"


# -- what goes ----------------------------------------------------------------------------------


class GarbageIsCollected(Story):
    """What belongs to an object that is not there goes; what also belongs to a living one stays."""

    controller = "garbage-collector-controller"
    gone: ClassVar[Fields] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "gone",
        "uid": "9f0c6f86-5b0e-4a53-9a0a-0a4c5c1a2b3d",
    }

    async def prepare(self, here: Telling) -> None:
        alive = await here.api.configs.create(_named(f"owner-{here.run}"), NS)
        owners = [self.gone, {**self.gone, "name": alive.name, "uid": alive.uid}]
        await here.api.configs.create(_named(f"kept-{here.run}", ownerReferences=owners), NS)

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        owned = (_named(f"garbage-{one}", ownerReferences=[self.gone]) for one in names)
        await _all(here.api.configs, owned)

    async def done(self, here: Telling) -> int:
        return len(here.names) - len(await _those(here.api.configs, f"garbage-{here.run}-"))

    async def wrong(self, here: Telling) -> str:
        kept = await _those(here.api.configs, f"kept-{here.run}")
        return await super().wrong(here) if kept else "what has a living owner is gone"


class NamespacesAreEmptied(Story):
    """Namespaces that are deleted go, after what is in them."""

    controller = "namespace-controller"
    at_once = 3
    inside = 4
    steps = inside + 1

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await asyncio.gather(*(self._end(here.api, f"ending-{one}") for one in names))

    async def _end(self, api: Api, name: str) -> None:
        await api.namespaces.create(_named(name))
        await _all(api.configs, (_named(f"in-{number}") for number in range(self.inside)), name)
        await api.namespaces.delete(name)

    async def done(self, here: Telling) -> int:
        there = len(await _those(here.api.namespaces, f"ending-{here.run}-"))
        configs = (await here.api.configs.list()).objects
        inside = sum(one.namespace.startswith(f"ending-{here.run}-") for one in configs)
        return len(here.names) * self.steps - there - inside


class LostPodsEnd(Story):
    """Pods that were told to end on a node that is out of service are ended."""

    controller = "pod-garbage-collector-controller"

    async def prepare(self, here: Telling) -> None:
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        await here.api.nodes.create({**_node(f"lost-{here.run}", ready=None), "spec": {"taints": [taint]}})

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        more = {"nodeName": f"lost-{here.run}", "tolerations": [EVERYTHING]}
        await _all(here.api.pods, (_pod(f"lost-{one}", **more) for one in names))
        await asyncio.gather(*(here.api.pods.delete(f"lost-{one}", NS) for one in names))

    async def done(self, here: Telling) -> int:
        return len(here.names) - len(await _those(here.api.pods, f"lost-{here.run}-"))


# -- what comes ---------------------------------------------------------------------------------


class AccountsAreMade(Story):
    """Every namespace has a default service account: it is born with one, and gets another if that goes."""

    controller = "serviceaccount-controller"

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await _all(here.api.namespaces, (_named(f"home-{one}") for one in names), "")
        gone = (here.api.accounts.delete("default", f"home-{one}") for one in names)
        await asyncio.gather(*gone)

    async def done(self, here: Telling) -> int:
        accounts = (await here.api.accounts.list()).objects
        return sum(
            one.namespace.startswith(f"home-{here.run}-") and one.name == "default" for one in accounts
        )


class CertificatesAreTold(Story):
    """Every namespace says who signs the server's certificate."""

    controller = "root-ca-certificate-publisher-controller"

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await _all(here.api.namespaces, (_named(f"trusting-{one}") for one in names), "")

    async def done(self, here: Telling) -> int:
        told = [
            one.fields["data"]["ca.crt"]
            for one in (await here.api.configs.list()).objects
            if one.namespace.startswith(f"trusting-{here.run}-") and one.name == "kube-root-ca.crt"
        ]
        return sum(text.startswith("-----BEGIN CERTIFICATE-----") for text in told)


class DeploymentsRollOut(Story):
    """Every deployment has one replica set, and says how it stands."""

    controller = "deployment-controller"
    steps = 2

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await _all(here.api.deployments, (_set(f"rolled-{one}", replicas=1) for one in names))

    async def done(self, here: Telling) -> int:
        found = await _those(here.api.deployments, f"rolled-{here.run}-")
        said = sum((one.fields.get("status") or {}).get("observedGeneration") == 1 for one in found)
        return said + len(await self._owners(here))

    async def wrong(self, here: Telling) -> str:
        owners = await self._owners(here)
        if owners != Counter({f"rolled-{one}": 1 for one in here.names}):
            return f"the replica sets belong to {owners}"
        return await super().wrong(here)

    async def _owners(self, here: Telling) -> Counter[str]:
        return Counter(map(_owner, await _those(here.api.replica_sets, f"rolled-{here.run}-")))


class ReplicasAreMade(Story):
    """Every replica set has as many pods as it wants."""

    controller = "replicaset-controller"
    at_once = 4
    steps = 3

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        await _all(here.api.replica_sets, (_set(f"copied-{one}", replicas=self.steps) for one in names))

    async def done(self, here: Telling) -> int:
        return len(await _those(here.api.pods, f"copied-{here.run}-"))

    async def wrong(self, here: Telling) -> str:
        owners = Counter(map(_owner, await _those(here.api.pods, f"copied-{here.run}-")))
        wanted = Counter({f"copied-{one}": self.steps for one in here.names})
        return "" if owners == wanted else f"the pods belong to {owners}"


class DaemonsAreEverywhere(Story):
    """One pod of the set for every node that it selects."""

    controller = "daemonset-controller"

    async def prepare(self, here: Telling) -> None:
        wanted = _set(f"daemon-{here.run}", nodeSelector={"run": here.run})
        await here.api.daemon_sets.create(wanted, NS)

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        nodes = (_node(f"daemon-{one}", labels={"run": here.run}) for one in names)
        await _all(here.api.nodes, nodes, "")

    async def done(self, here: Telling) -> int:
        return len(await _those(here.api.pods, f"daemon-{here.run}-"))

    async def wrong(self, here: Telling) -> str:
        nodes = Counter(map(_wanted_node, await _those(here.api.pods, f"daemon-{here.run}-")))
        wanted = Counter({f"daemon-{one}": 1 for one in here.names})
        return "" if nodes == wanted else f"the pods are for {nodes}"


class OrdinalsAreFilled(Story):
    """Every stateful set has a pod for each of its ordinals."""

    controller = "statefulset-controller"
    at_once = 4
    steps = 3

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        wanted = (_set(f"ordinal-{one}", replicas=3) for one in names)
        parallel = ({**one, "spec": {**one["spec"], "podManagementPolicy": "Parallel"}} for one in wanted)
        await _all(here.api.stateful_sets, parallel)

    async def done(self, here: Telling) -> int:
        return len(await _those(here.api.pods, f"ordinal-{here.run}-"))

    async def wrong(self, here: Telling) -> str:
        found = sorted(pod.name for pod in await _those(here.api.pods, f"ordinal-{here.run}-"))
        wanted = sorted(f"ordinal-{one}-{number}" for one in here.names for number in range(3))
        return "" if found == wanted else f"the pods are {found}"


class CronJobsBegin(Story):
    """Every cron job that is due has its job, and says so. It is due again when nobody looks any more."""

    controller = "cronjob-controller"
    steps = 2

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
        template = {"spec": {"suspend": True, "template": {"spec": pod}}}
        spec = {"schedule": "@every 1s", "concurrencyPolicy": "Forbid", "jobTemplate": template}
        await _all(here.api.cron_jobs, (_named(f"cron-{one}", spec=spec) for one in names))

    async def done(self, here: Telling) -> int:
        told = [
            one.fields.get("status") or {} for one in await _those(here.api.cron_jobs, f"cron-{here.run}-")
        ]
        made = await _those(here.api.jobs, f"cron-{here.run}-")
        return sum(bool(one.get("active")) for one in told) + len({_owner(job) for job in made})

    async def wrong(self, here: Telling) -> str:
        owners = Counter(map(_owner, await _those(here.api.jobs, f"cron-{here.run}-")))
        if any(count > 1 for count in owners.values()):
            return f"more than one job runs: {owners}"
        return await super().wrong(here)


class JobsBegin(Story):
    """Every job has its pod, and only one, and says so."""

    controller = "job-controller"
    steps = 2

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        await _all(here.api.jobs, (_named(f"job-{one}", spec={"template": template}) for one in names))

    async def done(self, here: Telling) -> int:
        found = await _those(here.api.jobs, f"job-{here.run}-")
        said = sum((one.fields.get("status") or {}).get("active") == 1 for one in found)
        return said + len(await self._owners(here))

    async def wrong(self, here: Telling) -> str:
        owners = await self._owners(here)
        if owners != Counter({f"job-{one}": 1 for one in here.names}):
            return f"the pods belong to {owners}"
        return await super().wrong(here)

    async def _owners(self, here: Telling) -> Counter[str]:
        return Counter(map(_owner, await _those(here.api.pods, f"job-{here.run}-")))


class FinishedJobsGo(Story):
    """Jobs that somebody else manages, and says that they are done."""

    controller = "ttl-after-finished-controller"

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        spec = {"template": template, "managedBy": "example.com/test", "ttlSecondsAfterFinished": 0}
        await _all(here.api.jobs, (_named(f"done-{one}", spec=spec) for one in names))
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"conditions": [ended]}}
        patch = here.api.jobs.patch
        await asyncio.gather(*(patch(f"done-{one}", status, NS, subresource="status") for one in names))

    async def done(self, here: Telling) -> int:
        return len(here.names) - len(await _those(here.api.jobs, f"done-{here.run}-"))


# -- what is told -------------------------------------------------------------------------------


class SickNodesAreTainted(Story):
    """A node that is not ready is tainted: no pods come, and those that are there leave."""

    controller = "node-lifecycle-controller"
    taints = frozenset(("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute"))

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        """Twice as many are well: when most are sick, nobody has to leave."""
        well = (_node(f"well-{one}-{side}") for one in names for side in "lr")
        await _all(here.api.nodes, well, "")
        await _all(here.api.nodes, (_node(f"sick-{one}", ready="False") for one in names), "")

    async def done(self, here: Telling) -> int:
        return sum(_taints(node) >= self.taints for node in await _those(here.api.nodes, f"sick-{here.run}-"))

    async def wrong(self, here: Telling) -> str:
        tainted = [one.name for one in await _those(here.api.nodes, f"well-{here.run}-") if _taints(one)]
        return f"tainted, and well: {tainted}" if tainted else await super().wrong(here)


class QuotasAreCounted(Story):
    """Every quota says what is used."""

    controller = "resourcequota-controller"
    used: ClassVar[Fields] = {"pods": "3", "count/pods": "3"}

    async def prepare(self, here: Telling) -> None:
        await here.api.namespaces.create(_named(f"counted-{here.run}"))
        await _all(here.api.pods, (_pod(f"used-{n}") for n in range(3)), f"counted-{here.run}")

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        hard = {"hard": dict.fromkeys(self.used, "9")}
        await _all(here.api.quotas, (_named(one, spec=hard) for one in names), f"counted-{here.run}")

    async def done(self, here: Telling) -> int:
        found = (await here.api.quotas.list(f"counted-{here.run}")).objects
        return sum((one.fields.get("status") or {}).get("used") == self.used for one in found)


class BudgetsAreCounted(Story):
    """Every disruption budget says how many of its pods may go."""

    controller = "disruption-controller"
    numbers: ClassVar[Fields] = {"expectedPods": 3, "currentHealthy": 2, "disruptionsAllowed": 1}

    async def prepare(self, here: Telling) -> None:
        await here.api.namespaces.create(_named(f"guarded-{here.run}"))
        await _all(here.api.pods, (_pod(f"kept-{n}") for n in range(3)), f"guarded-{here.run}")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        for n in range(2):
            await here.api.pods.patch(f"kept-{n}", ready, f"guarded-{here.run}", subresource="status")

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        spec = {"selector": {}, "minAvailable": 1}
        await _all(here.api.budgets, (_named(one, spec=spec) for one in names), f"guarded-{here.run}")

    async def done(self, here: Telling) -> int:
        found = (await here.api.budgets.list(f"guarded-{here.run}")).objects
        return sum(self.numbers.items() <= (one.fields.get("status") or {}).items() for one in found)


class PoolsAreTold(Story):
    """Whoever asks how the pools of a driver stand gets one answer."""

    controller = "resourcepoolstatusrequest-controller"

    async def prepare(self, here: Telling) -> None:
        pool = {"name": here.run, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": f"{here.run}.example.com", "allNodes": True, "pool": pool}
        devices = [{"name": "d0"}, {"name": "d1"}]
        await here.api.slices.create(_named(f"told-{here.run}", spec={**spec, "devices": devices}))

    async def give(self, here: Telling, names: Sequence[str]) -> None:
        spec = {"driver": f"{here.run}.example.com"}
        await _all(here.api.questions, (_named(f"asked-{one}", spec=spec) for one in names), "")

    async def done(self, here: Telling) -> int:
        return sum(map(bool, await self._answers(here)))

    async def wrong(self, here: Telling) -> str:
        for answer in await self._answers(here):
            counts = [(one["poolName"], one["totalDevices"]) for one in answer.get("pools") or ()]
            if answer and counts != [(here.run, 2)]:
                return f"the answer is {answer}"
        return await super().wrong(here)

    async def _answers(self, here: Telling) -> list[Fields]:
        found = await _those(here.api.questions, f"asked-{here.run}-")
        return [one.fields.get("status") or {} for one in found]


STORIES: tuple[Story, ...] = (
    ClaimsAreMade(),
    DevicesAreLeft(),
    GarbageIsCollected(),
    NamespacesAreEmptied(),
    LostPodsEnd(),
    AccountsAreMade(),
    CertificatesAreTold(),
    DeploymentsRollOut(),
    ReplicasAreMade(),
    DaemonsAreEverywhere(),
    OrdinalsAreFilled(),
    CronJobsBegin(),
    JobsBegin(),
    FinishedJobsGo(),
    SickNodesAreTainted(),
    QuotasAreCounted(),
    BudgetsAreCounted(),
    PoolsAreTold(),
)
"""One for every controller; a test sees to it."""


# -- objects ------------------------------------------------------------------------------------


def _named(name: str, *, spec: Fields | None = None, **metadata: Any) -> Fields:
    return {"metadata": {"name": name, **metadata}, **({"spec": spec} if spec else {})}


def _pod(name: str, **spec: Any) -> Fields:
    return _named(name, spec={"containers": [CONTAINER], **spec})


def _node(name: str, ready: str | None = "True", **metadata: Any) -> Fields:
    now = "2026-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": now, "lastTransitionTime": now}
    conditions = [condition] if ready is not None else []
    return {**_named(name, **metadata), "status": {"conditions": conditions}}


def _set(name: str, *, replicas: int | None = None, **spec: Any) -> Fields:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **spec}}
    wanted = {"selector": {"matchLabels": labels}, "template": template}
    return _named(name, spec={**wanted, **({} if replicas is None else {"replicas": replicas})})


async def _all(kind: Resource, wanted: Iterable[Fields], namespace: str = NS) -> None:
    await asyncio.gather(*(kind.create(one, namespace) for one in wanted))


async def _those(kind: Resource, prefix: str) -> Sequence[Object]:
    listed = await kind.list(NS if kind.namespaced else "")
    return [one for one in listed.objects if one.name.startswith(prefix)]


def _recorded(pod: Object) -> list[str]:
    statuses = (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
    return [one["resourceClaimName"] for one in statuses]


def _is_told(pod: Object) -> bool:
    conditions = (pod.fields.get("status") or {}).get("conditions") or ()
    return any(one.get("reason") == "DeletionByDeviceTaintManager" for one in conditions)


def _owner(object: Object) -> str:
    (owner,) = object.fields["metadata"]["ownerReferences"]
    return str(owner["name"])


def _wanted_node(pod: Object) -> str:
    affinity = pod.fields["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


def _taints(node: Object) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in (node.fields.get("spec") or {}).get("taints") or ()}
