"""Our default roles beside upstream's, right by right; what differs on purpose is listed with its reason."""

import json
import re
from pathlib import Path

import pytest

from allot.apiserver.security.bootstrap import objects

RECORDED = Path(__file__).parents[4] / "shared" / "conformance" / "bootstrap-roles-1.37.json"

if not RECORDED.exists():
    pytest.skip(f"upstream's recorded roles are not here: {RECORDED.parent.name}", allow_module_level=True)

UPSTREAM = json.loads(RECORDED.read_text())

LACKING = {
    "extensions is not served since 1.22": (r".*", r"\S+ extensions \S+"),
    "elections are held with leases alone": (r".*", r"\S+ coordination\.k8s\.io leasecandidates"),
    "nobody signs certificates here that a node could ask for": (
        r"system:node",
        r"\S+ certificates\.k8s\.io \S+",
    ),
    "a component updates its own lease, and nobody else's": (
        r"kube-system/system::leader-locking-.*",
        r"update coordination\.k8s\.io leases",
    ),
    "our controllers do not elect each other": (
        r"kube-system/system::leader-locking-kube-controller-manager",
        r"ServiceAccount kube-system leader-election-controller",
    ),
}
"""Why upstream has it and we have not -> of which role or binding, what."""

MORE = {
    "our loops write status by patches": (r"system:controller:.*", r"patch \S+ \S+/(status|finalize)"),
    "our deployment controller patches": (
        r"system:controller:deployment-controller",
        r"patch apps deployments",
    ),
    "our loops look again, one by one, before they delete or create": (
        r"system:controller:.*",
        r"get core (pods|nodes)",
    ),
    "our loops list what upstream's get from a shared informer of another right": (
        r"system:controller:(disruption|node|resource-claim|root-ca-cert-publisher|service-account).*",
        r"(get|list|watch) (core (pods|namespaces|serviceaccounts)|batch jobs|apps daemonsets|"
        r"resource\.k8s\.io resourceclaimtemplates|scheduling\.k8s\.io podgroups)",
    ),
    "our pod collector writes status as whole or patch": (
        r"system:controller:pod-garbage-collector",
        r"update core pods/status",
    ),
    "resources of ours": (r".*", r"\S+ (node|compute)\.allot\.dev \S+"),
    "classic and numeric claims, which upstream no longer has": (
        r".*",
        r"\S+ resource\.k8s\.io (podschedulings|resourceclasses|noderesourcecapacities)",
    ),
    "pod groups": (
        r"system:(kube-scheduler|controller:resource-claim-controller)",
        r"\S+ scheduling\.k8s\.io .*",
    ),
    "a leader may watch its lease": (
        r"system:kube-controller-manager",
        r"(list|watch) coordination\.k8s\.io leases kube-controller-manager",
    ),
    "the node authorizer grants these one by one, and only for the node's own": (
        r"system:node",
        r"\S+ resource\.k8s\.io resourceslices",
    ),
    "older components lock with config maps": (
        r"kube-system/system::leader-locking-.*",
        r"\S+ core configmaps.*",
    ),
    "a component updates its own lease, and nobody else's": (
        r"kube-system/system::leader-locking-.*",
        r"(get|update) coordination\.k8s\.io leases \S+",
    ),
}
"""Why we have it and upstream has not -> of which role, what."""


def named(metadata):
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def rights(rules):
    """Every single right of some rules: verb, group, resource and, where there is one, name."""
    found = set()
    for rule in rules or ():
        for verb in rule["verbs"]:
            found |= {f"{verb} {path}" for path in rule.get("nonResourceURLs") or ()}
            found |= {
                f"{verb} {group or 'core'} {resource} {name}".strip()
                for group in rule.get("apiGroups") or ()
                for resource in rule.get("resources") or ()
                for name in rule.get("resourceNames") or [""]
            }
    return found


def subjects(listed):
    return {" ".join(filter(None, (one["kind"], one.get("namespace"), one["name"]))) for one in listed or ()}


OURS = {(one["kind"], named(one["metadata"])): one for one in objects()}
ROLES = [
    *(("ClusterRole", name, role) for name, role in UPSTREAM["clusterRoles"].items()),
    *(("Role", name, role) for name, role in UPSTREAM["roles"].items()),
]
BINDINGS = [
    *(("ClusterRoleBinding", name, binding) for name, binding in UPSTREAM["clusterRoleBindings"].items()),
    *(("RoleBinding", name, binding) for name, binding in UPSTREAM["roleBindings"].items()),
]


def unexplained(table, name, found):
    explained = [what for who, what in table.values() if re.fullmatch(who, name)]
    return sorted(one for one in found if not any(re.fullmatch(what, one) for what in explained))


@pytest.mark.parametrize("kind, name, role", ROLES, ids=[name for _, name, _ in ROLES])
def test_a_role_allows_what_upstreams_does(kind, name, role):
    assert (kind, name) in OURS
    ours = OURS[kind, name]
    if "aggregationRule" in role:
        assert ours["aggregationRule"] == role["aggregationRule"]
        return
    wanted, held = rights(role["rules"]), rights(ours["rules"])
    assert not unexplained(LACKING, name, wanted - held)
    assert not unexplained(MORE, name, held - wanted)


@pytest.mark.parametrize("kind, name, binding", BINDINGS, ids=[name for _, name, _ in BINDINGS])
def test_a_binding_is_upstreams(kind, name, binding):
    ours = OURS[kind, name]
    assert f"{ours['roleRef']['kind']}/{ours['roleRef']['name']}" == binding["roleRef"]
    lacking = subjects(binding["subjects"]) - subjects(ours.get("subjects"))
    assert not unexplained(LACKING, name, lacking)
    assert subjects(ours.get("subjects")) <= subjects(binding["subjects"])


def test_labels_gather_the_same_parts():
    for name, role in UPSTREAM["clusterRoles"].items():
        wanted = {key: value for key, value in role.get("labels", {}).items() if "aggregate-to" in key}
        held = OURS["ClusterRole", name]["metadata"]["labels"]
        assert {key: value for key, value in held.items() if "aggregate-to" in key} == wanted


def test_what_upstream_does_not_have_is_ours_by_name():
    theirs = {(kind, name) for kind, name, _ in (*ROLES, *BINDINGS)}
    gated = "system:controller:resourcepoolstatusrequest-controller"  # upstream's, with its gate on
    metering = "system:aggregated-metrics-reader"  # of whoever serves metrics.k8s.io: here the server does
    assert {name for _, name in OURS.keys() - theirs if not name.startswith("allot:")} == {gated, metering}


@pytest.mark.parametrize("table", [LACKING, MORE], ids=["lacking", "more"])
def test_every_reason_is_still_needed(table):
    for reason, (who, what) in table.items():
        lacking = {
            one
            for kind, name, role in ROLES
            if re.fullmatch(who, name) and "rules" in role
            for one in rights(role["rules"]) ^ rights(OURS[kind, name]["rules"])
        } | {
            one
            for kind, name, binding in BINDINGS
            if re.fullmatch(who, name)
            for one in subjects(binding["subjects"]) ^ subjects(OURS[kind, name].get("subjects"))
        }
        assert any(re.fullmatch(what, one) for one in lacking), reason
