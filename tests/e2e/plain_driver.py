"""A driver of classic claims without a line of Allot: the official Kubernetes client, grpcio and protoc.

    plain_driver.py KUBECONFIG ROOT CDI-DIR PROTO-DIR

Both halves in one process: it has two of its resources, anywhere, and tells containers their number. It is as
simple as such a driver can be: it polls, and it does what the specification asks of it in the order that it
asks.
"""

import json
import os
import sys
import tempfile
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc
from kubernetes import client, config

NAME = "plain.example.com"
FINALIZER = f"{NAME}/deletion-protection"
GROUP = "resource.k8s.io", "v1alpha1"
COUNT = 2


def messages(folder, package):
    with tempfile.TemporaryDirectory() as out:
        path = Path(out, "set")
        assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={path}", f"{package}.proto"]) == 0
        described = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described.file[0])
    return {
        one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{one.name}"))
        for one in described.file[0].message_type
    }


# -- the half in the control plane ----------------------------------------------------------------


def control():
    api, core = client.CustomObjectsApi(), client.CoreV1Api()
    while True:
        try:
            classes = {
                one["metadata"]["name"]
                for one in api.list_cluster_custom_object(*GROUP, "resourceclasses")["items"]
                if one["driverName"] == NAME
            }
            claims = api.list_cluster_custom_object(*GROUP, "resourceclaims")["items"]
            for claim in claims:
                if claim["spec"].get("resourceClassName") in classes:
                    give_back(api, claim)
            for scheduling in api.list_cluster_custom_object(*GROUP, "podschedulings")["items"]:
                serve(api, core, scheduling, claims, classes)
        except client.ApiException as refused:
            print(refused.status, refused.body, file=sys.stderr, flush=True)
        time.sleep(0.05)


def serve(api, core, scheduling, claims, classes):
    metadata, spec = scheduling["metadata"], scheduling.get("spec") or {}
    pod = core.read_namespaced_pod(metadata["name"], metadata["namespace"])
    if pod.metadata.uid not in [one["uid"] for one in metadata.get("ownerReferences") or ()]:
        return
    held = {(one.get("status") or {}).get("allocation", {}).get("resourceHandle") for one in claims}
    by_name = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in claims}
    entries = []
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or f"{metadata['name']}-{entry.name}"
        claim = by_name.get((metadata["namespace"], name))
        if claim is None or claim["spec"].get("resourceClassName") not in classes:
            continue
        if (claim.get("status") or {}).get("allocation") is not None:
            continue
        free = [str(at) for at in range(COUNT) if str(at) not in held]
        if free and spec.get("selectedNode"):
            held.add(free[0])
            allocate(api, claim, free[0], pod)
        elif not free:
            entries.append({"name": entry.name, "unsuitableNodes": spec.get("potentialNodes") or []})
        else:
            entries.append({"name": entry.name})
    if entries and (scheduling.get("status") or {}).get("resourceClaims") != entries:
        body = {"metadata": this(scheduling), "status": {"resourceClaims": entries}}
        where = metadata["namespace"], "podschedulings", metadata["name"]
        api.patch_namespaced_custom_object_status(*GROUP, *where, body)


def allocate(api, claim, handle, pod):
    claim = write(api, claim, {"metadata": {**this(claim), "finalizers": [FINALIZER]}})
    consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    allocation = {"resourceHandle": handle}
    status = {"driverName": NAME, "allocation": allocation, "reservedFor": [consumer]}
    write(api, claim, {"metadata": this(claim), "status": status}, status=True)


def give_back(api, claim):
    status = claim.get("status") or {}
    is_unwanted = claim["metadata"].get("deletionTimestamp") or status.get("deallocationRequested")
    if (
        not is_unwanted
        or status.get("reservedFor")
        or FINALIZER not in claim["metadata"].get("finalizers", ())
    ):
        return
    if status.get("allocation") is not None:
        cleared = {"allocation": None, "driverName": None, "deallocationRequested": None}
        claim = write(api, claim, {"metadata": this(claim), "status": cleared}, status=True)
    write(api, claim, {"metadata": {**this(claim), "finalizers": []}})


def write(api, claim, body, *, status=False):
    where = claim["metadata"]["namespace"], "resourceclaims", claim["metadata"]["name"]
    if status:
        return api.patch_namespaced_custom_object_status(*GROUP, *where, body)
    return api.patch_namespaced_custom_object(*GROUP, *where, body)


def this(found):
    return {name: found["metadata"][name] for name in ("uid", "resourceVersion")}


# -- the half on the node ---------------------------------------------------------------------------


def serve_node(root, cdi, protos):
    calls, registering = messages(protos, "classic"), messages(protos, "kubelet")
    socket, said = root / "plugins" / NAME / "plugin.sock", []

    def prepare(request, context):
        spec = {
            "cdiVersion": "0.5.0",
            "kind": f"{NAME}/number",
            "devices": [
                {
                    "name": request.claim_uid,
                    "containerEdits": {"env": [f"PLAIN_NUMBER={request.resource_handle}"]},
                }
            ],
        }
        cdi.mkdir(parents=True, exist_ok=True)
        (cdi / f"plain-{request.claim_uid}.json").write_text(json.dumps(spec))
        return calls["NodePrepareResourceResponse"](cdi_devices=[f"{NAME}/number={request.claim_uid}"])

    def unprepare(request, context):
        (cdi / f"plain-{request.claim_uid}.json").unlink(missing_ok=True)
        return calls["NodeUnprepareResourceResponse"]()

    def info(request, context):
        return registering["PluginInfo"](
            type="ResourcePlugin", name=NAME, endpoint=str(socket), supported_versions=["1.0.0"]
        )

    def notify(request, context):
        said.append(request.plugin_registered)
        return registering["RegistrationStatusResponse"]()

    def method(deed, asked):
        return grpc.unary_unary_rpc_method_handler(
            deed,
            request_deserializer=asked.FromString,
            response_serializer=lambda told: told.SerializeToString(),
        )

    node = {
        "NodePrepareResource": method(prepare, calls["NodePrepareResourceRequest"]),
        "NodeUnprepareResource": method(unprepare, calls["NodeUnprepareResourceRequest"]),
    }
    registration = {
        "GetInfo": method(info, registering["InfoRequest"]),
        "NotifyRegistrationStatus": method(notify, registering["RegistrationStatus"]),
    }
    servers = []
    for path, service, methods in (
        (socket, "v1alpha1.Node", node),
        (root / "plugins_registry" / f"{NAME}.sock", "pluginregistration.Registration", registration),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        server = grpc.server(futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        servers.append(server)
    while True not in said:
        time.sleep(0.02)
    return servers


if __name__ == "__main__":
    kubeconfig, root, cdi, protos = sys.argv[1:]
    config.load_kube_config(kubeconfig)
    kept = serve_node(Path(root), Path(cdi), protos)
    threading.Thread(target=control, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
