"""Who gets in and what they get, through real TLS on a real socket (S5)."""

import asyncio
import http.client
import json
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from allot.apiserver import ServingOptions, security, serve

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Cluster:
    """A server on a thread of its own."""

    def __init__(self, data_dir, store="memory"):
        self.data_dir = data_dir
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._serving = self._run(serve(ServingOptions(data_dir, store)))
        self.authority = self._serving.authority

    def _run(self, story):
        return asyncio.run_coroutine_threadsafe(story, self._loop).result(30)

    def caller(self, user="", *groups, token="", authority=None):
        """Somebody with a certificate, with a token, or with neither."""
        context = ssl.create_default_context(cadata=self.authority.ca.certificate.decode())
        if user:
            groups = groups or security.identities.well_known_groups(user)
            pair = (authority or self.authority).client(user, groups, datetime.now(UTC), timedelta(hours=1))
            file = Path(self.data_dir, "client.pem")
            file.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file)
        port = int(self._serving.url.rpartition(":")[2])
        return Caller(http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10), token)

    def close(self):
        self._run(self._serving.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Caller:
    def __init__(self, connection, token):
        self._connection = connection
        self._token = token

    def __call__(self, method, path, body=None, headers=()):
        """(status, decoded answer)."""
        self._connection.putrequest(method, path)
        if self._token:
            self._connection.putheader("Authorization", f"Bearer {self._token}")
        for name, value in headers:
            self._connection.putheader(name, value)
        sent = b"" if body is None else json.dumps(body).encode()
        if sent and not any(name == "Content-Type" for name, _ in headers):
            self._connection.putheader("Content-Type", "application/json")
        self._connection.putheader("Content-Length", str(len(sent)))
        self._connection.endheaders(sent)
        response = self._connection.getresponse()
        content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, content.decode()

    def code(self, method, path, body=None, headers=()):
        return self(method, path, body, headers)[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("data"))
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def admin(cluster):
    return cluster.caller("allot-admin")


def made(caller, path, body):
    status, answer = caller("POST", path, body)
    assert status == 201, answer
    return answer


def eventually(holds):
    return any(holds() or time.sleep(0.05) for _ in range(100))


def pod(name, node="", **spec):
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("path", ["/api", "/version", "/healthz", "/openapi/v3", PODS, "/metrics", "/", "/x"])
def test_nothing_is_readable_without_credentials(cluster, path):
    status, answer = cluster.caller()("GET", path)
    assert (status, answer["reason"]) == (401, "Unauthorized")
    assert cluster.caller(token="nonsense").code("GET", path) == 401


def test_a_certificate_of_another_authority_does_not_get_in(cluster):
    stranger = security.Authority.create(datetime.now(UTC))
    with pytest.raises((ssl.SSLError, OSError)):
        cluster.caller("allot-admin", authority=stranger).code("GET", "/version")


def test_somebody_without_roles_may_discover_and_nothing_else(cluster):
    ann = cluster.caller("ann")
    assert ann.code("GET", "/api") == 200
    assert ann.code("GET", "/version") == 200
    status, answer = ann("GET", PODS)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    assert ann.code("GET", "/metrics") == 403


def test_the_kubeconfig_on_disk_is_the_administrators_and_private(cluster):
    path = Path(cluster.data_dir, "kubeconfig")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "allot-admin@allot" in path.read_text()


def test_rights_come_and_go_with_bindings(cluster, admin):
    bob = cluster.caller("bob")
    assert bob.code("GET", PODS) == 403
    binding = {
        "metadata": {"name": "bob-views"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    made(admin, f"{RBAC}/namespaces/default/rolebindings", binding)
    assert bob.code("GET", PODS) == 200
    assert bob.code("GET", "/api/v1/namespaces/kube-system/pods") == 403
    assert bob.code("POST", PODS, pod("x")) == 403
    assert admin.code("DELETE", f"{RBAC}/namespaces/default/rolebindings/bob-views") == 200
    assert bob.code("GET", PODS) == 403


def test_rights_in_one_namespace_do_not_reach_others_by_a_crooked_path(cluster, admin):
    """Whoever rules a namespace entirely may not touch another one, or the cluster, through it."""
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    made(admin, "/api/v1/namespaces", {"metadata": {"name": "realm"}})
    made(admin, f"{RBAC}/namespaces/realm/roles", {"metadata": {"name": "ruler"}, "rules": [everything]})
    binding = {
        "metadata": {"name": "ruler"},
        "roleRef": {"kind": "Role", "name": "ruler"},
        "subjects": [{"kind": "User", "name": "erin"}],
    }
    made(admin, f"{RBAC}/namespaces/realm/rolebindings", binding)
    erin, realm = cluster.caller("erin"), "/api/v1/namespaces/realm"
    assert erin.code("GET", realm) == 200
    assert erin.code("GET", f"{realm}/pods") == 200
    for path in (
        f"{realm}/namespaces",
        f"{realm}/namespaces/kube-system",
        f"{realm}/nodes",
        f"{realm}/persistentvolumes",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/realm/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/realm/clusterroles/cluster-admin",
        "/apis/resource.k8s.io/v1/namespaces/realm/resourceslices",
    ):
        assert erin.code("GET", path) in (403, 404), path
    for path in ("/api/v1/namespaces", "/api/v1/namespaces/default", "/api/v1/pods", PODS, "/api/v1/nodes"):
        assert erin.code("GET", path) == 403, path
    for crooked in (
        f"{realm}/../default/pods",
        f"{realm}%2F..%2Fdefault/pods",
        f"{realm}//pods/../../default/pods",
    ):
        assert erin.code("GET", crooked) in (400, 403, 404), crooked
    assert erin.code("DELETE", f"{realm}/namespaces/default") in (403, 404)
    assert erin.code("PUT", f"{realm}/namespaces/default", {"metadata": {"name": "default"}}) in (
        403,
        404,
        405,
    )
    assert admin.code("GET", "/api/v1/namespaces/default") == 200


def test_a_definition_does_not_take_over_a_kind_of_the_system(cluster, admin):
    """Whoever may define kinds could otherwise switch off the rules of roles, or delete them all."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {
            "name": "clusterroles.rbac.authorization.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "rbac.authorization.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "clusterroles", "singular": "clusterrole", "kind": "ClusterRole"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, _ = admin("POST", path, definition)
    assert status in (201, 403, 409, 422)
    nonsense = {"metadata": {"name": "nonsense"}, "rules": [{}]}
    assert admin.code("POST", f"{RBAC}/clusterroles", nonsense) == 422
    name = definition["metadata"]["name"]
    admin("DELETE", f"{path}/{name}")
    assert eventually(lambda: admin.code("GET", f"{path}/{name}") == 404)
    assert admin.code("GET", f"{RBAC}/clusterroles/cluster-admin") == 200


def test_nobody_gives_away_what_they_do_not_have(cluster, admin):
    """An admin of a namespace may write roles there, and only with rights that they have."""
    binding = {
        "metadata": {"name": "carol-admin"},
        "roleRef": {"kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "User", "name": "carol"}],
    }
    made(admin, f"{RBAC}/namespaces/default/rolebindings", binding)
    carol, roles = cluster.caller("carol"), f"{RBAC}/namespaces/default/roles"
    pods = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    made(carol, roles, {"metadata": {"name": "ok"}, "rules": [pods]})
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    status, answer = carol("POST", roles, {"metadata": {"name": "too-much"}, "rules": [everything]})
    assert status == 403
    assert "is attempting to grant RBAC permissions not currently held" in answer["message"]
    status, answer = carol("PUT", f"{roles}/ok", {"metadata": {"name": "ok"}, "rules": [everything]})
    assert status == 403
    bind = {
        **binding,
        "metadata": {"name": "up"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
    }
    assert carol.code("POST", f"{RBAC}/namespaces/default/rolebindings", bind) == 403


MERGE = [("Content-Type", "application/merge-patch+json")]
APPLY = [("Content-Type", "application/apply-patch+yaml")]


def bound(admin, user, role, *rules):
    """Give `user` exactly these rules in the namespace default."""
    made(admin, f"{RBAC}/namespaces/default/roles", {"metadata": {"name": role}, "rules": list(rules)})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"kind": "Role", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }
    made(admin, f"{RBAC}/namespaces/default/rolebindings", binding)


def test_a_right_to_patch_is_not_a_right_to_create(cluster, admin):
    bound(
        admin, "frank", "patcher", {"verbs": ["get", "patch"], "apiGroups": [""], "resources": ["configmaps"]}
    )
    frank, maps = cluster.caller("frank"), "/api/v1/namespaces/default/configmaps"
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
    applied = f"{maps}/m?fieldManager=frank&force=true"
    status, answer = frank("PATCH", applied, wanted, APPLY)
    assert status == 403
    assert 'User "frank" cannot create resource "configmaps"' in answer["message"]
    made(admin, maps, wanted)
    assert frank.code("PATCH", applied, wanted, APPLY) == 200
    assert (
        admin.code("PATCH", f"{maps}/n?fieldManager=x", {**wanted, "metadata": {"name": "n"}}, APPLY) == 201
    )


def test_no_kind_of_patch_gives_away_what_the_patcher_does_not_have(cluster, admin):
    rbac = {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]}
    bound(admin, "grace", "role-writer", {**rbac, "verbs": ["get", "create", "patch", "update"]})
    grace, roles = cluster.caller("grace"), f"{RBAC}/namespaces/default/roles"
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert grace.code("PATCH", f"{roles}/role-writer", {"rules": [everything]}, MERGE) == 403
    patch = [{"op": "replace", "path": "/rules", "value": [everything]}]
    json_patch = [("Content-Type", "application/json-patch+json")]
    assert grace.code("PATCH", f"{roles}/role-writer", patch, json_patch) == 403
    strategic = [("Content-Type", "application/strategic-merge-patch+json")]
    assert grace.code("PATCH", f"{roles}/role-writer", {"rules": [everything]}, strategic) == 403
    applied = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "fresh"},
        "rules": [everything],
    }
    assert grace.code("PATCH", f"{roles}/fresh?fieldManager=g", applied, APPLY) == 403
    assert grace.code("PATCH", f"{roles}/role-writer", {"metadata": {"labels": {"a": "b"}}}, MERGE) == 200


def test_a_node_does_not_patch_its_way_out(cluster):
    node = cluster.caller("system:node:patched")
    made(node, "/api/v1/nodes", {"metadata": {"name": "patched"}})
    path = "/api/v1/nodes/patched"
    assert node.code("PATCH", path, {"metadata": {"labels": {"example.com/own": "x"}}}, MERGE) == 200
    role = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    assert node.code("PATCH", path, role, MERGE) == 403
    assert node.code("PATCH", f"{path}/status", role, MERGE) == 403
    taints = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert node.code("PATCH", path, taints, MERGE) == 403
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "u"}
    assert node.code("PATCH", path, {"metadata": {"ownerReferences": [owner]}}, MERGE) == 403
    assert node.code("DELETE", path) == 403


def test_impersonation_needs_every_part(cluster, admin):
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    asked = [("Impersonate-User", "dave"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
    status, answer = admin("POST", who, {}, asked)
    assert status == 201
    assert answer["status"]["userInfo"]["username"] == "dave"
    assert answer["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]
    assert admin.code("GET", PODS, None, [("Impersonate-User", "dave")]) == 403

    ann = cluster.caller("ann")
    status, answer = ann("POST", who, {}, [("Impersonate-User", "allot-admin")])
    assert status == 403
    assert 'User "ann" cannot impersonate resource "users"' in answer["message"]
    assert admin.code("POST", who, {}, [("Impersonate-Group", "system:masters")]) == 400


def test_questions_about_rights_are_answered(cluster, admin):
    ann = cluster.caller("ann")
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    assert made(ann, path, {"spec": spec})["status"]["allowed"] is False
    assert made(admin, path, {"spec": spec})["status"]["allowed"] is True
    others = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert ann.code("POST", others, {"spec": {**spec, "user": "bob"}}) == 403


def token_of(caller, account, spec=None):
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    return made(caller, path, {"spec": spec or {}})["status"]["token"]


def test_a_service_account_gets_in_with_its_token_until_it_is_deleted(cluster, admin):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    made(admin, accounts, {"metadata": {"name": "robot"}})
    robot = cluster.caller(token=token_of(admin, "robot"))
    assert robot.code("GET", "/version") == 200
    assert robot.code("GET", PODS) == 403
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    info = made(robot, path, {})["status"]["userInfo"]
    assert info["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in info["groups"]
    assert admin.code("DELETE", f"{accounts}/robot") == 200
    assert robot.code("GET", "/version") == 401
    made(admin, accounts, {"metadata": {"name": "robot"}})
    assert robot.code("GET", "/version") == 401  # another account of the same name


def test_a_malformed_token_request_is_refused_not_a_failure(cluster, admin):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    made(admin, accounts, {"metadata": {"name": "odd"}})
    path = f"{accounts}/odd/token"
    for body in ({"spec": []}, {"spec": {"expirationSeconds": "x"}}, {"spec": {"boundObjectRef": 7}}):
        assert admin.code("POST", path, body) in (400, 422)
    assert admin.code("POST", path, {"spec": {"expirationSeconds": 1}}) == 422
    assert admin.code("POST", f"{accounts}/nobody/token", {}) == 404


def test_a_node_sees_and_touches_only_its_own(cluster, admin):
    """S5, with two nodes and a claim on each."""
    for name in ("n1", "n2"):
        node = cluster.caller(f"system:node:{name}")
        made(node, "/api/v1/nodes", {"metadata": {"name": name}})
        made(admin, CLAIMS, {"metadata": {"name": f"claim-{name}"}, "spec": {}})
        claims = [{"name": "c", "resourceClaimName": f"claim-{name}"}]
        made(admin, PODS, pod(f"pod-{name}", name, resourceClaims=claims))
    n1 = cluster.caller("system:node:n1")

    assert n1.code("GET", "/api/v1/nodes/n1") == 200
    assert n1.code("GET", "/api/v1/nodes/n2") == 403
    assert n1.code("GET", f"{PODS}/pod-n1") == 200
    assert n1.code("GET", f"{PODS}/pod-n2") == 403
    assert n1.code("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1") == 200
    assert n1.code("GET", "/api/v1/pods") == 403
    assert n1.code("GET", f"{CLAIMS}/claim-n1") == 200
    status, answer = n1("GET", f"{CLAIMS}/claim-n2")
    assert status == 403
    assert "no relationship found between node 'n1' and this object" in answer["message"]
    assert n1.code("DELETE", f"{CLAIMS}/claim-n1") == 403
    assert n1.code("DELETE", f"{PODS}/pod-n2") == 403
    assert n1.code("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}) == 403
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert n1.code("POST", lease, {"metadata": {"name": "n2"}, "spec": {}}) == 403
    made(n1, lease, {"metadata": {"name": "n1"}, "spec": {}})


def test_a_node_that_may_not_evict_a_pod_costs_its_budget_nothing(cluster, admin):
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "guarded"}}
    status, budget = admin("POST", budgets, {"metadata": {"name": "b"}, "spec": {"selector": selector}})
    assert status == 201, budget
    guarded = pod("guarded", "n2")
    guarded["metadata"]["labels"] = {"app": "guarded"}
    made(admin, PODS, guarded)
    running = {**guarded, "status": {"phase": "Running"}}
    assert admin.code("PUT", f"{PODS}/guarded/status", running) == 200
    budget["status"] = {
        "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
        "observedGeneration": 1,
    }  # fmt: skip
    assert admin.code("PUT", f"{budgets}/b/status", budget) == 200
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}}
    n1, n2 = cluster.caller("system:node:n1"), cluster.caller("system:node:n2")
    assert n1.code("POST", f"{PODS}/guarded/eviction", eviction) == 403
    assert admin("GET", f"{budgets}/b")[1]["status"]["disruptionsAllowed"] == 1
    assert n2.code("POST", f"{PODS}/guarded/eviction", eviction) == 201


def test_a_stranger_is_turned_away_before_the_body_is_read(cluster):
    stranger = cluster.caller()
    connection = stranger._connection
    connection.putrequest("POST", PODS)
    connection.putheader("Content-Length", str(1 << 20))
    connection.endheaders()
    response = connection.getresponse()  # answered although the body never comes
    assert response.status == 401


def test_a_node_publishes_slices_for_itself_only(cluster):
    n1 = cluster.caller("system:node:n1")

    def a_slice(name, node):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        return {"metadata": {"name": name}, "spec": {"driver": "d.example", "pool": pool, "nodeName": node}}

    made(n1, SLICES, a_slice("ours", "n1"))
    status, answer = n1("POST", SLICES, a_slice("theirs", "n2"))
    assert status == 403
    assert "can only create ResourceSlice with the same NodeName" in answer["message"]
    made(cluster.caller("system:node:n2"), SLICES, a_slice("theirs", "n2"))
    assert n1.code("GET", f"{SLICES}/ours") == 200
    assert n1.code("GET", f"{SLICES}/theirs") == 403
    assert n1.code("DELETE", f"{SLICES}/theirs") == 403
    assert n1.code("DELETE", SLICES) == 403
    assert n1.code("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3Dn1") == 200
    assert cluster.caller("system:node:n2").code("GET", f"{SLICES}/theirs") == 200


def test_claim_status_is_written_by_those_whom_it_concerns(cluster, admin):
    """The scheduler allocates, the driver on the claim's node reports, nobody else does either."""
    claim = made(admin, CLAIMS, {"metadata": {"name": "guarded"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "c"}}]}}})  # fmt: skip
    on_n1 = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    result = {"request": "r", "driver": "d.example", "pool": "n1", "device": "dev0"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": on_n1}}
    allocated = {**claim, "status": {"allocation": allocation}}
    path = f"{CLAIMS}/guarded/status"

    rule = {"verbs": ["get", "update"], "apiGroups": ["resource.k8s.io"]}
    bound(admin, "henry", "status-writer", {**rule, "resources": ["resourceclaims", "resourceclaims/status"]})
    status, answer = cluster.caller("henry")("PUT", path, allocated)
    assert status == 422
    assert "resourceclaims/binding" in answer["message"]
    status, allocated = cluster.caller("system:kube-scheduler")("PUT", path, allocated)
    assert status == 200, allocated

    accounts = "/api/v1/namespaces/default/serviceaccounts"
    made(admin, accounts, {"metadata": {"name": "driver"}})
    binding = {
        "metadata": {"name": "d.example"},
        "roleRef": {"kind": "ClusterRole", "name": "allot:driver"},
        "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "default"}],
    }
    made(admin, f"{RBAC}/clusterrolebindings", binding)
    device = {"driver": "d.example", "pool": "n1", "device": "dev0", "data": {"ok": True}}
    reported = {**allocated, "status": {**allocated["status"], "devices": [device]}}
    for node, expected in (("n2", 422), ("n1", 200)):
        made(admin, PODS, pod(f"driver-{node}", node, serviceAccountName="driver"))
        ref = {"apiVersion": "v1", "kind": "Pod", "name": f"driver-{node}"}
        driver = cluster.caller(token=token_of(admin, "driver", {"boundObjectRef": ref}))
        status, answer = driver("PUT", path, reported)
        assert status == expected, answer


def test_a_node_gets_tokens_for_its_own_pods_only(cluster, admin):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    made(admin, accounts, {"metadata": {"name": "worker"}})
    uids = {
        node: made(admin, PODS, pod(f"worker-{node}", node, serviceAccountName="worker"))["metadata"]["uid"]
        for node in ("n1", "n2")
    }
    n1, path = cluster.caller("system:node:n1"), f"{accounts}/worker/token"

    def bound(node):
        ref = {"apiVersion": "v1", "kind": "Pod", "name": f"worker-{node}", "uid": uids[node]}
        return {"spec": {"boundObjectRef": ref}}

    answer = made(n1, path, bound("n1"))
    info = cluster.caller(token=answer["status"]["token"])(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}
    )[1]["status"]["userInfo"]
    assert info["extra"]["authentication.kubernetes.io/node-name"] == ["n1"]
    assert info["extra"]["authentication.kubernetes.io/pod-name"] == ["worker-n1"]
    assert n1.code("POST", path, bound("n2")) == 403
    assert n1.code("POST", path, {"spec": {}}) == 403


def test_whoever_verifies_tokens_themselves_finds_the_keys(cluster, admin):
    status, answer = admin("GET", "/.well-known/openid-configuration")
    assert (status, answer["id_token_signing_alg_values_supported"]) == (200, ["ES256"])
    status, keys = admin("GET", "/openid/v1/jwks")
    assert (status, [key["crv"] for key in keys["keys"]]) == (200, ["P-256"])
    assert "d" not in keys["keys"][0]
    assert cluster.caller("ann").code("GET", "/openid/v1/jwks") == 403


def test_the_default_roles_are_there_and_the_aggregates_work(cluster, admin):
    status, answer = admin("GET", f"{RBAC}/clusterroles/system:kube-scheduler")
    assert status == 200
    assert answer["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    scheduler = cluster.caller("system:kube-scheduler")
    assert scheduler.code("GET", CLAIMS) == 200
    assert scheduler.code("GET", "/api/v1/namespaces/default/secrets") == 403


def test_break_glass_works_when_the_roles_are_gone(cluster, admin):
    assert admin.code("DELETE", f"{RBAC}/clusterrolebindings/allot:cluster-admins") == 200
    assert admin.code("GET", PODS) == 403
    fixer = cluster.caller("fixer", "system:masters")
    binding = {
        "metadata": {"name": "allot:cluster-admins"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "name": "allot:cluster-admins"}],
    }
    made(fixer, f"{RBAC}/clusterrolebindings", binding)
    assert admin.code("GET", PODS) == 200


def test_credentials_and_rights_survive_a_restart(tmp_path):
    """The same keys, the same roles, the same bindings: nobody has to be let in anew."""
    first = Cluster(tmp_path, "sqlite")
    try:
        admin = first.caller("allot-admin")
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        made(admin, accounts, {"metadata": {"name": "robot"}})
        binding = {
            "metadata": {"name": "robot-views"},
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot"}],
        }
        made(admin, f"{RBAC}/namespaces/default/rolebindings", binding)
        token = token_of(admin, "robot")
        made(admin, PODS, pod("kept", "n1"))
        kubeconfig = Path(tmp_path, "kubeconfig").read_text()
    finally:
        first.close()
    second = Cluster(tmp_path, "sqlite")
    try:
        assert second.authority == first.authority
        assert Path(tmp_path, "kubeconfig").read_text() != kubeconfig  # a fresh certificate of the same user
        assert second.caller("allot-admin").code("GET", PODS) == 200
        assert second.caller(token=token).code("GET", PODS) == 200
        assert second.caller(token=token).code("POST", PODS, pod("x")) == 403
        assert second.caller("system:node:n1").code("GET", f"{PODS}/kept") == 200
    finally:
        second.close()
