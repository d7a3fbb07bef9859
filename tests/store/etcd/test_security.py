"""TLS with certificates on both sides, and users with passwords."""

import asyncio
import datetime
import ipaddress
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from allot.store import Committed, Put, Unavailable, open_store
from allot.store.etcd import connection
from components import Etcd, etcd

from ..places import run, take


def certificate(folder: Path, name: str, issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None):
    """Write NAME.crt and NAME.key, signed by the issuer or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0] if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(issuer[1] if issuer else key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return subject, key


def test_a_cluster_with_tls_is_reached_with_the_right_certificate_only(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE_S", 1.0)
    authority = certificate(tmp_path, "ca")
    for name in ("server", "client"):
        certificate(tmp_path, name, authority)
    certificate(tmp_path, "stranger")
    flags = [
        f"--cert-file={tmp_path}/server.crt",
        f"--key-file={tmp_path}/server.key",
        "--client-cert-auth=true",
        f"--trusted-ca-file={tmp_path}/ca.crt",
    ]

    async def story(url: str) -> None:
        ours = open_store(f"{url}?ca={tmp_path}/ca.crt&cert={tmp_path}/client.crt&key={tmp_path}/client.key")
        assert isinstance(await ours.transact([], [Put("/a", b"")]), Committed)
        await ours.close()
        for other in ("", f"?ca={tmp_path}/ca.crt", f"?ca={tmp_path}/stranger.crt"):
            stranger = open_store(url + other)
            with pytest.raises(Unavailable):
                await stranger.get("/a")
            await stranger.close()

    with etcd(extra=flags, scheme="https") as cluster:
        run(story(cluster.url()))


def require_passwords(cluster: Etcd) -> None:
    """Create the user root and switch authentication on: four calls that the store itself never makes."""

    async def switch_on() -> None:
        async with grpc.aio.insecure_channel(cluster.members[0].client) as channel:
            for method, fields in {
                "UserAdd": (b"root", b"s3cret"),
                "RoleAdd": (b"root",),
                "UserGrantRole": (b"root", b"root"),
                "AuthEnable": (),
            }.items():
                body = b"".join(bytes([8 * n + 2, len(text)]) + text for n, text in enumerate(fields, 1))
                await channel.unary_unary(f"/etcdserverpb.Auth/{method}")(body, timeout=10)

    asyncio.run(switch_on())


def test_a_cluster_with_passwords_lets_in_who_knows_one(tmp_path: Path):
    """The token expires while we watch and write; it is renewed without anybody noticing."""

    async def story(url: str) -> None:
        ours = open_store(url.replace("etcd://", "etcd://root:s3cret@"))
        start = await ours.revision()
        watch = ours.watch("", start)
        reading = asyncio.ensure_future(take(watch, 2, 20))
        assert isinstance(await ours.transact([], [Put("/a", b"")]), Committed)
        await asyncio.sleep(3.5)
        late = ours.watch("", start)
        assert [event.key for event in await take(late, 1)] == ["/a"]
        await asyncio.sleep(3.5)
        assert isinstance(await ours.transact([], [Put("/b", b"")]), Committed)
        assert [event.key for event in await reading] == ["/a", "/b"]
        await ours.close()

        for wrong in ("etcd://", "etcd://root:guess@"):
            stranger = open_store(url.replace("etcd://", wrong))
            with pytest.raises(Unavailable, match="refused"):
                await stranger.get("/a")
            with pytest.raises(Unavailable, match="refused"):
                await take(stranger.watch("", 1), 1)
            await stranger.close()

    with etcd(extra=["--auth-token-ttl=1"]) as cluster:
        require_passwords(cluster)
        run(story(cluster.url()))
