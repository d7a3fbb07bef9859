"""Cluster roles for people, for nodes, and for components that are not control loops."""

from collections.abc import Mapping

from ..identities import (
    AUTHENTICATED,
    AUTOSCALER_NAME,
    CLUSTER_ADMINS,
    CONTROLLER_MANAGER_NAME,
    DASHBOARD_NAME,
    HOLLOW_NODES_NAME,
    MASTERS,
    SCHEDULER_NAME,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
)
from ..rbac import Subject
from ..rules import EVERYTHING, Rule
from .notation import (
    APPS,
    ASK_WHO_AND_WHETHER,
    BATCH,
    COMPUTE,
    COORDINATION,
    EVENTS,
    NODE,
    POLICY,
    RBAC,
    READ,
    RESOURCE,
    SCHEDULING,
    STORAGE,
    WRITE,
    leads,
    may,
    may_visit,
)

AGGREGATES: Mapping[str, str] = {"admin": "", "edit": "admin", "view": "edit"}
"""Role gathered by label -> the gathered role that it is itself a part of."""

_EDITED = (
    may(READ, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    may("impersonate", "serviceaccounts"),
    may(WRITE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    may("create", "pods/eviction"),
    may(
        WRITE,
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale"
        " secrets serviceaccounts services services/proxy",
    ),
    may("create", "serviceaccounts/token"),
    may(
        WRITE,
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
        " statefulsets statefulsets/scale",
        APPS,
    ),
    may(WRITE, "horizontalpodautoscalers", "autoscaling"),
    may(WRITE, "cronjobs jobs", BATCH),
    may(WRITE, "poddisruptionbudgets", POLICY),
    may(WRITE, "ingresses networkpolicies", "networking.k8s.io"),
    may(f"{READ} {WRITE}", "leases", COORDINATION),
    may(WRITE, "resourceclaims resourceclaimtemplates", RESOURCE),
    may(WRITE, "events", "events.k8s.io"),
)

_VIEWED = (
    may(
        READ,
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
        " replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
    ),
    may(
        READ,
        "bindings events limitranges namespaces/status pods/log pods/status"
        " replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    may(READ, "namespaces"),
    may(READ, "endpointslices", "discovery.k8s.io"),
    may(
        READ,
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale"
        " deployments/status replicasets replicasets/scale replicasets/status statefulsets"
        " statefulsets/scale statefulsets/status",
        APPS,
    ),
    may(READ, "horizontalpodautoscalers horizontalpodautoscalers/status", "autoscaling"),
    may(READ, "cronjobs cronjobs/status jobs jobs/status", BATCH),
    may(READ, "poddisruptionbudgets poddisruptionbudgets/status", POLICY),
    may(READ, "ingresses ingresses/status networkpolicies", "networking.k8s.io"),
    may(READ, "podschedulings resourceclaims resourceclaims/status resourceclaimtemplates", RESOURCE),
    may(READ, "events", "events.k8s.io"),
)

PARTS: Mapping[str, tuple[str, tuple[Rule, ...]]] = {
    "system:aggregate-to-admin": (
        "admin",
        (
            may("create", "localsubjectaccessreviews", "authorization.k8s.io"),
            may(f"{READ} {WRITE}", "rolebindings roles", RBAC),
        ),
    ),
    "system:aggregate-to-edit": ("edit", _EDITED),
    "system:aggregate-to-view": ("view", _VIEWED),
    "system:aggregated-metrics-reader": ("view", (may(READ, "nodes pods", "metrics.k8s.io"),)),
}
"""Role -> the aggregate that gathers it, and its rules."""

NODE_RULES = (
    *ASK_WHO_AND_WHETHER,
    may("create", "localsubjectaccessreviews", "authorization.k8s.io"),
    may(READ, "services"),
    may(f"create {READ}", "nodes"),
    may("patch update", "nodes/status"),
    may("patch update", "nodes"),
    EVENTS,
    may(READ, "pods"),
    may("create delete", "pods"),
    may("patch update", "pods/status"),
    may("create", "pods/eviction"),
    may(READ, "configmaps secrets"),
    may("get", "persistentvolumeclaims persistentvolumes"),
    may("get", "endpoints"),
    may("create delete get patch update", "leases", COORDINATION),
    may("get", "volumeattachments", STORAGE),
    may("get", "serviceaccounts"),
    may("create", "serviceaccounts/token"),
    may("get patch update", "persistentvolumeclaims/status"),
    may(READ, "csidrivers", STORAGE),
    may("create delete get patch update", "csinodes", STORAGE),
    may(READ, "runtimeclasses", "node.k8s.io"),
    may("get", "resourceclaims resourceclasses", RESOURCE),
    may(
        f"create delete deletecollection patch update {READ}",
        "noderesourcecapacities resourceslices",
        RESOURCE,
    ),
    may("create delete get patch update", "preparedclaims", NODE),
    may("patch update", "preparedclaims/status", NODE),
)
"""Of the role system:node, which is bound to nobody: `node_authorizer` applies these one by one."""

_SCHEDULER = (
    EVENTS,
    *leads("kube-scheduler"),
    may(READ, "nodes namespaces replicationcontrollers services"),
    may(f"delete {READ}", "pods"),
    may("create", "bindings pods/binding"),
    may("patch update", "pods/status"),
    may("update", "pods/finalizers"),
    may(READ, "replicasets statefulsets", APPS),
    may(READ, "poddisruptionbudgets", POLICY),
    may(READ, "persistentvolumeclaims persistentvolumes"),
    may(READ, "csidrivers csinodes csistoragecapacities volumeattachments", STORAGE),
    may(READ, "podgroups", SCHEDULING),
    *ASK_WHO_AND_WHETHER,
    may(f"create delete patch update {READ}", "resourceclaims", RESOURCE),
    may(f"patch update {READ}", "resourceclaims/status", RESOURCE),
    may("patch update", "resourceclaims/binding", RESOURCE),
    may(READ, "deviceclasses devicetaintrules resourceslices", RESOURCE),
    # Classic claims (KEP-3063), numeric parameters (KEP-4381) and compute resources (KEP-14).
    may(READ, "resourceclasses", RESOURCE, COMPUTE),
    may(f"create delete patch update {READ}", "podschedulings", RESOURCE),
    may(READ, "noderesourcecapacities", RESOURCE),
)

_CONTROLLER_MANAGER = (
    EVENTS,
    *leads("kube-controller-manager"),
    may("create", "secrets serviceaccounts"),
    may("delete", "secrets"),
    may("get", "configmaps namespaces secrets serviceaccounts"),
    may("update", "secrets serviceaccounts"),
    *ASK_WHO_AND_WHETHER,
    may("list watch", "*", "*"),
    may("create", "serviceaccounts/token"),
)

_AUTOSCALER = (
    EVENTS,
    *leads("allot-autoscaler"),
    may(READ, "configmaps namespaces persistentvolumeclaims persistentvolumes pods services"),
    may(READ, "replicationcontrollers"),
    may(f"create delete patch update {READ}", "nodes"),
    may("patch update", "nodes/status"),
    may("create", "pods/eviction"),
    may("create patch update", "configmaps"),
    may(READ, "daemonsets replicasets statefulsets", APPS),
    may(READ, "jobs", BATCH),
    may(READ, "poddisruptionbudgets", POLICY),
    may(READ, "csidrivers csinodes csistoragecapacities storageclasses", STORAGE),
    may(READ, "priorityclasses podgroups", SCHEDULING),
    may(
        READ, "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourceslices", RESOURCE
    ),
    may(READ, "resourceclasses", RESOURCE, COMPUTE),
    may(READ, "noderesourcecapacities podschedulings", RESOURCE),
)

_DASHBOARD = (
    *_VIEWED,
    may(READ, "nodes persistentvolumes"),
    may(READ, "leases", COORDINATION),
    may(READ, "priorityclasses podgroups", SCHEDULING),
    may(
        READ, "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourceslices", RESOURCE
    ),
    may(READ, "resourceclasses", RESOURCE, COMPUTE),
    may(READ, "noderesourcecapacities", RESOURCE),
    may_visit("/metrics /healthz /livez /readyz /version"),
)

_HOLLOW_NODES = (
    # What a hollow node writes about itself and its pods, it writes as system:node:NAME.
    *leads("allot-hollow-nodes"),
    may(READ, "pods"),
    may(f"delete {READ}", "nodes"),
    may(READ, "leases", COORDINATION),
    may(READ, "preparedclaims", NODE),
    may(READ, "noderesourcecapacities resourceclaims", RESOURCE),
    may(f"create delete patch update {READ}", "resourceslices", RESOURCE),
    may(f"create {READ}", "deviceclasses resourceclaimtemplates", RESOURCE),
)

_DRIVER = (
    EVENTS,
    may("get", "nodes"),
    may("get list watch", "deviceclasses", RESOURCE),
    may("get", "resourceclaims", RESOURCE),
    may(f"create delete deletecollection patch update {READ}", "resourceslices", RESOURCE),
    may("patch update", "resourceclaims/status", RESOURCE),
    may("associated-node:patch associated-node:update", "resourceclaims/driver", RESOURCE),
)

_CLASSIC_DRIVER = (
    EVENTS,
    may(f"create get patch update {READ}", "leases", COORDINATION),
    may(READ, "nodes pods"),
    may(READ, "resourceclasses", RESOURCE),
    may(f"patch update {READ}", "resourceclaims", RESOURCE),
    # Not resourceclaims/binding: with it a driver could allocate structured claims as well.
    may("patch update", "resourceclaims/status resourceclaims/driver", RESOURCE),
    may("patch update", "podschedulings/status", RESOURCE),
    may(READ, "podschedulings", RESOURCE),
)

CLUSTER_ROLES: Mapping[str, tuple[Rule, ...]] = {
    "cluster-admin": EVERYTHING,
    "system:auth-delegator": ASK_WHO_AND_WHETHER,
    "system:basic-user": (
        may("create", "selfsubjectaccessreviews selfsubjectrulesreviews", "authorization.k8s.io"),
        may("create", "selfsubjectreviews", "authentication.k8s.io"),
    ),
    "allot:transactions": (may("create", "transactions", "transaction.allot.dev"),),
    # Whoever may create pods in a namespace may read which names they can ask for.
    "allot:resource-classes": (may(READ, "resourceclasses", COMPUTE),),
    "system:discovery": (
        may_visit("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ),
    "system:public-info-viewer": (may_visit("/healthz /livez /readyz /version /version/"),),
    "system:monitoring": (
        may("get", "nodes/metrics"),
        may_visit(
            "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"
        ),
    ),
    "system:service-account-issuer-discovery": (
        may_visit(
            "/.well-known/openid-configuration /.well-known/openid-configuration/"
            " /openid/v1/jwks /openid/v1/jwks/"
        ),
    ),
    "system:kube-scheduler": _SCHEDULER,
    "system:volume-scheduler": (
        may(f"patch update {READ}", "persistentvolumeclaims persistentvolumes"),
        may(READ, "storageclasses", STORAGE),
    ),
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
    "system:kubelet-api-admin": (
        may(f"proxy {READ}", "nodes"),
        may(
            "*",
            "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats",
        ),
    ),
    "system:node": NODE_RULES,
    "system:node-proxier": (
        may("list watch", "endpoints services"),
        may(READ, "nodes"),
        EVENTS,
        may("list watch", "endpointslices", "discovery.k8s.io"),
        may("list watch", "servicecidrs", "networking.k8s.io"),
    ),
    "allot:autoscaler": _AUTOSCALER,
    "allot:dashboard": _DASHBOARD,
    "allot:hollow-nodes": _HOLLOW_NODES,
    "allot:driver": _DRIVER,
    "allot:classic-driver": _CLASSIC_DRIVER,
}

CLUSTER_BINDINGS: Mapping[str, tuple[str, tuple[Subject, ...]]] = {
    "cluster-admin": ("cluster-admin", (Subject("Group", MASTERS),)),
    CLUSTER_ADMINS: ("cluster-admin", (Subject("Group", CLUSTER_ADMINS),)),
    "system:basic-user": ("system:basic-user", (Subject("Group", AUTHENTICATED),)),
    "allot:transactions": ("allot:transactions", (Subject("Group", AUTHENTICATED),)),
    "allot:resource-classes": ("allot:resource-classes", (Subject("Group", AUTHENTICATED),)),
    "system:discovery": ("system:discovery", (Subject("Group", AUTHENTICATED),)),
    "system:public-info-viewer": (
        "system:public-info-viewer",
        (Subject("Group", AUTHENTICATED), Subject("Group", UNAUTHENTICATED)),
    ),
    "system:monitoring": ("system:monitoring", (Subject("Group", "system:monitoring"),)),
    "system:service-account-issuer-discovery": (
        "system:service-account-issuer-discovery",
        (Subject("Group", SERVICE_ACCOUNTS),),
    ),
    "system:kube-scheduler": ("system:kube-scheduler", (Subject("User", SCHEDULER_NAME),)),
    "system:volume-scheduler": ("system:volume-scheduler", (Subject("User", SCHEDULER_NAME),)),
    "system:kube-controller-manager": (
        "system:kube-controller-manager",
        (Subject("User", CONTROLLER_MANAGER_NAME),),
    ),
    "system:node": ("system:node", ()),
    "system:node-proxier": ("system:node-proxier", (Subject("User", "system:kube-proxy"),)),
    "allot:autoscaler": ("allot:autoscaler", (Subject("User", AUTOSCALER_NAME),)),
    "allot:dashboard": ("allot:dashboard", (Subject("User", DASHBOARD_NAME),)),
    "allot:hollow-nodes": ("allot:hollow-nodes", (Subject("User", HOLLOW_NODES_NAME),)),
}
"""Binding -> the cluster role it binds, and to whom."""
