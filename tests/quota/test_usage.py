"""What one object uses."""

import pytest

from allot.quota import PODS, sources
from quota.objects import asking, container, plain, pod, used

VOLUME = {"storageClassName": "fast", "resources": {"requests": {"storage": "10Gi"}}}


def compute(subject):
    return {name: amount for name, amount in used(subject).items() if name in ("cpu", "memory", "limits.cpu")}


def test_objects_count_under_a_name_made_of_their_kind():
    assert used(plain("deployments", "apps")) == {"count/deployments.apps": "1"}
    assert used(plain("widgets", "example.com")) == {"count/widgets.example.com": "1"}
    assert used(plain("serviceaccounts")) == {"count/serviceaccounts": "1"}


@pytest.mark.parametrize("plural", ["configmaps", "secrets", "replicationcontrollers", "resourcequotas"])
def test_kinds_with_names_of_their_own_count_under_both(plural):
    assert used(plain(plural)) == {f"count/{plural}": "1", plural: "1"}


def test_events_are_never_counted():
    assert used(plain("events")) == used(plain("events", "events.k8s.io")) == {}


def test_containers_add_up():
    found = used(pod(container(cpu="500m", memory="1Gi"), container("b", limits={"cpu": "2"}, cpu="1")))
    assert found == {
        "count/pods": "1", "pods": "1", "cpu": "1500m", "requests.cpu": "1500m",
        "memory": "1Gi", "requests.memory": "1Gi", "limits.cpu": "2",
    }  # fmt: skip


def test_an_init_container_counts_only_where_it_needs_more():
    init = [container("setup", cpu="3", memory="1Gi")]
    found = compute(pod(container(cpu="1", memory="2Gi"), initContainers=init))
    assert found == {"cpu": "3", "memory": "2Gi"}


def test_a_sidecar_stays_beside_what_comes_after_it():
    """A sidecar of 1, then a setup of 3 beside it: 4 for a while, more than the 3 of the running pod."""
    sidecar = {**container("proxy", cpu="1"), "restartPolicy": "Always"}
    after = [sidecar, container("setup", cpu="3")]
    before = [container("setup", cpu="3"), sidecar]
    assert compute(pod(container(cpu="2"), initContainers=after)) == {"cpu": "4"}
    assert compute(pod(container(cpu="2"), initContainers=before)) == {"cpu": "3"}


def test_what_the_pod_says_as_a_whole_replaces_the_sum():
    whole = {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}
    found = compute(pod(container(cpu="1"), container("b", cpu="500m"), resources=whole))
    assert found == {"cpu": "2", "limits.cpu": "4"}


def test_overhead_comes_on_top_and_limits_nothing_by_itself():
    found = compute(pod(container(cpu="1"), overhead={"cpu": "250m", "memory": "64Mi"}))
    assert found == {"cpu": "1250m", "memory": "64Mi"}
    found = compute(pod(container(limits={"cpu": "1"}, cpu="1"), overhead={"cpu": "250m"}))
    assert found["limits.cpu"] == "1250m"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_an_object_and_uses_nothing(phase):
    assert used(pod(container(cpu="1"), phase=phase)) == {"count/pods": "1"}


def test_extended_resources_count_as_requests_and_never_as_limits():
    """Rule 6.4: pods count under `requests.<extended resource>`, the implicit names included."""
    name = "deviceclass.resource.kubernetes.io/gpu.example.com"
    found = used(pod(asking({"example.com/nic": "2", name: "1"})))
    assert found == {
        "count/pods": "1",
        "pods": "1",
        "requests.example.com/nic": "2",
        "example.com/nic": "2",  # as quotas of KEP-14 write it
        f"requests.{name}": "1",
        name: "1",
        "gpu.example.com.deviceclass.resource.k8s.io/devices": "1",  # the same device, KEP-5004
    }


def test_huge_pages_count_with_and_without_their_prefix():
    found = used(pod(asking({"hugepages-2Mi": "4Mi"})))
    assert (found["hugepages-2Mi"], found["requests.hugepages-2Mi"]) == ("4Mi", "4Mi")


def test_services_use_ports_and_load_balancers():
    ports = [{"port": 80}, {"port": 443, "nodePort": 30443}]
    node = used(plain("services", spec={"type": "NodePort", "ports": ports}))
    assert (node["services.nodeports"], node["services.loadbalancers"]) == ("2", "0")
    spec = {"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": False}
    balanced = used(plain("services", spec=spec))
    assert (balanced["services.nodeports"], balanced["services.loadbalancers"]) == ("1", "1")


def test_volume_claims_use_space_of_their_class():
    assert used(plain("persistentvolumeclaims", spec=VOLUME)) == {
        "count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "10Gi",
        "fast.storageclass.storage.k8s.io/requests.storage": "10Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "subject",
    [
        pod(asking({"cpu": "1", "memory": "1", "ephemeral-storage": "1", "hugepages-2Mi": "2Mi"})),
        pod(asking({"example.com/gpu": "1"})),
        plain("persistentvolumeclaims", spec=VOLUME),
        plain("services", spec={"type": "NodePort", "ports": [{}]}),
        plain("secrets"),
        plain("widgets", "example.com"),
    ],
    ids=lambda subject: subject.source.plural,
)  # fmt: skip
def test_whoever_uses_something_is_known_to_use_it(subject):
    """A controller follows the kinds that `sources` names, and would miss any other."""
    assert all(subject.source in sources(name) for name in used(subject))


def test_pods_count_under_the_names_of_classes():
    """14-QUOTA-01: so a quota with such a name is worked out anew when pods come and go."""
    for name in ("gpu-gold", "requests.gpu-gold"):
        assert sources(name) == (PODS,)
    assert PODS in sources("resourceclass.compute.allot.dev/gpu-gold")
    assert sources("limits.gpu-gold") == ()
