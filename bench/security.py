"""What it costs to know who is asking and whether they may.

    bench/security.py [--namespaces N]

Prints one JSON object, in microseconds per operation unless the name says
otherwise. The cluster has the default roles, and in each of N namespaces an admin
and a viewer bound by role bindings and a pod with a claim on one of N nodes.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from allot.api import Action, User
from allot.apiserver import security
from allot.apiserver.security.jwt import Keys
from allot.base import RandomIds

RBAC = "rbac.authorization.k8s.io"
NOW = datetime.now(UTC)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespaces", type=int, default=1000)
    options = parser.parse_args()
    started = time.perf_counter()
    authorizer = cluster(options.namespaces)
    loaded_s = time.perf_counter() - started
    figures = {
        "namespaces": options.namespaces,
        "load_s": round(loaded_s, 4),
        **authorization(authorizer, options.namespaces),
        **credentials(),
        "import_ms": round(import_ms(), 1),
    }
    print(json.dumps(figures))


def cluster(namespaces: int) -> security.Authorizer:
    authorizer = security.Authorizer()
    for fields in security.bootstrap_objects():
        metadata = fields["metadata"]
        plural = fields["kind"].lower() + "s"
        authorizer.observe(RBAC, plural, metadata.get("namespace", ""), metadata["name"], fields)
    for number in range(namespaces):
        namespace = f"team-{number}"
        for role in ("admin", "view"):
            authorizer.observe(RBAC, "rolebindings", namespace, role, binding(role, f"{role}-{number}"))
        authorizer.observe("", "pods", namespace, "web", pod(namespace, f"node-{number}"))
    return authorizer


def binding(role: str, user: str) -> dict[str, Any]:
    return {
        "metadata": {"name": role},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


def pod(namespace: str, node: str) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    return {
        "metadata": {"name": "web", "namespace": namespace, "uid": "u"},
        "spec": {"nodeName": node, "containers": [], "resourceClaims": claims},
    }


def authorization(authorizer: security.Authorizer, namespaces: int) -> dict[str, float]:
    users = [security.identities.user(f"view-{number}") for number in range(namespaces)]
    gets = [Action("get", "", "pods", "", f"team-{number}", "web") for number in range(namespaces)]
    nodes = [security.identities.node(f"node-{number}") for number in range(namespaces)]
    claims = [
        Action("get", "resource.k8s.io", "resourceclaims", "", f"team-{number}", "gpu")
        for number in range(namespaces)
    ]

    def all_of(callers: list[User], actions: list[Action]) -> Callable[[], None]:
        def run() -> None:
            for user, action in zip(callers, actions, strict=True):
                assert authorizer.authorize(user, action).allowed

        return run

    def forget() -> None:
        authorizer.observe(RBAC, "rolebindings", "team-0", "admin", binding("admin", "admin-0"))

    first = each_us(all_of(users, gets), namespaces, before=forget)
    return {
        "authorize_first_us": first,
        "authorize_again_us": each_us(all_of(users, gets), namespaces),
        "authorize_node_us": each_us(all_of(nodes, claims), namespaces),
        "observe_binding_us": each_us(forget, rounds=2000),
    }


def credentials() -> dict[str, float]:
    authority = security.Authority.create(NOW)
    account: Mapping[str, Any] = {"metadata": {"name": "bot", "uid": "u"}}

    def lookup(resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        return account

    keys, ids = Keys(authority.token_keys), RandomIds()
    tokens = security.Tokens(keys, lookup)

    def mint() -> str:
        made = security.make_token(tokens, lookup, ids, NOW, "dev", "bot", {})
        return str(made["status"]["token"])

    minted = [mint() for _ in range(500)]

    def verify_all() -> None:
        fresh = security.Tokens(keys, lookup)
        for token in minted:
            fresh.verify(token, NOW)

    tokens.verify(minted[0], NOW)
    return {
        "token_verify_first_us": each_us(verify_all, len(minted)),
        "token_verify_again_us": each_us(lambda: tokens.verify(minted[0], NOW), rounds=20000),
        "token_mint_us": each_us(lambda: mint(), rounds=500),
        "client_certificate_us": each_us(
            lambda: authority.client("ann", ["team"], NOW, timedelta(days=1)), rounds=200
        ),
        "authority_create_us": each_us(lambda: security.Authority.create(NOW), rounds=100),
    }


def nothing() -> None:
    """What most measurements do before they start."""


def each_us(
    run: Callable[[], object], operations: int = 1, *, rounds: int = 5, before: Callable[[], None] = nothing
) -> float:
    """The best round, since whatever else the machine does only ever adds."""
    best = float("inf")
    for _ in range(rounds):
        before()
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return round(best / operations * 1e6, 2)


def import_ms() -> float:
    """What `cryptography` costs a process that needs it."""
    code = (
        "import time, allot.apiserver.security; started = time.perf_counter();"
        "import allot.apiserver.security.issuing; print(time.perf_counter() - started)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout) * 1000


if __name__ == "__main__":
    main()
