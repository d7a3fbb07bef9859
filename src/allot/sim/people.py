"""People: they carry out the steps of the script that are about objects.

Each deed is what somebody with a keyboard may do, without faults of its own. That a name is
taken, that something is gone already, that a quota says no: they see it and let it be.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from allot.api import Object, errors
from allot.client import Client, Propagation
from allot.informers import owner_uids

from . import classic_things, compute_things, group_things, numeric_things, things
from .classic_things import ClassicThings
from .compute_things import ComputeThings
from .node_groups import NodeGroups
from .nodes import Nodes
from .numeric_things import NumericThings
from .recording import Recorder, Seen
from .scheduling import allocation, give, results
from .script import DEFAULT, HARDS, QUOTAS
from .step import Step, name_of
from .things import Fields, Things

_ENTRY = "resource.kubernetes.io/pod-claim-name"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
MISUSE_WITHIN_S = 300.0
MISUSED = "misused: "
_LET_BE = (
    errors.Conflict,
    errors.NotFound,
    errors.Forbidden,
    errors.Invalid,
    errors.TooManyRequests,
)

Deed = Callable[..., Awaitable[None]]


class People:
    def __init__(
        self, clients: Sequence[Client], record: Recorder, nodes: Nodes, groups: NodeGroups | None = None
    ) -> None:
        """A client for each server there is."""
        self._groups = groups
        self._ways = [Things(client) for client in clients]
        self._things = self._ways[0]
        self._classic = ClassicThings(clients[0])
        self._compute = ComputeThings(clients[0])
        self._numeric = NumericThings(clients[0])
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by the name of a class
        self._record = record
        self._nodes = nodes
        self._replaced: set[str] = set()  # claims that took the name of another: nobody deletes those
        self.misused: Counter[str] = Counter()  # claims for extended resources, by how and when
        self.deeds: Mapping[str, Deed] = {
            "create pod": self._create_pod,
            "delete pod": self._delete_pod,
            "create deployment": self._create_deployment,
            "create daemon set": self._create_daemon_set,
            "create stateful set": self._create_stateful_set,
            "create job": self._create_job,
            "create cron job": self._create_cron_job,
            "roll": self._roll,
            "scale": self._scale,
            "suspend": self._suspend,
            "delete": self._delete,
            "create namespace": self._create_namespace,
            "delete namespace": self._delete_namespace,
            "plant tree": self._plant_tree,
            "fell tree": self._fell_tree,
            "create claim": self._create_claim,
            "delete claim": self._delete_claim,
            "allocate claim": self._allocate_claim,
            "steal claim": self._steal_claim,
            "copy claim": self._copy_claim,
            "create template": self._create_template,
            "delete template": self._delete_template,
            "create quota": self._create_quota,
            "change quota": self._change_quota,
            "rename class": self._rename_class,
            "rush": self._rush,
            "clear out": self._clear_out,
            "reserve for an outsider": self._reserve_for_an_outsider,
            "misuse claim": self._misuse_claim,
            "create classic claim": self._create_classic_claim,
            "delete classic claim": self._delete_claim,
            "create resource class": self._create_resource_class,
            "delete resource class": self._delete_resource_class,
            "delete podscheduling": self._delete_podscheduling,
            "leave podscheduling": self._leave_podscheduling,
            "count": self._count,
            "spoil capacity": self._spoil_capacity,
            "create card pod": self._create_card_pod,
            "create card class": self._create_card_class,
            "change card class": self._change_card_class,
            "delete card class": self._delete_card_class,
            "export cards": self._export_cards,
            "create numeric claim": self._create_numeric_claim,
            "create numeric class": self._create_numeric_class,
            "publish capacity": self._publish_capacity,
            "create large pod": self._create_large_pod,
            "create surge": self._create_surge,
            "lose group node": self._lose_group_node,
            "lose node": self._lose_node,
            "return node": self._return_node,
            "silence node": self._silence_node,
            "hear node": self._hear_node,
            "publish": self._publish,
            "taint": self._taint,
            "lift taint": self._lift_taint,
        }

    async def furnish(self) -> None:
        """Device classes, a priority, templates, and a claim that pods share."""
        await self._things.priorityclasses.create({"metadata": {"name": things.URGENT}, "value": 1000})
        for device_class in things.device_classes():
            await self._things.deviceclasses.create(device_class)
        await self._things.namespaces.create({"metadata": {"name": QUOTAS}})
        await self._create_template(edition=1)
        for template in (things.pair_template(), *things.sharing_templates()):
            await self._things.resourceclaimtemplates.create(template, DEFAULT)
        await self._create_claim(name=things.SHARED)

    async def furnish_classic(self) -> None:
        for name in classic_things.CLASSES:
            await self._create_resource_class(name)
        for name in classic_things.TEMPLATES:
            await self._classic.resourceclaimtemplates.create(classic_things.template(name), DEFAULT)
        for name in classic_things.CLAIMS:
            await self._create_classic_claim(name)

    async def furnish_compute(self) -> None:
        for name in compute_things.CLASSES:
            await self._create_card_class(name)

    async def furnish_numeric(self) -> None:
        await self._numeric.roles.create(numeric_things.role())
        await self._numeric.bindings.create(numeric_things.binding())
        for name in numeric_things.AMOUNTS:
            await self._numeric.configmaps.create(numeric_things.parameters(name), DEFAULT)
        for name in numeric_things.CLASSES:
            await self._create_numeric_class(name)
        for name in numeric_things.TEMPLATES:
            await self._numeric.resourceclaimtemplates.create(numeric_things.template(name), DEFAULT)
        for name in numeric_things.CLAIMS:
            await self._create_numeric_claim(name)
        for node in numeric_things.NODES:
            await self._numeric.capacities.create(numeric_things.capacity(node, numeric_things.COUNT))

    async def do(self, step: Step) -> None:
        try:
            await self.deeds[step.deed](**step.of)
        except _LET_BE:
            return

    # -- pods and those who make them -----------------------------------------------------------

    async def _create_pod(
        self,
        name: str,
        claims: tuple[str, ...],
        namespace: str = DEFAULT,
        node: int | None = None,
        scheduler: str = "",
        extended: int = 0,
        priority: str = "",
        helper: bool = False,
    ) -> None:
        wanted = things.pod(name, claims, extended=extended)
        if helper:
            wanted["spec"]["containers"].append(things.helper())
        if priority:
            wanted["spec"]["priorityClassName"] = priority
        if node is not None:
            wanted["spec"]["nodeName"] = name_of(node)
        if scheduler:
            wanted["spec"]["schedulerName"] = scheduler
        await self._things.pods.create(wanted, namespace)

    async def _delete_pod(self, name: str, force: bool) -> None:
        await self._things.pods.delete(name, DEFAULT, grace_period_s=0 if force else None)

    async def _create_deployment(
        self, name: str, replicas: int, claims: tuple[str, ...], strategy: str
    ) -> None:
        await self._things.deployments.create(things.deployment(name, replicas, claims, strategy), DEFAULT)

    async def _create_large_pod(self, name: str, cpu: int, claims: tuple[str, ...]) -> None:
        wanted = things.pod(name, claims)
        wanted["spec"] = group_things.only_on_groups(wanted["spec"], cpu)
        await self._things.pods.create(wanted, DEFAULT)

    async def _create_surge(self, name: str, replicas: int, cpu: int, claims: tuple[str, ...]) -> None:
        wanted = things.deployment(name, replicas, claims, "RollingUpdate")
        template = wanted["spec"]["template"]
        template["spec"] = group_things.only_on_groups(template["spec"], cpu)
        await self._things.deployments.create(wanted, DEFAULT)

    async def _create_daemon_set(self, name: str, claims: tuple[str, ...]) -> None:
        await self._things.daemonsets.create(things.daemon_set(name, claims), DEFAULT)

    async def _create_stateful_set(
        self, name: str, replicas: int, claims: tuple[str, ...], policy: str
    ) -> None:
        await self._things.statefulsets.create(things.stateful_set(name, replicas, claims, policy), DEFAULT)

    async def _create_cron_job(self, name: str, minutes: int, policy: str) -> None:
        await self._things.cronjobs.create(things.cron_job(name, minutes, policy), DEFAULT)

    async def _create_job(
        self, name: str, completions: int, parallelism: int, claims: tuple[str, ...], mode: str
    ) -> None:
        await self._things.jobs.create(things.job(name, completions, parallelism, claims, mode), DEFAULT)

    async def _roll(self, kind: str, name: str, edition: int) -> None:
        labels = {"edition": str(edition)}
        patch = {"spec": {"template": {"metadata": {"labels": labels}}}}
        await self._things.of(kind).patch(name, patch, DEFAULT)

    async def _scale(self, name: str, replicas: int, kind: str = "deployments") -> None:
        await self._things.of(kind).scale(name, DEFAULT, replicas)

    async def _suspend(self, name: str, suspended: bool, kind: str = "jobs") -> None:
        await self._things.of(kind).patch(name, {"spec": {"suspend": suspended}}, DEFAULT)

    async def _delete(self, kind: str, name: str, policy: str) -> None:
        await self._things.of(kind).delete(name, DEFAULT, propagation=Propagation(policy))

    # -- namespaces, and what owns what ---------------------------------------------------------

    async def _create_namespace(self, name: str) -> None:
        await self._things.namespaces.create({"metadata": {"name": name}})
        await self._things.resourceclaimtemplates.create(things.template(), name)

    async def _delete_namespace(self, name: str) -> None:
        await self._things.namespaces.delete(name)

    async def _plant_tree(self, name: str, namespace: str = DEFAULT) -> None:
        """A root that is deleted one day, one that stays; a branch of each and one of both."""
        create = self._things.configmaps.create
        root = await create(things.configmap(f"{name}-root"), namespace)
        rock = await create(things.configmap(f"{name}-rock", kept=True), namespace)
        for branch, owners in (
            ("light", [_owner(root)]),
            ("heavy", [_owner(root, blocks=True)]),
            ("held", [_owner(root), _owner(rock)]),
            ("safe", [_owner(rock, blocks=True)]),
        ):
            kept = branch in ("held", "safe")
            await create(things.configmap(f"{name}-{branch}", owners, kept=kept), namespace)

    async def _fell_tree(self, name: str, policy: str) -> None:
        await self._things.configmaps.delete(f"{name}-root", DEFAULT, propagation=Propagation(policy))

    # -- claims ---------------------------------------------------------------------------------

    async def _create_claim(self, name: str) -> None:
        await self._things.resourceclaims.create(things.claim(name), DEFAULT)

    async def _delete_claim(self, name: str) -> None:
        await self._things.resourceclaims.delete(name, DEFAULT)

    async def _allocate_claim(self, name: str, node: int) -> None:
        """By hand, and for nobody."""
        claim = await self._things.resourceclaims.get(name, DEFAULT)
        given = [result for one in self._record.all("resourceclaims") for result in results(one)]
        taken = {one["device"] for one in given if one["pool"] == name_of(node)}
        offered = _on_offer(self._nodes.slices(name_of(node)))
        tainted = [one.fields["spec"]["deviceSelector"] for one in self._record.all("devicetaintrules")]
        unfit = any(one.get("pool", name_of(node)) == name_of(node) for one in tainted)
        free = [one for one in offered if one not in taken and not unfit]
        if free and not any(results(claim)):
            await give(self._things.resourceclaims, claim, allocation(name_of(node), free[0]), [])

    async def _steal_claim(self, replaced: bool, lot: int = 0, pod: str = "") -> None:
        """Delete a claim that was generated; perhaps put another one of that name in its place."""
        found = [one for one in self._record.all("resourceclaims") if _ENTRY in _annotations(one)]
        found = [one for one in found if not pod or one.name.startswith(f"{pod}-")]
        if not found:
            return
        claim = found[lot % len(found)]
        await self._things.resourceclaims.delete(claim.name, claim.namespace)
        for _ in range(20 if replaced else 0):
            try:
                await self._things.resourceclaims.create(things.claim(claim.name), claim.namespace)
                self._replaced.add(claim.name)
                return
            except errors.AlreadyExists:
                await asyncio.sleep(0.5)

    async def _copy_claim(self, lot: int) -> None:
        """A claim that was generated for a pod that stays is there once more: somebody wrote it back
        under another name, or whoever made it for the pod forgot that and made it again."""
        lasting = {one.uid for one in self._record.all("pods", DEFAULT) if _lasts(one)}
        claims = self._record.all("resourceclaims", DEFAULT)
        generated = [one for one in claims if _ENTRY in _annotations(one)]
        found = [one for one in generated if lasting.intersection(owner_uids(one))]
        if found:
            claim = found[lot % len(found)].fields
            kept = ("annotations", "ownerReferences")
            metadata = {part: claim["metadata"][part] for part in kept}
            metadata["name"] = f"{claim['metadata']['name']}-copy"
            await self._things.resourceclaims.create({"metadata": metadata, "spec": claim["spec"]}, DEFAULT)

    async def _reserve_for_an_outsider(self, lot: int) -> None:
        """A claim that is in use gets a consumer that is no pod, and that nobody here ever removes."""
        found = [one for one in self._record.all("resourceclaims", DEFAULT) if _is_shared(one)]
        if not found:
            return
        await self._list_outsider(found[lot % len(found)], lot)

    async def _list_outsider(self, claim: Object, lot: int) -> None:
        outsider = {"apiGroup": "example.com", "resource": "trainings", "name": "t", "uid": f"outsider-{lot}"}
        status = dict(claim.fields["status"])
        status["reservedFor"] = [*status["reservedFor"], outsider]
        await self._things.resourceclaims.update_status({**claim.fields, "status": status})

    async def _misuse_claim(self, owner: str, how: str, is_late: bool, lot: int) -> None:
        """Somebody helps himself to the claim that serves the extended resources of a pod, the moment that
        it has its devices, or once the pod is on its node."""
        claim = await self._special_claim(owner, is_late)
        if claim is None:
            return
        self.misused[f"{MISUSED}{how}, {'once' if is_late else 'before'} it was bound"] += 1
        if how == "list":
            await self._list_outsider(claim, lot)
        elif how == "list and delete the pod":
            deleting = self._delete_pod(owner, force=True)
            await asyncio.gather(self._list_outsider(claim, lot), deleting, return_exceptions=True)
        else:
            node = lot if how == "name, on a node" else None
            await self._create_pod(f"{owner}-stranger", (claim.name,), node=node)

    async def _special_claim(self, owner: str, is_late: bool) -> Object | None:
        """The claim for the extended resources of a pod, once it has devices. None if that takes long."""
        found: asyncio.Future[Object] = asyncio.get_running_loop().create_future()

        def look(*_: Seen) -> None:
            pod = self._record.get("pods", owner, DEFAULT)
            if pod is None or found.done() or (is_late and not pod.fields["spec"].get("nodeName")):
                return
            for claim in self._record.all("resourceclaims", DEFAULT):
                if _annotations(claim).get(EXTENDED_CLAIM) and _is_made_for(claim, pod) and _users(claim):
                    found.set_result(claim)
                    return

        stop = self._record.tell(look)
        look()
        try:
            async with asyncio.timeout(MISUSE_WITHIN_S):
                return await found
        except TimeoutError:
            return None
        finally:
            stop()

    async def _count(self, node: str, counts: Mapping[str, int]) -> None:
        self._nodes.count(node, counts)

    async def _spoil_capacity(self, node: str, how: str) -> None:
        """What an agent has published, somebody else deletes, empties or copies."""
        objects = self._classic.noderesourcecapacities
        for one in self._record.all("noderesourcecapacities"):
            if one.fields["nodeName"] != node:
                continue
            match how:
                case "delete":
                    await objects.delete(one.name)
                case "empty":
                    await objects.patch(one.name, {"instances": []})
                case "copy":
                    owners = one.fields["metadata"].get("ownerReferences") or []
                    metadata = {"name": f"{one.name}-copy", "ownerReferences": owners}
                    await objects.create({**one.fields, "metadata": metadata})

    async def _create_numeric_claim(self, name: str) -> None:
        await self._numeric.resourceclaims.create(numeric_things.claim(name), DEFAULT)

    # A leap of the clock makes several steps due at once: those about one class wait for each other, in the
    # order in which they begin (seeds 554, 722 and 1189).

    async def _create_numeric_class(self, name: str) -> None:
        async with self._turns[name]:
            await self._numeric.resourceclasses.create(numeric_things.resource_class(name))

    async def _publish_capacity(self, node: str, count: int | None) -> None:
        wanted = numeric_things.capacity(node, count)
        await self._numeric.capacities.patch(f"frob-{node}", {"instances": wanted["instances"]})

    async def _create_classic_claim(self, name: str) -> None:
        await self._classic.resourceclaims.create(classic_things.claim(name), DEFAULT)

    async def _create_resource_class(self, name: str) -> None:
        async with self._turns[name]:
            await self._classic.resourceclasses.create(classic_things.resource_class(name))

    async def _delete_resource_class(self, name: str) -> None:
        async with self._turns[name]:
            await self._classic.resourceclasses.delete(name)

    async def _create_card_pod(self, name: str, asked: dict[str, int], scheduler: str = "") -> None:
        wanted = things.pod(name)
        wanted["spec"]["containers"][0]["resources"] = compute_things.asking(asked)
        if scheduler:
            wanted["spec"]["schedulerName"] = scheduler
        await self._things.pods.create(wanted, DEFAULT)

    async def _create_card_class(self, name: str, types: tuple[str, ...] | None = None) -> None:
        async with self._turns[name]:
            await self._compute.classes.create(compute_things.resource_class(name, types))

    async def _change_card_class(self, name: str, types: tuple[str, ...] | None) -> None:
        spec = compute_things.resource_class(name, types)["spec"]
        async with self._turns[name]:
            known = await self._compute.classes.get(name)
            await self._compute.classes.update(known.changed({"spec": {"resourceSelector": None, **spec}}))

    async def _delete_card_class(self, name: str) -> None:
        async with self._turns[name]:
            await self._compute.classes.delete(name)

    async def _export_cards(self, node: int, sick: int, renamed: bool) -> None:
        await self._nodes.export(name_of(node), compute_things.exported(sick, renamed))

    async def _delete_podscheduling(self, lot: int) -> None:
        found = self._record.all("podschedulings")
        if found:
            one = found[lot % len(found)]
            await self._classic.podschedulings.delete(one.name, one.namespace)

    async def _leave_podscheduling(self, lot: int) -> None:
        pods = [one for one in self._record.all("pods", DEFAULT) if classic_things.is_left_by_ours(one)]
        if pods:
            body = classic_things.left_behind(pods[lot % len(pods)])
            await self._classic.podschedulings.create(body, DEFAULT)

    async def _create_template(self, edition: int) -> None:
        await self._things.resourceclaimtemplates.create(things.template(edition), DEFAULT)
        if edition == 1:
            await self._things.resourceclaimtemplates.create(things.template(edition), QUOTAS)

    async def _delete_template(self) -> None:
        await self._things.resourceclaimtemplates.delete(things.TEMPLATE, DEFAULT)

    # -- quotas ---------------------------------------------------------------------------------

    async def _create_quota(self, hard: int) -> None:
        await self._things.resourcequotas.create(things.quota("limits", HARDS[hard]), QUOTAS)

    async def _change_quota(self, hard: int) -> None:
        spec: Fields = dict(things.quota("limits", HARDS[hard])["spec"])
        known = self._record.get("resourcequotas", "limits", QUOTAS)
        if known is not None:
            await self._things.resourcequotas.update({**known.fields, "spec": spec})

    async def _rename_class(self, extended: str) -> None:
        patch = {"spec": {"extendedResourceName": extended or None}}
        await self._things.deviceclasses.patch(things.CLASS, patch)

    async def _rush(self, name: str, many: int, lot: int) -> None:
        """So many want something at the same moment."""

        async def one(number: int) -> None:
            wanted, way = f"{name}-{number}", self._ways[number % len(self._ways)]
            try:
                match (lot + number) % 4:
                    case 0:
                        await way.resourceclaims.create(things.claim(wanted), QUOTAS)
                    case 1:
                        await way.pods.create(things.pod(wanted, extended=1), QUOTAS)
                    case 2:
                        await way.pods.create(things.pod(wanted, ("own",)), QUOTAS)
                    case 3:
                        await way.configmaps.create(things.configmap(wanted), QUOTAS)
                        await way.pods.create(things.pod(wanted, extended=2), QUOTAS)
            except _LET_BE:
                return

        await asyncio.gather(*(one(number) for number in range(many)))

    async def _clear_out(self, lot: int) -> None:
        """Some of it goes, and whatever waits for a claim that it cannot have."""
        for kind in ("pods", "resourceclaims", "configmaps"):
            found = [one for one in self._record.all(kind, QUOTAS) if one.name.startswith("rush-")]
            found = [one for one in found if one.name not in self._replaced]
            waiting = [one for one in found if _waits_for_claim(one)]
            for one in [*waiting, *[one for one in found if one not in waiting][lot % 3 :: 2]]:
                try:
                    await self._things.of(kind).delete(one.name, QUOTAS)
                except _LET_BE:
                    continue

    # -- nodes and drivers ----------------------------------------------------------------------

    async def _lose_node(self, node: int) -> None:
        await self._nodes.lose(name_of(node))

    async def _lose_group_node(self, lot: int) -> None:
        if self._groups is not None:
            await self._groups.vanish(lot)

    async def _return_node(self, node: int) -> None:
        await self._nodes.join(name_of(node))

    async def _silence_node(self, node: int) -> None:
        self._nodes.silence(name_of(node))

    async def _hear_node(self, node: int) -> None:
        self._nodes.hear(name_of(node))

    async def _publish(self, node: int, generation: int, devices: int, pause_s: float) -> None:
        """A driver publishes its pool anew, with more devices or fewer."""
        if self._nodes.is_up(name_of(node)):
            await self._nodes.publish(name_of(node), devices, generation, pause_s)

    async def _taint(self, name: str, what: str, lot: int, effect: str) -> None:
        """A device that is in use, best by a pod that stays, if there is one; or its pool, or all."""
        lasting = {one.uid for one in self._record.all("pods") if _lasts(one)}
        claims = self._record.all("resourceclaims")
        kept = [one for one in claims if any(user["uid"] in lasting for user in _users(one))]
        held = [one for claim in kept or claims for one in results(claim)]
        idle = {"driver": things.DRIVER, "pool": name_of(lot), "device": f"gpu-{lot % 4}"}
        rule = things.taint_rule(name, held[lot % len(held)] if held else idle, what, effect)
        await self._things.devicetaintrules.create(rule)

    async def _lift_taint(self, name: str) -> None:
        await self._things.devicetaintrules.delete(name)


def _owner(of: Object, *, blocks: bool = False) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": of.name, "uid": of.uid}
    return {**reference, "blockOwnerDeletion": True} if blocks else reference


def _on_offer(slices: Sequence[Object]) -> list[str]:
    """The devices of a pool, if its newest generation is complete (D3)."""
    pools = [one.fields["spec"]["pool"] for one in slices]
    newest = max((pool["generation"] for pool in pools), default=0)
    current = [one.fields["spec"] for one in slices if one.fields["spec"]["pool"]["generation"] == newest]
    if not current or len(current) != current[0]["pool"]["resourceSliceCount"]:
        return []
    return [device["name"] for spec in current for device in spec.get("devices") or ()]


def _annotations(one: Object) -> Mapping[str, str]:
    return one.metadata.annotations or {}


def _lasts(pod: Object) -> bool:
    return bool(pod.fields["spec"]["restartPolicy"] == "Always")


def _users(claim: Object) -> Sequence[Any]:
    return (claim.fields.get("status") or {}).get("reservedFor") or ()


def _is_made_for(claim: Object, pod: Object) -> bool:
    return pod.uid in owner_uids(claim)


def _is_shared(claim: Object) -> bool:
    """In use, and made for nobody in particular."""
    owned = claim.fields["metadata"].get("ownerReferences")
    return bool((claim.fields.get("status") or {}).get("reservedFor")) and not owned


def _waits_for_claim(pod: Object) -> bool:
    wanted = (pod.fields.get("spec") or {}).get("resourceClaims")
    return bool(wanted) and not (pod.fields.get("status") or {}).get("resourceClaimStatuses")
