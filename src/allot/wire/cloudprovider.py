"""What an autoscaler asks whoever has nodes to give: Kubernetes' cluster autoscaler's external gRPC provider.

A provider has groups of nodes; a group has a target size, which is raised by a number and lowered by naming
nodes. What a new node would be is a Node in protobuf, and the slices that its drivers would publish.

Two ages of the contract are in use. Where they differ a field has two numbers, and both are written: objects
and times lay in the message itself (`node_info`, `start_time`) before they were bytes and Google's own types.
Pricing, templates, GPU types and options may be UNIMPLEMENTED.
"""

from enum import IntEnum
from typing import Annotated, Final

from msgspec import field

from .channel import Unary
from .message import Message

SERVICE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"


class InstanceState(IntEnum):
    UNSPECIFIED = 0
    RUNNING = 1
    CREATING = 2
    DELETING = 3


class Any(Message, frozen=True):
    type_url: Annotated[str, 1] = ""
    value: Annotated[bytes, 2] = b""


class Moment(Message, frozen=True):
    """Google's Timestamp and Duration, and Kubernetes' Time: all three have these fields."""

    seconds: Annotated[int, 1] = 0
    nanos: Annotated[int, 2] = 0


class Nanoseconds(Message, frozen=True):
    """Kubernetes' Duration."""

    duration: Annotated[int, 1] = 0


class NodeGroup(Message, frozen=True):
    id: Annotated[str, 1] = ""
    min_size: Annotated[int, 2] = 0
    max_size: Annotated[int, 3] = 0
    debug: Annotated[str, 4] = ""


class ExternalGrpcNode(Message, frozen=True):
    provider_id: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    labels: Annotated[dict[str, str], 3] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 4] = field(default_factory=dict)


class NodeGroupsRequest(Message, frozen=True):
    pass


class NodeGroupsResponse(Message, frozen=True):
    node_groups: Annotated[tuple[NodeGroup, ...], 1] = ()


class NodeGroupForNodeRequest(Message, frozen=True):
    node: Annotated[ExternalGrpcNode | None, 1] = None


class NodeGroupForNodeResponse(Message, frozen=True):
    node_group: Annotated[NodeGroup | None, 1] = None  # without an id: the node is in no group


class PricingNodePriceRequest(Message, frozen=True):
    node: Annotated[ExternalGrpcNode | None, 1] = None
    start_time: Annotated[Moment | None, 2] = None
    end_time: Annotated[Moment | None, 3] = None
    start_timestamp: Annotated[Moment | None, 4] = None
    end_timestamp: Annotated[Moment | None, 5] = None


class PricingNodePriceResponse(Message, frozen=True):
    price: Annotated[float, 1] = 0.0


class PricingPodPriceRequest(Message, frozen=True):
    pod: Annotated[bytes, 1] = b""
    start_time: Annotated[Moment | None, 2] = None
    end_time: Annotated[Moment | None, 3] = None
    pod_bytes: Annotated[bytes, 4] = b""
    start_timestamp: Annotated[Moment | None, 5] = None
    end_timestamp: Annotated[Moment | None, 6] = None


class PricingPodPriceResponse(Message, frozen=True):
    price: Annotated[float, 1] = 0.0


class GPULabelRequest(Message, frozen=True):
    pass


class GPULabelResponse(Message, frozen=True):
    label: Annotated[str, 1] = ""


class GetAvailableGPUTypesRequest(Message, frozen=True):
    pass


class GetAvailableGPUTypesResponse(Message, frozen=True):
    gpu_types: Annotated[dict[str, Any], 1] = field(default_factory=dict)


class CleanupRequest(Message, frozen=True):
    pass


class CleanupResponse(Message, frozen=True):
    pass


class RefreshRequest(Message, frozen=True):
    pass


class RefreshResponse(Message, frozen=True):
    pass


class NodeGroupTargetSizeRequest(Message, frozen=True):
    id: Annotated[str, 1] = ""


class NodeGroupTargetSizeResponse(Message, frozen=True):
    target_size: Annotated[int, 1] = 0


class NodeGroupIncreaseSizeRequest(Message, frozen=True):
    delta: Annotated[int, 1] = 0
    id: Annotated[str, 2] = ""


class NodeGroupIncreaseSizeResponse(Message, frozen=True):
    pass


class NodeGroupDeleteNodesRequest(Message, frozen=True):
    nodes: Annotated[tuple[ExternalGrpcNode, ...], 1] = ()
    id: Annotated[str, 2] = ""


class NodeGroupDeleteNodesResponse(Message, frozen=True):
    pass


class NodeGroupDecreaseTargetSizeRequest(Message, frozen=True):
    delta: Annotated[int, 1] = 0  # below zero
    id: Annotated[str, 2] = ""


class NodeGroupDecreaseTargetSizeResponse(Message, frozen=True):
    pass


class NodeGroupNodesRequest(Message, frozen=True):
    id: Annotated[str, 1] = ""


class InstanceErrorInfo(Message, frozen=True):
    error_code: Annotated[str, 1] = ""  # empty: no error
    error_message: Annotated[str, 2] = ""
    instance_error_class: Annotated[int, 3] = 0


class InstanceStatus(Message, frozen=True):
    instance_state: Annotated[InstanceState, 1] = InstanceState.UNSPECIFIED
    error_info: Annotated[InstanceErrorInfo | None, 2] = None


class Instance(Message, frozen=True):
    id: Annotated[str, 1] = ""  # a node's `providerID`
    status: Annotated[InstanceStatus | None, 2] = None


class NodeGroupNodesResponse(Message, frozen=True):
    instances: Annotated[tuple[Instance, ...], 1] = ()


class NodeGroupTemplateNodeInfoRequest(Message, frozen=True):
    id: Annotated[str, 1] = ""


class NodeGroupTemplateNodeInfoResponse(Message, frozen=True):
    node_info: Annotated[bytes, 1] = b""
    node_bytes: Annotated[bytes, 2] = b""
    resource_slice_bytes: Annotated[tuple[bytes, ...], 3] = ()


class NodeGroupAutoscalingOptions(Message, frozen=True):
    scale_down_utilization_threshold: Annotated[float, 1] = 0.0
    scale_down_gpu_utilization_threshold: Annotated[float, 2] = 0.0
    scale_down_unneeded_time: Annotated[Nanoseconds | None, 3] = None
    scale_down_unready_time: Annotated[Nanoseconds | None, 4] = None
    max_node_provision_time: Annotated[Nanoseconds | None, 5] = None
    zero_or_max_node_scaling: Annotated[bool, 6] = False
    ignore_daemon_sets_utilization: Annotated[bool, 7] = False
    scale_down_unneeded_duration: Annotated[Moment | None, 8] = None
    scale_down_unready_duration: Annotated[Moment | None, 9] = None
    max_node_provision_duration: Annotated[Moment | None, 10] = None
    max_node_startup_duration: Annotated[Moment | None, 11] = None
    allow_non_atomic_scale_up_to_max: Annotated[bool, 12] = False


class NodeGroupAutoscalingOptionsRequest(Message, frozen=True):
    id: Annotated[str, 1] = ""
    defaults: Annotated[NodeGroupAutoscalingOptions | None, 2] = None


class NodeGroupAutoscalingOptionsResponse(Message, frozen=True):
    node_group_autoscaling_options: Annotated[NodeGroupAutoscalingOptions | None, 1] = None


GROUPS: Final = Unary(SERVICE, "NodeGroups", NodeGroupsRequest, NodeGroupsResponse)
GROUP_FOR_NODE: Final = Unary(SERVICE, "NodeGroupForNode", NodeGroupForNodeRequest, NodeGroupForNodeResponse)
NODE_PRICE: Final = Unary(SERVICE, "PricingNodePrice", PricingNodePriceRequest, PricingNodePriceResponse)
POD_PRICE: Final = Unary(SERVICE, "PricingPodPrice", PricingPodPriceRequest, PricingPodPriceResponse)
GPU_LABEL: Final = Unary(SERVICE, "GPULabel", GPULabelRequest, GPULabelResponse)
GPU_TYPES: Final = Unary(
    SERVICE, "GetAvailableGPUTypes", GetAvailableGPUTypesRequest, GetAvailableGPUTypesResponse
)
CLEANUP: Final = Unary(SERVICE, "Cleanup", CleanupRequest, CleanupResponse)
REFRESH: Final = Unary(SERVICE, "Refresh", RefreshRequest, RefreshResponse)
TARGET_SIZE: Final = Unary(
    SERVICE, "NodeGroupTargetSize", NodeGroupTargetSizeRequest, NodeGroupTargetSizeResponse
)
INCREASE: Final = Unary(
    SERVICE, "NodeGroupIncreaseSize", NodeGroupIncreaseSizeRequest, NodeGroupIncreaseSizeResponse
)
DELETE_NODES: Final = Unary(
    SERVICE, "NodeGroupDeleteNodes", NodeGroupDeleteNodesRequest, NodeGroupDeleteNodesResponse
)
DECREASE: Final = Unary(
    SERVICE,
    "NodeGroupDecreaseTargetSize",
    NodeGroupDecreaseTargetSizeRequest,
    NodeGroupDecreaseTargetSizeResponse,
)
NODES: Final = Unary(SERVICE, "NodeGroupNodes", NodeGroupNodesRequest, NodeGroupNodesResponse)
TEMPLATE: Final = Unary(
    SERVICE,
    "NodeGroupTemplateNodeInfo",
    NodeGroupTemplateNodeInfoRequest,
    NodeGroupTemplateNodeInfoResponse,
)
OPTIONS: Final = Unary(
    SERVICE, "NodeGroupGetOptions", NodeGroupAutoscalingOptionsRequest, NodeGroupAutoscalingOptionsResponse
)
