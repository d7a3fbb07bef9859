"""What the audit log says of requests to a real server, and what it leaves out."""

import asyncio
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from allot.api import Request, Response, User, transaction
from allot.apiserver import ApiServer, AuditSettings, Level, identities
from allot.apiserver.audit import Answered, open_audit
from allot.apiserver.audit.event import LINE_BYTES_MAX
from allot.apiserver.audit.flood import REFUSALS_PER_S
from allot.base import RandomIds, SystemClock
from allot.store import MemoryStore

ANN = identities.user("ann", "readers")
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "key"},
    "stringData": {"password": "hunter2-plain"},
}


class Recorded:
    """A server whose audit log lies at `path`."""

    def __init__(self, path, level=Level.CHANGES):
        self.path = path
        self.runner = asyncio.Runner()
        self.audit = open_audit(AuditSettings(path, level), SystemClock(), RandomIds())
        self.server = ApiServer(MemoryStore(), audit=self.audit)
        self.runner.run(self.server.start())

    def ask(self, method, path, body=None, user=identities.ADMIN, query=(), **headers):
        raw = b"" if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        request = Request(method, path, dict(query), sent, raw, "192.0.2.7")

        async def answered():
            response = await self.server.handle(request, user)
            if response.stream is not None:
                await response.stream.aclose()
            return response

        return self.runner.run(answered())

    def close(self):
        self.runner.run(self.server.close())
        self.audit.close()
        self.runner.close()


@contextmanager
def recorded(path, level=Level.CHANGES):
    one = Recorded(path, level)
    try:
        yield one
    finally:
        one.close()


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_write_is_recorded_with_who_what_and_the_verdict(tmp_path):
    log = tmp_path / "audit.log"
    with recorded(log) as server:
        before = datetime.now(UTC)
        body = {"metadata": {"generateName": "conf-"}, "data": {"a": "not for the log"}}
        answer = server.ask(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            body,
            user_agent="kubectl/1.37",
            authorization="Bearer x",
        )
        assert answer.status == 201
    (line,) = lines(log)
    name = json.loads(answer.body)["metadata"]["name"]
    assert line["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": name,
        "apiVersion": "v1",
    }
    assert line["user"] == {
        "username": "allot-admin",
        "groups": ["allot:cluster-admins", "system:authenticated"],
    }
    assert (line["verb"], line["responseStatus"]) == ("create", {"metadata": {}, "code": 201})
    assert line["sourceIPs"] == ["192.0.2.7"] and line["userAgent"] == "kubectl/1.37"
    assert dict(answer.headers)["Audit-Id"] == line["auditID"]
    received = datetime.strptime(line["requestReceivedTimestamp"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert abs(received - before) < timedelta(minutes=1)
    assert "not for the log" not in log.read_text() and "Bearer" not in log.read_text()


def test_a_refusal_is_recorded_with_its_reason(tmp_path):
    log = tmp_path / "audit.log"
    with recorded(log, Level.REFUSALS) as server:
        assert server.ask("GET", "/api/v1/nodes", user=ANN).status == 403
        assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}).status == 201
    (line,) = lines(log)
    assert (line["verb"], line["user"]["username"]) == ("list", "ann")
    assert line["responseStatus"] == {"metadata": {}, "code": 403, "reason": "Forbidden"}


def test_acting_as_somebody_else_is_recorded_with_both_whether_allowed_or_not(tmp_path):
    log = tmp_path / "audit.log"
    as_bob = {"impersonate_user": "bob", "impersonate_group": "a\nb"}
    with recorded(log, Level.REFUSALS) as server:
        assert server.ask("GET", "/version", user=identities.ADMIN, **as_bob).status == 200
        assert server.ask("GET", "/api/v1/pods", user=ANN, **as_bob).status == 403
    allowed, refused = lines(log)
    assert allowed["user"]["username"] == "allot-admin"
    assert allowed["impersonatedUser"] == {"username": "bob", "groups": ["a", "b", "system:authenticated"]}
    assert (allowed["verb"], allowed["requestURI"]) == ("get", "/version")
    assert (refused["user"]["username"], refused["impersonatedUser"]["username"]) == ("ann", "bob")
    assert refused["objectRef"]["resource"] == "pods"


def test_looking_at_secrets_is_recorded_and_their_content_is_not(tmp_path):
    log = tmp_path / "audit.log"
    base = "/api/v1/namespaces/default/secrets"
    with recorded(log) as server:
        assert server.ask("POST", base, SECRET).status == 201
        assert server.ask("GET", f"{base}/key").status == 200
        assert server.ask("GET", base, query={"fieldSelector": "metadata.name=x-query"}).status == 200
        assert server.ask("GET", base, query={"watch": "1", "timeoutSeconds": "1"}).status == 200
        assert server.ask("GET", "/api/v1/namespaces/default/configmaps").status == 200
    verbs = [(line["verb"], line["objectRef"]["resource"]) for line in lines(log)]
    assert verbs == [(verb, "secrets") for verb in ("create", "get", "list", "watch")]
    text = log.read_text()
    assert "hunter2" not in text and "aHVudGVyMi1wbGFpbg" not in text and "x-query" not in text


def test_looking_into_a_pod_is_recorded(tmp_path):
    """Whatever comes of it: asking for it is enough."""
    log = tmp_path / "audit.log"
    inside = ("attach", "exec", "log", "portforward", "proxy")
    with recorded(log) as server:
        for subresource in ("status", *inside):
            server.ask("GET", f"/api/v1/namespaces/default/pods/web/{subresource}")
    said = [line["objectRef"]["subresource"] for line in lines(log)]
    assert said == [*inside]


def test_making_a_token_is_recorded_and_the_token_is_not(tmp_path):
    log = tmp_path / "audit.log"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    with recorded(log) as server:
        assert server.ask("POST", accounts, {"metadata": {"name": "robot"}}).status == 201
        made = server.ask("POST", f"{accounts}/robot/token", {"spec": {}})
        token = json.loads(made.body)["status"]["token"]
        review = {"spec": {"token": token}}
        assert server.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).status == 201
    _, minted, reviewed = lines(log)
    assert (minted["objectRef"]["subresource"], minted["objectRef"]["name"]) == ("token", "robot")
    assert reviewed["objectRef"]["resource"] == "tokenreviews"
    assert token not in log.read_text()


def test_what_would_drown_the_rest_is_left_to_the_level_all(tmp_path):
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    seen = {}
    for level in (Level.CHANGES, Level.ALL):
        log = tmp_path / level.value
        with recorded(log, level) as server:
            lease = json.loads(server.ask("POST", leases, {"metadata": {"name": "l"}}).body)
            assert server.ask("PUT", f"{leases}/l", lease).status == 200
            assert (
                server.ask(
                    "PUT", f"{leases}/l", {**lease, "metadata": {**lease["metadata"], "uid": "x"}}
                ).status
                == 409
            )
            review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
            path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            assert server.ask("POST", path, review).status == 201
            assert server.ask("GET", leases).status == 200
        seen[level] = [(line["verb"], line["responseStatus"]["code"]) for line in lines(log)]
    assert seen[Level.CHANGES] == [("create", 201), ("update", 409)]
    assert seen[Level.ALL] == [
        ("create", 201),
        ("update", 200),
        ("update", 409),
        ("create", 201),
        ("list", 200),
    ]


def test_a_status_that_is_written_with_its_object_is_said(tmp_path):
    log = tmp_path / "audit.log"
    with recorded(log) as server:
        path = "/api/v1/namespaces/default/pods"
        spec = {"containers": [{"name": "main", "image": "app:1"}]}
        body = {"metadata": {"name": "p"}, "spec": spec, "status": {"message": "new"}}
        member = {"method": "POST", "path": path, "body": body, "with": "status"}
        assert server.ask("POST", transaction.PATH, {"spec": {"requests": [member]}}).status == 201
    (line,) = (one for one in lines(log) if one["requestURI"] == path)
    assert line["annotations"].pop("audit.allot.dev/transaction")
    assert line["annotations"] == {"audit.allot.dev/with": "status"}


def test_a_dry_run_says_so(tmp_path):
    log = tmp_path / "audit.log"
    with recorded(log) as server:
        made = server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}, query={"dryRun": "All"})
        assert made.status == 201
    (line,) = lines(log)
    assert line["annotations"] == {"audit.allot.dev/dry-run": "true"}


@pytest.mark.parametrize("hostile", ["a\nb\r\n{}", "\u2028" * 100_000, "\x00" * 300_000, "half \ud800 of it"])
def test_no_name_breaks_a_line_or_makes_it_long(tmp_path, hostile):
    """In the path, the user's name and groups, the agent, and the one that is impersonated."""
    log = tmp_path / "audit.log"
    groups = tuple(f"{hostile}{number}" for number in range(500))
    audit = open_audit(AuditSettings(log), SystemClock(), RandomIds())
    user = User(hostile, groups, hostile)
    request = Request("POST", f"/{hostile}", {}, {"user-agent": hostile})
    audit.answered(Answered(request, user, user, None, 0.1), Response(201))
    audit.close()
    (raw,) = log.read_bytes().split(b"\n")[:-1]
    assert len(raw) < LINE_BYTES_MAX
    line = json.loads(raw)
    assert line["user"]["username"][:3] == hostile[:3]
    assert line["user"]["groups"][-1] == "… and 492 more"


def test_who_is_refused_all_the_time_does_not_fill_the_log(tmp_path):
    log = tmp_path / "audit.log"
    with recorded(log) as server:
        for _ in range(4 * REFUSALS_PER_S):
            assert server.ask("GET", "/api/v1/nodes", user=ANN).status == 403
        assert server.ask("GET", "/api/v1/nodes", user=identities.user("eve")).status == 403
    found = lines(log)
    of_ann = [
        line
        for line in found
        if line.get("user") == {"username": "ann", "groups": ["readers", "system:authenticated"]}
    ]
    left_out = [line for line in found if line["kind"] == "RefusalsLeftOut"]
    assert len(of_ann) < 4 * REFUSALS_PER_S
    assert len(of_ann) + sum(line["count"] for line in left_out) == 4 * REFUSALS_PER_S
    assert {line["user"] for line in left_out} == {"ann"}
    assert any(line.get("user", {}) != "ann" and "eve" in str(line["user"]) for line in found)


def test_a_transaction_is_recorded_and_each_of_its_members(tmp_path):
    """TXN3: with the verdict of its own, or as not carried out for the sake of another; and with where all of
    it came from."""
    log = tmp_path / "audit.log"
    configs = "/api/v1/namespaces/default/configmaps"

    def make(*names):
        bodies = ({"metadata": {"name": name}} for name in names)
        return {"spec": {"requests": [{"method": "POST", "path": configs, "body": body} for body in bodies]}}

    boss = {"impersonate_user": "boss", "impersonate_group": "system:masters", "user_agent": "kubectl/1.37"}
    with recorded(log) as server:
        server.ask("POST", transaction.PATH, make("a", "b"), **boss)
        server.ask("POST", transaction.PATH, make("c", "a", "d"), **boss)
    seen = [
        (one["objectRef"]["resource"], one["objectRef"].get("name"), one["responseStatus"]["code"])
        for one in lines(log)
    ]
    assert seen == [
        ("configmaps", "a", 201),
        ("configmaps", "b", 201),
        ("transactions", None, 201),
        ("configmaps", None, 424),
        ("configmaps", None, 409),
        ("configmaps", None, 424),
        ("transactions", None, 409),
    ]
    assert {one["impersonatedUser"]["username"] for one in lines(log)} == {"boss"}
    assert {one["user"]["username"] for one in lines(log)} == {"allot-admin"}
    assert {(*one["sourceIPs"], one["userAgent"]) for one in lines(log)} == {("192.0.2.7", "kubectl/1.37")}
    belongs = [one.get("annotations", {}).get("audit.allot.dev/transaction") for one in lines(log)]
    first, second = (one["auditID"] for one in lines(log) if one["objectRef"]["resource"] == "transactions")
    assert belongs == [first, first, None, second, second, second, None]
    assert len({one["auditID"] for one in lines(log)}) == len(belongs)


def test_members_of_a_dry_run_are_marked_as_it_is(tmp_path):
    """Also those that were refused, and those behind them: none of it was ever to be stored."""
    log = tmp_path / "audit.log"
    configs = "/api/v1/namespaces/default/configmaps"
    make = {"method": "POST", "path": configs, "body": {"metadata": {"name": "a"}}}
    with recorded(log) as server:
        for query in ({"dryRun": "All"}, {}):
            for members in ([make], [make, make, make]):
                server.ask("POST", transaction.PATH, {"spec": {"requests": members}}, query=query)
    marks = [
        one["annotations"].get("audit.allot.dev/dry-run") if "annotations" in one else None
        for one in lines(log)
    ]
    codes = [one["responseStatus"]["code"] for one in lines(log)]
    assert codes[:6] == [201, 201, 424, 409, 424, 409]
    assert marks == ["true"] * 6 + [None] * 6
