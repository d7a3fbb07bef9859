"""Schemathesis on our own OpenAPI documents, against a running server. Prints JSON.

    bench/fuzz.py [--examples N] [--groups apis/resource.k8s.io/v1,api/v1,...]

Every operation of every document is called with what its schema allows and with what
it does not. A 5xx or a request that takes longer than a few seconds is a finding.
"""

import argparse
import base64
import json
import ssl
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import hypothesis
import schemathesis
import yaml
from hypothesis import HealthCheck, settings

from apiserver import Server

SLOW_S = 5.0


class Access:
    """The administrator's way in, as files that an HTTP library can read."""

    def __init__(self, data_dir: Path) -> None:
        config = yaml.safe_load((data_dir / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.ca, self.pem = data_dir / "ca.pem", data_dir / "admin.pem"
        self.ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        certificate = base64.b64decode(user["client-certificate-data"])
        self.pem.write_bytes(certificate + base64.b64decode(user["client-key-data"]))

    def get(self, path: str) -> Any:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.pem)
        with urllib.request.urlopen(self.url + path, context=context) as answer:
            return json.load(answer)


def fuzz(access: Access, document: Any, examples: int, deadline: float) -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(document)
    report: dict[str, Any] = {"operations": 0, "calls": 0, "statuses": {}, "findings": []}

    for found in schema.get_all_operations():
        if time.perf_counter() > deadline:
            report["stopped"] = "out of time"
            break
        operation: Any = found.ok()  # type: ignore[union-attr]
        if "watch" in operation.path:
            continue
        report["operations"] += 1

        @settings(
            max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=[hypothesis.Phase.generate],
        )  # fmt: skip
        @hypothesis.given(case=operation.as_strategy())
        def call(case: Any) -> None:
            query = dict(case.query or {})
            query.pop("watch", None)
            query.pop("timeoutSeconds", None)
            case.query = query
            started = time.perf_counter()
            answer = case.call(base_url=access.url, verify=str(access.ca), cert=str(access.pem), timeout=30)
            seconds = time.perf_counter() - started
            status = str(answer.status_code)
            report["calls"] += 1
            report["statuses"][status] = report["statuses"].get(status, 0) + 1
            if (answer.status_code >= 500 and answer.status_code != 504) or seconds > SLOW_S:
                finding = {
                    "method": case.method,
                    "path": case.path,
                    "status": status,
                    "seconds": round(seconds, 2),
                }
                report["findings"].append(
                    {**finding, "body": str(case.body)[:300], "query": str(case.query)[:300]}
                )

        call()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument(
        "--groups",
        default="apis/resource.k8s.io/v1,apis/resource.k8s.io/v1beta1,api/v1,apis/apps/v1,"
        "apis/apiextensions.k8s.io/v1,apis/batch/v1,apis/policy/v1,apis/rbac.authorization.k8s.io/v1",
        help="roles come last: deleting all bindings takes our own rights away",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", "memory")
        try:
            access = Access(Path(folder) / "data")
            groups = options.groups.split(",")
            documents = {group: access.get(f"/openapi/v3/{group}") for group in groups}
            report = {}
            for number, (group, document) in enumerate(documents.items()):
                share = options.seconds / len(groups)
                report[group] = fuzz(access, document, options.examples, time.perf_counter() + share)
                print(f"{number + 1}/{len(groups)} {group}: {report[group]['statuses']}", file=sys.stderr)
        finally:
            server.stop()
    print(json.dumps(report, indent=1))
    return 1 if any(group["findings"] for group in report.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
