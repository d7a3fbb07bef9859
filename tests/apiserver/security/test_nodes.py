"""S5: nodes see and touch only their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Action, User
from allot.apiserver.security import identities, refuse_node
from allot.apiserver.security.node_authorizer import NodeAuthorizer
from allot.apiserver.security.node_graph import NodeGraph
from allot.apiserver.security.pod_references import Ref

N1, N2 = identities.node("n1"), identities.node("n2")
RESOURCE = "resource.k8s.io"


def pod(name="web", node="n1", namespace="dev", uid="", **changed):
    spec = {"nodeName": node, "containers": [], **changed.pop("spec", {})}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        **changed.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": spec, **changed}


def nodes(*pods):
    found = NodeAuthorizer()
    for fields in pods:
        found.observe("", "pods", fields["metadata"]["namespace"], fields["metadata"]["name"], fields)
    return found


def may(found, user, verb, resource, namespace="dev", name="", group="", subresource="", selector=""):
    action = Action(verb, group, resource, subresource, namespace, name, field_selector=selector)
    return found.authorize(user, action).allowed


WANTS = pod(
    spec={
        "serviceAccountName": "bot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [
            {
                "env": [{"valueFrom": {"secretKeyRef": {"name": "env-secret"}}}],
                "envFrom": [{"configMapRef": {"name": "env-map"}}],
            }
        ],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "init-secret"}}]}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "mounted"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
            {"name": "c", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "e", "ephemeral": {}},
        ],
        "resourceClaims": [
            {"name": "x", "resourceClaimName": "by-name"},
            {"name": "y", "resourceClaimTemplateName": "template"},
        ],
    },
    status={
        "resourceClaimStatuses": [{"name": "y", "resourceClaimName": "generated"}, {"name": "skipped"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": []},
    },
)


@pytest.mark.parametrize("name", ["pull", "env-secret", "init-secret", "mounted", "projected", "csi"])
def test_a_node_reads_the_secrets_that_its_pods_name(name):
    found = nodes(WANTS)
    assert may(found, N1, "get", "secrets", name=name)
    assert may(found, N1, "watch", "secrets", name=name)
    assert not may(found, N2, "get", "secrets", name=name)
    assert not may(found, N1, "update", "secrets", name=name)
    assert not may(found, N1, "get", "secrets", "prod", name)


@pytest.mark.parametrize("name", ["by-name", "generated", "extended"])
def test_a_node_reads_the_claims_of_its_pods_and_never_writes_them(name):
    found = nodes(WANTS)
    assert may(found, N1, "get", "resourceclaims", name=name, group=RESOURCE)
    assert not may(found, N2, "get", "resourceclaims", name=name, group=RESOURCE)
    for verb in ("list", "watch", "update", "patch", "delete"):
        assert not may(found, N1, verb, "resourceclaims", name=name, group=RESOURCE)
    assert not may(found, N1, "update", "resourceclaims", name=name, group=RESOURCE, subresource="status")
    assert not may(found, N1, "get", "resourceclaims", name="other", group=RESOURCE)


def test_a_node_reads_classic_claims_and_their_classes_and_writes_nothing_of_them():
    """3063-RISK-03, 3063-KCM-09: nor what scheduler and drivers tell each other, which it has no use for."""
    found = nodes(WANTS)
    assert may(found, N1, "get", "resourceclaims", name="generated", group=RESOURCE)
    assert may(found, N1, "get", "resourceclasses", namespace="", name="gpu", group=RESOURCE)
    for resource in ("resourceclasses", "resourceclaims", "resourceclaimtemplates", "podschedulings"):
        for verb in ("create", "update", "patch", "delete", "deletecollection"):
            for subresource in ("", "status", "driver", "binding"):
                asked = {"name": "generated", "group": RESOURCE, "subresource": subresource}
                assert not may(found, N1, verb, resource, **asked), (verb, resource, subresource)


def test_when_the_last_pod_goes_so_do_the_paths_through_it():
    found = nodes(WANTS, pod("second", spec={"serviceAccountName": "bot"}))
    found.observe("", "pods", "dev", "web", None)
    assert may(found, N1, "create", "serviceaccounts", name="bot", subresource="token")
    assert not may(found, N1, "get", "secrets", name="pull")
    found.observe("", "pods", "dev", "second", None)
    assert not may(found, N1, "create", "serviceaccounts", name="bot", subresource="token")


def test_a_pod_without_a_node_opens_nothing():
    assert not may(nodes(pod(node="")), N1, "get", "pods", name="web")


def test_a_mirror_pod_opens_no_path_but_its_own():
    """GRAPH2: otherwise a node could grant itself any secret by naming it."""
    mirror = pod(
        metadata={"annotations": {"kubernetes.io/config.mirror": "x"}},
        spec={"imagePullSecrets": [{"name": "s"}]},
    )
    found = nodes(mirror)
    assert may(found, N1, "get", "pods", name="web")
    assert not may(found, N1, "get", "secrets", name="s")


def test_a_volume_and_its_secrets_are_reached_through_its_claim():
    found = nodes(WANTS)
    volume = {
        "spec": {
            "claimRef": {"namespace": "dev", "name": "disk"},
            "csi": {"nodeStageSecretRef": {"namespace": "infra", "name": "key"}},
        }
    }
    assert not may(found, N1, "get", "persistentvolumes", "", "pv")
    found.observe("", "persistentvolumes", "", "pv", volume)
    assert may(found, N1, "get", "persistentvolumes", "", "pv")
    assert may(found, N1, "get", "secrets", "infra", "key")
    assert not may(found, N2, "get", "secrets", "infra", "key")
    found.observe("", "persistentvolumes", "", "pv", None)
    assert not may(found, N1, "get", "secrets", "infra", "key")


def test_slices_are_read_and_written_by_the_node_they_name():
    found = NodeAuthorizer()
    found.observe(RESOURCE, "resourceslices", "", "s", {"spec": {"nodeName": "n1"}})
    for verb in ("get", "update", "patch", "delete"):
        assert may(found, N1, verb, "resourceslices", "", "s", RESOURCE)
        assert not may(found, N2, verb, "resourceslices", "", "s", RESOURCE)
    assert may(found, N2, "create", "resourceslices", "", "", RESOURCE)  # the content decides
    for verb in ("list", "watch", "deletecollection"):
        assert may(found, N1, verb, "resourceslices", "", "", RESOURCE, selector="spec.nodeName=n1")
        assert may(
            found, N1, verb, "resourceslices", "", "", RESOURCE, selector="spec.driver=d,spec.nodeName=n1"
        )
        assert not may(found, N1, verb, "resourceslices", "", "", RESOURCE, selector="spec.nodeName=n2")
        assert not may(found, N1, verb, "resourceslices", "", "", RESOURCE, selector="spec.nodeName!=n1")
        assert not may(found, N1, verb, "resourceslices", "", "", RESOURCE)


def test_pods_are_listed_by_node():
    found = nodes(WANTS)
    assert may(found, N1, "watch", "pods", "", selector="spec.nodeName=n1")
    assert not may(found, N2, "watch", "pods", "", selector="spec.nodeName=n1")
    assert not may(found, N1, "list", "pods")
    assert may(found, N1, "get", "pods", name="web")
    assert not may(found, N2, "get", "pods", name="web")


@pytest.mark.parametrize(
    ("resource", "group", "namespace"),
    [
        ("leases", "coordination.k8s.io", "kube-node-lease"),
        ("csinodes", "storage.k8s.io", ""),
        ("preparedclaims", "node.allot.dev", ""),
    ],
)
def test_what_bears_the_nodes_name_is_its_own_and_no_other(resource, group, namespace):
    found = NodeAuthorizer()
    for verb in ("get", "update", "patch", "delete"):
        assert may(found, N1, verb, resource, namespace, "n1", group)
        assert not may(found, N1, verb, resource, namespace, "n2", group)
    assert may(found, N1, "create", resource, namespace, "", group)  # the content decides
    for verb in ("list", "watch", "deletecollection"):
        assert not may(found, N1, verb, resource, namespace, "", group)
        assert not may(found, N1, verb, resource, namespace, "n2", group)
        # An agent follows its own word on what it has prepared: somebody may write over it.
        follows = resource == "preparedclaims" and verb != "deletecollection"
        assert may(found, N1, verb, resource, namespace, "n1", group) == follows


def test_a_lease_of_its_name_elsewhere_is_not_the_nodes():
    for verb in ("get", "create", "update", "patch", "delete"):
        assert not may(NodeAuthorizer(), N1, verb, "leases", "kube-system", "n1", "coordination.k8s.io")


@pytest.mark.parametrize(
    ("resource", "group", "name"),
    [
        ("secrets", "", "pull"),
        ("configmaps", "", "env-map"),
        ("resourceclaims", RESOURCE, "by-name"),
        ("persistentvolumeclaims", "", "disk"),
        ("serviceaccounts", "", "bot"),
    ],
)
def test_below_what_a_node_reads_it_reads_nothing(resource, group, name):
    found = nodes(WANTS)
    assert may(found, N1, "get", resource, name=name, group=group)
    assert not may(found, N1, "get", resource, name=name, group=group, subresource="status")


def test_nodes_share_what_they_all_need():
    found = NodeAuthorizer()
    assert may(found, N1, "create", "events")
    assert may(found, N1, "list", "services", "")
    assert not may(found, N1, "delete", "events")
    assert not may(found, N1, "list", "deployments", group="apps")


def test_it_takes_the_name_and_the_group_to_be_a_node():
    found = nodes(WANTS)
    for user in (
        User("system:node:n1"),
        User("n1", (identities.NODES,)),
        User("system:node:", (identities.NODES,)),
    ):
        assert not may(found, user, "get", "pods", name="web")


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3"]),
        st.sampled_from(["", "n1", "n2"]),
        st.lists(st.sampled_from(["s1", "s2"]), unique=True),
        st.booleans(),
    ),
    max_size=12,
)


@given(EVENTS)
def test_the_graph_answers_as_a_reading_of_all_pods_would(events):
    """GRAPH1."""
    graph, world = NodeGraph(), {}
    for name, node, secrets, gone in events:
        fields = pod(name, node, spec={"imagePullSecrets": [{"name": secret} for secret in secrets]})
        graph.observe("", "pods", "dev", name, None if gone else fields)
        world[name] = ("", []) if gone else (node, secrets)
        for wanted in ("n1", "n2"):
            for secret in ("s1", "s2"):
                expected = any(node == wanted and secret in named for node, named in world.values())
                assert graph.reaches(wanted, Ref("secrets", "dev", secret)) == expected
            for other in world:
                assert graph.reaches(wanted, Ref("pods", "dev", other)) == (world[other][0] == wanted)


# What the content of a write decides.

STORED = {
    ("nodes", "", "n1"): {"metadata": {"name": "n1", "uid": "node-uid"}},
    ("pods", "dev", "web"): pod(),
    ("pods", "dev", "theirs"): pod("theirs", "n2"),
}


def lookup(resource, namespace, name):
    return STORED.get((resource, namespace, name))


def refused(verb, resource, new=None, old=None, user=N1, group="", subresource="", namespace="dev", name=""):
    action = Action(verb, group, resource, subresource, namespace, name)
    error = refuse_node(user, action, new, old, lookup)
    return None if error is None else error.message.partition(" is forbidden: ")[2] or error.message


def mirror(**changed):
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
    metadata = {
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [{**owner, **changed.pop("owner", {})}],
        **changed.pop("metadata", {}),
    }
    return pod(metadata=metadata, **changed)


def test_a_node_makes_mirror_pods_of_its_own():
    assert refused("create", "pods", mirror()) is None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (pod(), 'pod does not have "kubernetes.io/config.mirror" annotation'),
        (mirror(node="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (mirror(metadata={"ownerReferences": []}), "an owner reference set to itself"),
        (mirror(owner={"name": "n2"}), "an owner reference set to itself"),
        (mirror(owner={"controller": False}), "a controller owner reference"),
        (mirror(owner={"blockOwnerDeletion": True}), "must not set blockOwnerDeletion"),
        (mirror(owner={"uid": "other"}), "UID mismatch: expected other got node-uid"),
        (mirror(spec={"serviceAccountName": "bot"}), "can not create pods that reference a service account"),
        (mirror(spec={"imagePullSecrets": [{"name": "s"}]}), "reference secrets"),
        (mirror(spec={"volumes": [{"configMap": {"name": "c"}}]}), "reference configmaps"),
        (mirror(spec={"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}), "persistentvolumeclaims"),
        (
            mirror(spec={"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}),
            "resourceclaims",
        ),
    ],
)
def test_a_mirror_pod_uses_nothing_of_others(fields, why):
    assert why in (refused("create", "pods", fields) or "")


def test_a_node_deletes_and_evicts_its_own_pods():
    assert refused("delete", "pods", old=pod(), name="web") is None
    assert "can only delete pods" in refused("delete", "pods", old=pod(node="n2"), name="web")
    assert refused("create", "pods", {}, subresource="eviction", name="web") is None
    assert "can only evict pods" in refused("create", "pods", {}, subresource="eviction", name="theirs")
    assert refused("create", "pods", {}, subresource="eviction", name="gone") == 'pods "gone" not found'
    assert "unexpected pod subresource" in refused("create", "pods", {}, subresource="binding", name="web")
    assert "unexpected operation" in refused("update", "pods", pod(), pod(), name="web")


@pytest.mark.parametrize(
    "part",
    [
        {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "c"}]},
        {"extendedResourceClaimStatus": {"resourceClaimName": "c"}},
        {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]},
    ],
)
def test_a_node_reports_status_but_not_what_the_scheduler_wrote(part):
    """A node that could name a claim in a pod's status could read that claim."""
    running = pod(status={"phase": "Running"})
    assert refused("patch", "pods", running, pod(), subresource="status") is None
    assert "cannot update" in refused("patch", "pods", pod(status=part), running, subresource="status")
    assert "cannot update" in refused("patch", "pods", running, pod(status=part), subresource="status")
    assert (
        refused("patch", "pods", pod(status=part), pod(status={**part, "phase": "x"}), subresource="status")
        is None
    )
    assert "spec.nodeName set to itself" in refused(
        "patch", "pods", running, pod(node="n2"), subresource="status"
    )
    assert "labels" in refused(
        "update", "pods", pod(metadata={"labels": {"a": "b"}}), pod(), subresource="status"
    )


def node(name="n1", labels=None, **changed):
    return {"metadata": {"name": name, "labels": labels or {}, **changed.pop("metadata", {})}, **changed}


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("example.com/anything", True),
        ("plain", True),
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/own", True),
        ("sub.kubelet.kubernetes.io/own", True),
        ("node-role.kubernetes.io/control-plane", False),
        ("kubernetes.io/anything-else", False),
        ("example.k8s.io/x", False),
        ("node-restriction.kubernetes.io/fips", False),
        ("team.node-restriction.kubernetes.io/fips", False),
    ],
)
def test_a_node_labels_itself_only_where_nobody_trusts_the_label(label, allowed):
    labels = {label: "v"}
    assert (refused("create", "nodes", node(labels=labels), namespace="") is None) == allowed
    assert (
        refused("patch", "nodes", node(labels=labels), node(), namespace="", name="n1") is None
    ) == allowed
    assert (
        refused("patch", "nodes", node(), node(labels=labels), namespace="", name="n1") is None
    ) == allowed


def test_a_node_changes_neither_its_taints_nor_its_owners_nor_other_nodes():
    tainted = node(spec={"taints": [{"key": "k"}]})
    assert refused("create", "nodes", tainted, namespace="") is None
    assert "modify taints" in refused("update", "nodes", node(), tainted, namespace="", name="n1")
    owned = node(metadata={"ownerReferences": [{"uid": "u"}]})
    assert "ownerReferences" in refused("patch", "nodes", owned, node(), namespace="", name="n1")
    assert 'not allowed to modify node "n2"' in refused("create", "nodes", node("n2"), namespace="")


def test_published_objects_stay_with_their_node():
    ours, theirs = {"spec": {"nodeName": "n1"}}, {"spec": {"nodeName": "n2"}}
    slices = {"resource": "resourceslices", "group": RESOURCE, "namespace": "", "name": "s"}
    assert refused("create", new=ours, **slices) is None
    assert "can only create ResourceSlice" in refused("create", new=theirs, **slices)
    assert "can only create" in refused("create", new={"spec": {"allNodes": True}}, **slices)
    assert "can only update" in refused("update", new=theirs, old=ours, **slices)
    assert "can only update" in refused("update", new=ours, old=theirs, **slices)
    assert "can only delete" in refused("deletecollection", old=theirs, **slices)
    assert refused("deletecollection", old=ours, **slices) is None


def token_for(name, uid, **spec):
    return {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}, **spec}}


@pytest.mark.parametrize(
    ("request_body", "why"),
    [
        ({"spec": {}}, "node requested token not bound to a pod"),
        (token_for("web", ""), "without a uid"),
        (token_for("web", "old"), "does not match the UID in record"),
        (token_for("theirs", "uid-theirs"), "bound to a pod scheduled on a different node"),
        (token_for("gone", "u"), 'pods "gone" not found'),
        (token_for("web", "uid-web", audiences=["vault"]), 'audience "vault" not found in pod spec volume'),
    ],
)
def test_a_node_gets_tokens_for_its_own_pods_only(request_body, why):
    token = {"resource": "serviceaccounts", "subresource": "token", "name": "bot"}
    assert refused("create", new=token_for("web", "uid-web"), **token) is None
    assert why in refused("create", new=request_body, **token)


def test_whoever_is_no_node_is_not_restricted_here():
    assert refused("create", "pods", pod(), user=identities.user("ann")) is None
