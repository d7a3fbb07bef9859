"""Client certificates that are taken back: the objects that say so, and what they do to connections."""

import asyncio
import json
import ssl

import pytest

from allot.api import User
from allot.apiserver import ServingOptions, identities, serve
from allot.apiserver.security import Authority, Certified, Revocations, certified, issued_from
from allot.apiserver.security.issued import record_issued
from allot.base import SystemClock
from allot.client import Client, InProcessTransport

PATH = "/apis/security.allot.dev/v1alpha1/credentialrevocations"
NOW = SystemClock().now()
PATIENCE_S = 30


def revocation(name="r", **spec):
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    "spec, wrong",
    [
        ({}, [("spec", "FieldValueRequired")]),
        ({"user": "ann", "serial": "1a"}, [("spec.serial", "FieldValueForbidden")]),
        ({"serial": "1A"}, [("spec.serial", "FieldValueInvalid")]),
        ({"serial": "01"}, [("spec.serial", "FieldValueInvalid")]),
        ({"serial": "1" * 41}, [("spec.serial", "FieldValueInvalid")]),
        ({"user": "x" * 1025}, [("spec.user", "FieldValueTooLong")]),
        ({"user": "ann", "reason": "x" * 1025}, [("spec.reason", "FieldValueTooLong")]),
    ],
)
def test_a_revocation_names_one_user_or_one_certificate(api, spec, wrong):
    answer = api("POST", PATH, revocation(**spec))
    assert (answer.status, answer.causes) == (422, wrong)


def test_what_is_revoked_is_not_changed_in_place(api):
    made = api("POST", PATH, revocation(user="ann"))
    assert made.status == 201
    changed = {**made.body, "spec": {"user": "bob", "reason": "left"}}
    assert api("PUT", f"{PATH}/r", changed).causes == [("spec.user", "FieldValueInvalid")]
    assert api("PUT", f"{PATH}/r", {**made.body, "spec": {"user": "ann", "reason": "left"}}).status == 200


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_nobody_but_a_cluster_administrator_revokes(api, role):
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    bound = {
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    }
    assert api("POST", bindings, bound).status == 201
    for method, path in (("POST", PATH), ("GET", PATH), ("DELETE", f"{PATH}/r")):
        assert api(method, path, revocation(user="x"), user=identities.user("ann")).status == 403


def of(name, serial):
    return Certified(User(name), NOW, serial)


def test_several_may_say_the_same_and_the_last_one_ends_it():
    known = Revocations()
    assert not known.covers(of("ann", "1a"))
    known.observe("one", revocation(user="ann"))
    known.observe("two", revocation(user="ann"))
    known.observe("three", revocation(serial="1a"))
    assert (
        known.covers(of("ann", "2b")) and known.covers(of("bob", "1a")) and not known.covers(of("bob", "2b"))
    )
    known.observe("one", None)
    assert known.covers(of("ann", "2b"))
    known.observe("two", None)
    assert not known.covers(of("ann", "2b")) and known.covers(of("ann", "1a"))


def test_the_serial_of_a_connection_is_the_one_that_was_recorded(tmp_path):
    """However OpenSSL spells it: the same number comes out of the certificate and the handshake."""
    authority = Authority.create(NOW)
    (tmp_path / "pki").mkdir()
    for _ in range(40):
        pair = authority.client("ann", [], NOW)
        path = tmp_path / "one.crt"
        path.write_bytes(pair.certificate)
        peer = ssl._ssl._test_decode_cert(str(path))  # what getpeercert() is made by
        one = record_issued(tmp_path, pair, "ann", ["team"], NOW)
        assert certified(peer).serial == one.serial
    assert [one.user for one in issued_from(tmp_path)] == ["ann"] * 40


async def talk(serving, pair, request):
    context = ssl.create_default_context(cadata=serving.authority.ca.certificate.decode())
    folder = serving.options.data_dir
    (folder / "c.crt").write_bytes(pair.certificate)
    (folder / "c.key").write_bytes(pair.key)
    context.load_cert_chain(folder / "c.crt", folder / "c.key")
    port = int(serving.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    return reader, writer, int(head.split()[1])


def test_whoever_is_revoked_is_put_out_and_not_let_in_again(tmp_path):
    """Their watch ends, their idle connection too, and new ones get a 401. Others notice nothing."""
    get = b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: localhost\r\n\r\n"
    watch = b"GET /api/v1/namespaces?watch=1&allowWatchBookmarks=true HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def story():
        serving = await serve(ServingOptions(tmp_path / "d", store="memory"))
        admin = Client(InProcessTransport(serving.api.handle, identities.ADMIN))
        group = [identities.CLUSTER_ADMINS]
        ann, spare, bob = (serving.authority.client(name, group, NOW) for name in ("ann", "ann", "bob"))
        watching, _, code = await talk(serving, ann, watch)
        idle, idle_writer, _ = await talk(serving, spare, get)
        other, other_writer, _ = await talk(serving, bob, get)
        assert code == 200
        revocations = admin.resource(
            "security.allot.dev", "v1alpha1", "credentialrevocations", namespaced=False
        )
        await revocations.create(revocation("ann", user="ann"))
        for reader in (watching, idle):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError, EOFError)):
                while True:
                    if not await asyncio.wait_for(reader.read(65536), PATIENCE_S):
                        raise EOFError
        idle_writer.close()
        for pair in (ann, spare):
            _, writer, code = await talk(serving, pair, get)
            assert code == 401
            writer.close()
        other_writer.write(get)
        assert b"200 OK" in await asyncio.wait_for(other.readuntil(b"\r\n\r\n"), PATIENCE_S)
        await revocations.delete("ann")
        for _ in range(500):
            _, writer, code = await talk(serving, ann, get)
            writer.close()
            if code == 200:
                break
        assert code == 200
        await admin.close()
        await serving.close()
        again = await serve(ServingOptions(tmp_path / "d", store="memory"))
        issued = issued_from(tmp_path / "d")
        assert [one.user for one in issued] == ["allot-admin", "allot-admin"]  # one a start
        await again.close()

    asyncio.run(story())


def test_revocations_are_known_before_the_first_request(tmp_path):
    async def story():
        serving = await serve(ServingOptions(tmp_path / "d"))
        admin = Client(InProcessTransport(serving.api.handle, identities.ADMIN))
        pair = serving.authority.client("ann", [], NOW)
        serial = record_issued(tmp_path / "d", pair, "ann", [], NOW).serial
        revocations = admin.resource(
            "security.allot.dev", "v1alpha1", "credentialrevocations", namespaced=False
        )
        await revocations.create(revocation("one", serial=serial))
        await admin.close()
        await serving.close()
        again = await serve(ServingOptions(tmp_path / "d"))
        request = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
        reader, writer, code = await talk(again, pair, request)
        assert code == 401
        writer.close()
        fresh = again.authority.client("ann", [], NOW)
        reader, writer, code = await talk(again, fresh, request)
        assert code == 200 and json.loads(await reader.readuntil(b"}"))["major"] == "1"
        writer.close()
        await again.close()

    asyncio.run(story())
