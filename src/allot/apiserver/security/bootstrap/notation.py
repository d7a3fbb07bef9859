"""How the tables of roles are written: one line a rule.

may(READ, "pods nodes")                         of the core group
may("create", "leases", "coordination.k8s.io")
may("get update", "leases", "coordination.k8s.io", names="kube-scheduler")
"""

from ..rules import Rule

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
CORE = ""
APPS = "apps"
BATCH = "batch"
COORDINATION = "coordination.k8s.io"
POLICY = "policy"
RBAC = "rbac.authorization.k8s.io"
RESOURCE = "resource.k8s.io"
SCHEDULING = "scheduling.k8s.io"
STORAGE = "storage.k8s.io"
COMPUTE = "compute.allot.dev"
NODE = "node.allot.dev"


def may(verbs: str, resources: str, group: str = CORE, *more_groups: str, names: str = "") -> Rule:
    return Rule(_sorted(verbs), (group, *more_groups), _sorted(resources), _sorted(names))


def may_visit(paths: str) -> Rule:
    return Rule(("get",), urls=_sorted(paths))


def _sorted(words: str) -> tuple[str, ...]:
    return tuple(sorted(words.split()))


EVENTS = may("create patch update", "events", CORE, "events.k8s.io")
"""Everybody who acts may say what they did."""

ASK_WHO_AND_WHETHER = (
    may("create", "tokenreviews", "authentication.k8s.io"),
    may("create", "subjectaccessreviews", "authorization.k8s.io"),
)
"""What a component needs to serve an endpoint of its own."""


def leads(name: str) -> tuple[Rule, ...]:
    """Take part in the election held under the lease `name`."""
    return (
        may("create", "leases", COORDINATION),
        may("get list update watch", "leases", COORDINATION, names=name),
    )
