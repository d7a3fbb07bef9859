"""Keys, certificates and kubeconfigs, up to a real TLS handshake."""

import json
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from allot.apiserver.security import (
    SERVING_NAMES,
    Authority,
    BadKeyFiles,
    Kubeconfig,
    certified,
    identities,
    open_authority,
    open_serving,
    read_authority,
    server_context,
    user_of_certificate,
    user_of_der,
)

NOW = datetime.now(UTC)
AUTHORITY = Authority.create(NOW)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_authority_is_made_once_and_kept_private(tmp_path):
    first = open_authority(tmp_path / "data", NOW)
    assert open_authority(tmp_path / "data", NOW) == first
    pki = tmp_path / "data" / "pki"
    assert (mode(tmp_path / "data"), mode(pki)) == (0o700, 0o700)
    assert {mode(file) for file in pki.iterdir()} == {0o600}
    assert (pki / "ca.crt").read_bytes() == first.ca.certificate


def test_an_authority_travels_through_a_shared_store():
    assert Authority.from_bytes(AUTHORITY.to_bytes()) == AUTHORITY


def test_two_processes_that_start_at_once_agree(tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(open_authority(tmp_path, NOW))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_a_key_that_others_could_have_read_is_not_used(tmp_path):
    open_authority(tmp_path, NOW)
    (tmp_path / "pki" / "authority.json").chmod(0o644)
    with pytest.raises(BadKeyFiles, match="others can read"):
        read_authority(tmp_path)


def test_a_torn_key_file_is_an_error_with_advice_not_a_new_cluster(tmp_path):
    open_authority(tmp_path, NOW)
    path = tmp_path / "pki" / "authority.json"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BadKeyFiles, match="restore it, or remove it"):
        open_authority(tmp_path, NOW)


@pytest.mark.parametrize("part", ["ca.crt", "ca.key", "token.keys"])
def test_a_key_file_whose_keys_are_none_is_an_error_that_names_it(tmp_path, part):
    open_authority(tmp_path, NOW)
    path = tmp_path / "pki" / "authority.json"
    record = json.loads(path.read_bytes())
    record[part] = ["nonsense"] if part == "token.keys" else "nonsense"
    path.write_text(json.dumps(record))
    with pytest.raises(BadKeyFiles, match=r"authority\.json cannot be read"):
        open_authority(tmp_path, NOW)


def test_keys_that_do_not_belong_together_are_not_used(tmp_path):
    open_authority(tmp_path, NOW)
    path = tmp_path / "pki" / "authority.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "ca.key": AUTHORITY.ca.key.decode()}))
    with pytest.raises(BadKeyFiles, match=r"ca\.key is not the key of ca\.crt"):
        open_authority(tmp_path, NOW)


def test_a_serving_key_that_others_could_have_read_is_not_used(tmp_path):
    open_serving(tmp_path, AUTHORITY, ["localhost"], NOW)
    (tmp_path / "pki" / "server.key").chmod(0o640)
    with pytest.raises(BadKeyFiles, match=r"others can read .*server\.key: make it 0600"):
        open_serving(tmp_path, AUTHORITY, ["localhost"], NOW)


@pytest.mark.parametrize("junk", [b"nonsense", AUTHORITY.ca.key, b""], ids=["nonsense", "another", "empty"])
def test_a_serving_key_that_is_none_or_another_is_made_anew(tmp_path, junk):
    files = open_serving(tmp_path, AUTHORITY, ["localhost"], NOW)
    files.key.write_bytes(junk)
    server_context(open_serving(tmp_path, AUTHORITY, ["localhost"], NOW), AUTHORITY.ca.certificate)
    assert files.key.read_bytes() != junk


def test_a_serving_certificate_is_kept_until_it_runs_out_or_the_names_change(tmp_path):
    names = ["localhost", "127.0.0.1"]
    first = open_serving(tmp_path, AUTHORITY, names, NOW).certificate.read_bytes()
    later = NOW + timedelta(days=200)
    assert open_serving(tmp_path, AUTHORITY, names, later).certificate.read_bytes() == first
    soon_over = NOW + timedelta(days=310)
    renewed = open_serving(tmp_path, AUTHORITY, names, soon_over).certificate.read_bytes()
    assert renewed != first
    named = open_serving(tmp_path, AUTHORITY, [*names, "db.example"], soon_over).certificate.read_bytes()
    assert named != renewed
    other = open_serving(tmp_path, Authority.create(NOW), names, soon_over).certificate.read_bytes()
    assert other != named
    (tmp_path / "pki" / "server.crt").write_text("nonsense")
    assert open_serving(tmp_path, AUTHORITY, names, NOW).certificate.read_bytes().startswith(b"-----BEGIN")


def test_a_leaf_does_not_outlive_its_authority():
    from allot.apiserver.security.issuing import expiry

    late = NOW + timedelta(days=3640)
    assert expiry(AUTHORITY.client("ann", [], late).certificate) == AUTHORITY.expires()


def handshake(tmp_path, client=None, serving_as_client=False):
    """What the server learns about a client over real TLS: (peer certificate, error)."""
    files = open_serving(tmp_path, AUTHORITY, SERVING_NAMES, NOW)
    context = server_context(files, AUTHORITY.ca.certificate)
    theirs = ssl.create_default_context(cadata=AUTHORITY.ca.certificate.decode())
    if serving_as_client:
        theirs.load_cert_chain(files.certificate, files.key)
    if client is not None:
        pair = tmp_path / "client.pem"
        pair.write_bytes(client.certificate + client.key)
        theirs.load_cert_chain(pair)
    ours, other = socket.socketpair()
    failed = []

    def connect():
        try:
            with theirs.wrap_socket(other, server_hostname="localhost") as tls:
                tls.sendall(b"x")
                tls.recv(1)
        except (OSError, ssl.SSLError) as error:
            failed.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        with context.wrap_socket(ours, server_side=True) as tls:
            tls.recv(1)
            return tls.getpeercert(), tls.getpeercert(binary_form=True)
    finally:
        thread.join()


@pytest.mark.parametrize(
    "name",
    ["ann", "system:serviceaccount:kube-system:device-taint-eviction-controller", "system:node:" + "n" * 253],
)
def test_a_client_certificate_names_its_user_and_groups(tmp_path, name):
    peer, der = handshake(tmp_path, AUTHORITY.client(name, ["team", "ops"], NOW))
    user = user_of_certificate(peer)
    assert user is not None
    assert (user.name, user.groups) == (name, ("team", "ops", "system:authenticated"))
    until = certified(peer).until
    assert abs(until - NOW - timedelta(days=365)) < timedelta(minutes=1)
    same = user_of_der(der)
    assert same is not None and (same.name, same.groups) == (user.name, user.groups)
    assert same.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_client_without_a_certificate_is_let_in_as_nobody(tmp_path):
    peer, _ = handshake(tmp_path)
    assert user_of_certificate(peer) is None


def test_a_strangers_certificate_ends_the_handshake(tmp_path):
    with pytest.raises(ssl.SSLError):
        handshake(tmp_path, Authority.create(NOW).client("ann", [], NOW))


def test_a_certificate_that_ran_out_ends_the_handshake(tmp_path):
    old = AUTHORITY.client("ann", [], NOW - timedelta(days=2), timedelta(days=1))
    with pytest.raises(ssl.SSLError):
        handshake(tmp_path, old)


def test_the_servers_own_certificate_does_not_serve_as_a_clients(tmp_path):
    with pytest.raises(ssl.SSLError):
        handshake(tmp_path, serving_as_client=True)


def test_sessions_are_not_resumed(tmp_path):
    """A resumed session skips the check of the certificate, which may have run out since."""
    context = server_context(open_serving(tmp_path, AUTHORITY, SERVING_NAMES, NOW), AUTHORITY.ca.certificate)
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET


@pytest.mark.parametrize(
    "subject",
    [
        (),
        ((("organizationName", "system:masters"),),),
        ((("commonName", ""),),),
        ((("commonName", "ann"),), (("commonName", "root"),)),
    ],
)
def test_a_certificate_without_exactly_one_name_stands_for_nobody(subject):
    assert user_of_certificate({"subject": subject}) is None


@pytest.mark.parametrize("credential", [AUTHORITY.client("ann", [], NOW), "token-text"])
def test_a_kubeconfig_is_read_by_others_as_it_was_meant(credential):
    text = Kubeconfig("https://[::1]:6443", AUTHORITY.ca.certificate, 'a"n: #n', credential, "dev").text()
    found = yaml.safe_load(text)
    assert found["current-context"] == 'a"n: #n@allot'
    [context] = found["contexts"]
    assert context["context"] == {"cluster": "allot", "user": 'a"n: #n', "namespace": "dev"}
    [user] = found["users"]
    assert ("token" in user["user"]) == isinstance(credential, str)
    assert found["clusters"][0]["cluster"]["server"] == "https://[::1]:6443"


def test_names_imply_the_groups_that_come_with_them():
    groups = identities.well_known_groups
    assert groups("system:node:n1") == ("system:nodes",)
    assert groups("system:serviceaccount:dev:bot") == ("system:serviceaccounts", "system:serviceaccounts:dev")
    assert groups(identities.ADMIN_NAME) == (identities.CLUSTER_ADMINS,)
    assert groups("ann") == ()
