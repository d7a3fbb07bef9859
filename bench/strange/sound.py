"""A sound object of every kind that is served: what strange ones are made from."""

from collections.abc import Mapping
from typing import Any

Fields = dict[str, Any]

_LABELS = {"app": "x"}
_SELECTOR = {"matchLabels": _LABELS}
_CONTAINER: Fields = {
    "name": "c",
    "image": "i",
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80, "name": "http"}],
    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "1Gi"}},
}
_POD: Fields = {
    "containers": [_CONTAINER],
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {},
    "terminationGracePeriodSeconds": 1,
}
_TEMPLATE: Fields = {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER]}}
_JOB: Fields = {
    "template": {"spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}},
    "backoffLimit": 1,
    "ttlSecondsAfterFinished": 1,
}
_EXACTLY: Fields = {
    "deviceClassName": "c-0",
    "count": 1,
    "selectors": [{"cel": {"expression": "device.driver == 'd.example.com'"}}],
}
_RULE: Fields = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
_REFERENCE: Fields = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_SUBJECT: Fields = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "x"}
_NODE: Fields = {
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
    "conditions": [{"type": "Ready", "status": "True"}],
}
_POOL: Fields = {"name": "p", "generation": 1, "resourceSliceCount": 1}
_DEVICE: Fields = {
    "name": "d-0",
    "attributes": {"x": {"int": 1}, "v": {"version": "1.2.3"}, "b": {"bool": True}, "s": {"string": "t"}},
    "capacity": {"memory": {"value": "80Gi"}},
}


def _claim(version: str) -> Fields:
    request = {"name": "r", **_EXACTLY} if version == "v1beta1" else {"name": "r", "exactly": _EXACTLY}
    return {"devices": {"requests": [request]}}


def _slice(version: str) -> Fields:
    inner = {key: value for key, value in _DEVICE.items() if key != "name"}
    device = {"name": "d-0", "basic": inner} if version == "v1beta1" else _DEVICE
    return {"driver": "d.example.com", "pool": _POOL, "nodeName": "n0", "devices": [device]}


def _definition(name: str) -> Fields:
    word = name.replace("-", "").replace(".", "") or "x"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {
        "plural": word,
        "singular": word,
        "kind": word.capitalize(),
        "listKind": f"{word.capitalize()}List",
    }
    return {"group": "strange.example.com", "names": names, "scope": "Namespaced", "versions": [version]}


_SPECS: Mapping[str, Fields] = {
    "pods": _POD,
    "podtemplates": {},
    "nodes": {},
    "namespaces": {},
    "limitranges": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    "persistentvolumes": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
    },
    "persistentvolumeclaims": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    },
    "replicationcontrollers": {"replicas": 1, "selector": _LABELS, "template": _TEMPLATE},
    "resourcequotas": {"hard": {"configmaps": "10000", "count/secrets": "10000"}},
    "services": {"ports": [{"port": 80, "name": "http"}], "selector": _LABELS},
    "daemonsets": {"selector": _SELECTOR, "template": _TEMPLATE},
    "deployments": {"selector": _SELECTOR, "template": _TEMPLATE, "replicas": 1},
    "replicasets": {"selector": _SELECTOR, "template": _TEMPLATE, "replicas": 1},
    "statefulsets": {"selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "x", "replicas": 1},
    "jobs": _JOB,
    "cronjobs": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}},
    "leases": {"holderIdentity": "x", "leaseDurationSeconds": 10},
    "poddisruptionbudgets": {"minAvailable": 1, "selector": _SELECTOR},
    "preparedclaims": {},
    "csidrivers": {},
    "csinodes": {"drivers": [{"name": "d", "nodeID": "n"}]},
    "volumeattachments": {"attacher": "a", "nodeName": "n0", "source": {"persistentVolumeName": "v"}},
    "deviceclasses": {"selectors": [{"cel": {"expression": "device.driver == 'd.example.com'"}}]},
    "networkpolicies": {"podSelector": {}, "policyTypes": ["Ingress"]},
    "ingresses": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    "ingressclasses": {"controller": "example.com/c"},
    "ipaddresses": {"parentRef": {"resource": "services", "name": "s", "namespace": "team-a"}},
    "servicecidrs": {"cidrs": ["10.0.0.0/16"]},
    "horizontalpodautoscalers": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "s-0"}, "maxReplicas": 3,
    },
    "podgroups": {"schedulingPolicy": {"basic": {}}},
    "workloads": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": {"basic": {}}}]},
    "certificatesigningrequests": {
        "request": "AA==", "signerName": "example.com/s", "usages": ["client auth"],
    },
    "clustertrustbundles": {"trustBundle": "x"},
    "podcertificaterequests": {"signerName": "example.com/s", "podName": "p", "nodeName": "n0"},
    "flowschemas": {"priorityLevelConfiguration": {"name": "x"}},
    "prioritylevelconfigurations": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1}},
    "storageversionmigrations": {"resource": {"group": "apps", "resource": "deployments"}},
    "mutatingadmissionpolicies": {"failurePolicy": "Ignore"},
    "mutatingadmissionpolicybindings": {"policyName": "p"},
    "devicetaintrules": {
        "deviceSelector": {"driver": "d.example.com", "pool": "p", "device": "d-0"},
        "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
    },
}  # fmt: skip

_OTHERS: Mapping[str, Fields] = {
    "configmaps": {"data": {"a": "b"}, "binaryData": {"c": "AA=="}},
    "secrets": {"data": {"a": "AA=="}, "stringData": {"b": "c"}, "type": "Opaque"},
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "serviceaccounts": {"secrets": [{"name": "s"}]},
    "podtemplates": {"template": _TEMPLATE},
    "controllerrevisions": {"data": {"a": 1}, "revision": 1},
    "endpointslices": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": []},
    "runtimeclasses": {"handler": "h"},
    "priorityclasses": {"value": 7},
    "csistoragecapacities": {"storageClassName": "s", "capacity": "1Gi"},
    "storageclasses": {"provisioner": "p"},
    "volumeattributesclasses": {"driverName": "d", "parameters": {"a": "b"}},
    "roles": {"rules": [_RULE]},
    "rolebindings": {"roleRef": _REFERENCE, "subjects": [_SUBJECT]},
    "clusterroles": {"rules": [_RULE], "aggregationRule": {"clusterRoleSelectors": [_SELECTOR]}},
    "clusterrolebindings": {"roleRef": _REFERENCE, "subjects": [_SUBJECT]},
    "nodes": {"status": _NODE},
    "validatingwebhookconfigurations": {"webhooks": []},
    "mutatingwebhookconfigurations": {"webhooks": []},
    "credentialrevocations": {"spec": {"user": "s-0"}},
    "things": {"spec": {"count": 1, "parts": [{"name": "a"}]}},
}


def sound(group: str, version: str, kind: str, plural: str, name: str, namespace: str) -> Fields:
    """One that is accepted, in this version's form."""
    about: Fields = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
    metadata: Fields = {"name": name, "labels": dict(_LABELS)}
    if namespace:
        metadata["namespace"] = namespace
    fields: Fields = {**about, "metadata": metadata, **_OTHERS.get(plural, {})}
    match plural:
        case "resourceclaims":
            fields["spec"] = _claim(version)
        case "resourceclaimtemplates":
            fields["spec"] = {"spec": _claim(version)}
        case "resourceslices":
            fields["spec"] = _slice(version)
        case "customresourcedefinitions":
            fields["spec"] = spec = _definition(name)
            metadata["name"] = f"{spec['names']['plural']}.{spec['group']}"
        case "events" if group == "":
            about_it = {"kind": "Pod", "name": "s-0", "namespace": namespace}
            fields |= {"involvedObject": about_it, "reason": "r", "message": "m", "type": "Normal"}
        case "events":
            fields |= {
                "regarding": {"kind": "Pod", "name": "s-0", "namespace": namespace},
                "action": "a", "reason": "r",
                "reportingController": "x.example.com/c", "reportingInstance": "i", "type": "Normal",
                "eventTime": "2026-01-01T00:00:00.000000Z", "note": "n",
            }  # fmt: skip
        case _ if plural in _SPECS and plural != "podtemplates":
            fields["spec"] = _SPECS[plural]
    return fields


THING = {
    "metadata": {"name": "things.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count",
                }},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                                "properties": {
                                    "count": {"type": "integer", "default": 1},
                                    "amount": {"x-kubernetes-int-or-string": True},
                                    "note": {"type": "string", "nullable": True},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "on": {"type": "boolean", "default": True},
                                            },
                                        },
                                    },
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}  # fmt: skip
"""A definition whose objects are typed in some places and free in others."""
