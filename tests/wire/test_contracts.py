"""Names that travel: what a kubelet of Kubernetes calls, letter by letter."""

from allot.wire import classic, cloudprovider, cri, deviceplugin, dra, health, podresources, registration

PATHS = """
    /pluginregistration.Registration/GetInfo
    /pluginregistration.Registration/NotifyRegistrationStatus
    /k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources
    /k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources
    /k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources
    /k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources
    /v1alpha1.Node/NodePrepareResource
    /v1alpha1.Node/NodeUnprepareResource
    /v1.DRAResourceHealth/NodeWatchResources
    /v1alpha1.DRAResourceHealth/NodeWatchResources
    /v1.PodResourcesLister/List
    /v1.PodResourcesLister/Get
    /v1.PodResourcesLister/GetAllocatableResources
    /v1alpha1.PodResourcesLister/List
    /v1beta1.Registration/Register
    /v1beta1.DevicePlugin/GetDevicePluginOptions
    /v1beta1.DevicePlugin/ListAndWatch
    /v1beta1.DevicePlugin/GetPreferredAllocation
    /v1beta1.DevicePlugin/Allocate
    /v1beta1.DevicePlugin/PreStartContainer
    /runtime.v1.RuntimeService/Version
    /runtime.v1.RuntimeService/Status
    /runtime.v1.RuntimeService/RunPodSandbox
    /runtime.v1.RuntimeService/StopPodSandbox
    /runtime.v1.RuntimeService/RemovePodSandbox
    /runtime.v1.RuntimeService/ListPodSandbox
    /runtime.v1.RuntimeService/PodSandboxStatus
    /runtime.v1.RuntimeService/CreateContainer
    /runtime.v1.RuntimeService/StartContainer
    /runtime.v1.RuntimeService/StopContainer
    /runtime.v1.RuntimeService/RemoveContainer
    /runtime.v1.RuntimeService/ListContainers
    /runtime.v1.RuntimeService/ContainerStatus
    /runtime.v1.RuntimeService/ReopenContainerLog
    /runtime.v1.RuntimeService/GetContainerEvents
    /runtime.v1.RuntimeService/ExecSync
    /runtime.v1.RuntimeService/Exec
    /runtime.v1.RuntimeService/Attach
    /runtime.v1.RuntimeService/PortForward
    /runtime.v1.RuntimeService/ListContainerStats
    /runtime.v1.ImageService/ImageStatus
    /runtime.v1.ImageService/PullImage
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroups
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupForNode
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/PricingNodePrice
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/PricingPodPrice
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/GPULabel
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/GetAvailableGPUTypes
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/Cleanup
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/Refresh
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupTargetSize
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupIncreaseSize
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupDeleteNodes
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupDecreaseTargetSize
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupNodes
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupTemplateNodeInfo
    /clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupGetOptions
"""


def test_the_paths_of_methods_are_upstreams():
    methods = (
        registration.GET_INFO,
        registration.NOTIFY,
        dra.V1.prepare,
        dra.V1.unprepare,
        dra.V1BETA1.prepare,
        dra.V1BETA1.unprepare,
        classic.PREPARE,
        classic.UNPREPARE,
        health.V1.watch,
        health.V1ALPHA1.watch,
        podresources.LIST,
        podresources.GET,
        podresources.GET_ALLOCATABLE,
        podresources.LIST_V1ALPHA1,
        deviceplugin.REGISTER,
        deviceplugin.GET_OPTIONS,
        deviceplugin.LIST_AND_WATCH,
        deviceplugin.GET_PREFERRED,
        deviceplugin.ALLOCATE,
        deviceplugin.PRE_START,
        cri.GET_VERSION,
        cri.GET_STATUS,
        cri.RUN_SANDBOX,
        cri.STOP_SANDBOX,
        cri.REMOVE_SANDBOX,
        cri.LIST_SANDBOXES,
        cri.SANDBOX_STATUS,
        cri.CREATE,
        cri.START,
        cri.STOP,
        cri.REMOVE,
        cri.LIST,
        cri.CONTAINER_STATUS,
        cri.REOPEN_LOG,
        cri.EVENTS,
        cri.EXEC_SYNC,
        cri.EXEC,
        cri.ATTACH,
        cri.PORT_FORWARD,
        cri.STATS,
        cri.IMAGE_STATUS,
        cri.PULL,
        cloudprovider.GROUPS,
        cloudprovider.GROUP_FOR_NODE,
        cloudprovider.NODE_PRICE,
        cloudprovider.POD_PRICE,
        cloudprovider.GPU_LABEL,
        cloudprovider.GPU_TYPES,
        cloudprovider.CLEANUP,
        cloudprovider.REFRESH,
        cloudprovider.TARGET_SIZE,
        cloudprovider.INCREASE,
        cloudprovider.DELETE_NODES,
        cloudprovider.DECREASE,
        cloudprovider.NODES,
        cloudprovider.TEMPLATE,
        cloudprovider.OPTIONS,
    )
    assert [method.path for method in methods] == PATHS.split()


def test_versions_are_called_otherwise_in_a_registration():
    names = [version.name for version in (*dra.VERSIONS, *health.VERSIONS)]
    assert names == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]


def test_v1alpha1_shows_devices_of_device_plugins_only():
    devices = (podresources.ContainerDevices("x/gpu", ("0",)),)
    claims = (podresources.DynamicResource("a"),)
    container = podresources.ContainerResources("c", devices, cpu_ids=(1,), dynamic_resources=claims)
    pod = podresources.PodResources("p", "ns", (container,), cpu_ids=(1,))
    shown = podresources.as_v1alpha1(podresources.ListPodResourcesResponse((pod,)))
    old = podresources.OldContainerResources("c", (podresources.OldContainerDevices("x/gpu", ("0",)),))
    assert shown.pod_resources == (podresources.OldPodResources("p", "ns", (old,)),)


def test_a_health_message_is_cut_at_1024_characters():
    assert health.bounded("a" * 1024) == "a" * 1024
    assert health.bounded("a" * 1025) == "a" * 1021 + "..."
