"""Pods, nodes and their neighbours as typed views: what schedulers, controllers and agents read.

Not every field has a name here; add one when logic needs it. A view is only ever
read (see `meta`), so what it leaves out is not lost. Amounts stay the strings
that were written (`Quantity.parse` reads them) and times stay RFC 3339 strings,
so a view costs no more than its JSON.
"""

from collections.abc import Mapping

import msgspec

from .meta import Condition, LabelSelector, NodeSelector, NodeSelectorTerm, ObjectMeta, View

Amount = str
"""A quantity as written, e.g. "80Gi"."""

# -- containers ---------------------------------------------------------------------------------


class ClaimUse(View, frozen=True):
    """A claim of the pod, or one request of it, that a container may use."""

    name: str = ""
    request: str = ""


class ResourceRequirements(View, frozen=True):
    requests: Mapping[str, Amount] = {}
    limits: Mapping[str, Amount] = {}
    claims: tuple[ClaimUse, ...] = ()


class ContainerPort(View, frozen=True):
    name: str = ""
    host_port: int = 0


class AllocatedResource(View, frozen=True):
    """Devices of one compute resource of the node; of a group also which member, and native amounts."""

    compute_resource_name: str = ""
    count: int = 0
    member: int | None = None
    resource_name: str = ""
    amount: Amount = ""


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    allocated_compute_resources: Mapping[str, tuple[AllocatedResource, ...]] = {}
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Of an init container: it keeps running beside the others."""
        return self.restart_policy == "Always"


# -- where a pod may go -------------------------------------------------------------------------


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = ""  # "" means Equal
    value: str = ""
    effect: str = ""  # "" means every effect
    toleration_seconds: int | None = None


class Taint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""

    def is_tolerated_by(self, toleration: Toleration) -> bool:
        if toleration.effect and toleration.effect != self.effect:
            return False
        if toleration.key and toleration.key != self.key:
            return False
        if toleration.operator == "Exists":
            return True
        return toleration.operator in ("", "Equal") and toleration.value == self.value


class PreferredNodes(View, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(View, frozen=True):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[PreferredNodes, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(View, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()


class PodAffinity(View, frozen=True):
    """Of affinity and of anti-affinity: the shape is the same."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(View, frozen=True):
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None


class SchedulingGate(View, frozen=True):
    name: str = ""


class PodClaim(View, frozen=True):
    """A claim that the pod names or has made for it."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Mapping[str, Amount] = {}
    resource_claims: tuple[PodClaim, ...] = ()
    node_name: str = ""
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""


# -- how a pod stands ---------------------------------------------------------------------------


class TerminatedState(View, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str = ""


class WaitingState(View, frozen=True):
    reason: str = ""
    message: str = ""


class RunningState(View, frozen=True):
    """That it is there says it all."""


class ContainerState(View, frozen=True):
    """At most one of these is set."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(View, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodClaimStatus(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None  # None: deliberately not made


class RequestMapping(View, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(View, frozen=True):
    resource_claim_name: str = ""
    request_mappings: tuple[RequestMapping, ...] = ()


class PodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: str = ""
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        """It has ended and will not run again."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


# -- nodes --------------------------------------------------------------------------------------


class NodeAddress(View, frozen=True):
    type: str = ""
    address: str = ""


class NodeCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str = ""
    last_transition_time: str = ""


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ComputeResource(View, frozen=True):
    """Devices of one raw name with the same properties."""

    name: str = ""
    resource_name: str = ""
    properties: Mapping[str, str] = {}
    devices: tuple[str, ...] = ()
    allocatable_devices: tuple[str, ...] = ()


class NodeStatus(View, frozen=True):
    capacity: Mapping[str, Amount] = {}
    allocatable: Mapping[str, Amount] = {}
    compute_resources: tuple[ComputeResource, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


# -- the rest of what pods live among -----------------------------------------------------------


class NamespaceStatus(View, frozen=True):
    phase: str = ""


class Namespace(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class PodDisruptionBudgetSpec(View, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(View, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: Mapping[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Of a pod in its namespace. Without a selector it covers none, with an empty one all."""
        return self.spec.selector is not None and self.spec.selector.selects(labels)


class PriorityClass(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
