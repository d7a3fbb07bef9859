"""How a certificate is made: EC P-256 keys, SHA-256, and as few fields as will do.

This file, `jwt` and the store's `envelope` are the only ones that speak to
`cryptography`. They are imported where a certificate, a token or an encrypted value
is needed, because the library costs some tens of milliseconds and most commands need
none of them.
"""

import ipaddress
import warnings
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = timedelta(minutes=5)
"""Certificates are valid a little earlier than now, for clients whose clock is late."""

SERVER = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


class Pem(NamedTuple):
    certificate: bytes
    key: bytes


def self_signed(name: str, now: datetime, lifetime: timedelta) -> Pem:
    """A CA that may sign leaves and no further CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name, ())
    builder = (
        _builder(subject, subject, key, now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, key)


def issue(
    ca: Pem,
    name: str,
    usages: Sequence[x509.ObjectIdentifier],
    now: datetime,
    lifetime: timedelta,
    *,
    organizations: Iterable[str] = (),
    reached_as: Iterable[str] = (),
) -> Pem:
    """A leaf that never outlives its CA."""
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetime, issuer.not_valid_after_utc)
    builder = (
        _builder(_subject(name, organizations), issuer.subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_authority_key(issuer), critical=False)
    )
    alternatives = [_alternative(name) for name in dict.fromkeys(reached_as)]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return _signed(builder, key, load_key(ca.key))


def new_key() -> bytes:
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not a private key on the curve P-256")
    return key


def belong_together(certificate: bytes, key: bytes) -> bool:
    """Is this the key of that certificate? ValueError where one of them is not what it should be."""
    found = x509.load_pem_x509_certificate(certificate)
    try:
        return found.public_key() == load_key(key).public_key()
    except TypeError as encrypted:
        raise ValueError("the key is encrypted") from encrypted


def expiry(certificate: bytes) -> datetime:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def serial(certificate: bytes) -> str:
    """Hexadecimal, lower case, without leading zeros."""
    return f"{x509.load_pem_x509_certificate(certificate).serial_number:x}"


def is_issued_by(certificate: bytes, ca: bytes) -> bool:
    try:
        leaf, issuer = x509.load_pem_x509_certificate(certificate), x509.load_pem_x509_certificate(ca)
        leaf.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def is_reached_as(certificate: bytes, names: Iterable[str]) -> bool:
    """Does the certificate of a server stand for every one of these names?"""
    extensions = x509.load_pem_x509_certificate(certificate).extensions
    try:
        found = set(extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return False
    return {_alternative(name) for name in names} <= found


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(until)
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> Pem:
    return Pem(builder.sign(signer, SHA256()).public_bytes(Encoding.PEM), _key_pem(key))


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _subject(name: str, organizations: Iterable[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    with warnings.catch_warnings():
        # X.520 ends a common name at 64 characters. Nodes and service accounts may be longer,
        # and neither OpenSSL nor Go, on both ends of our connections, mind.
        warnings.simplefilter("ignore", UserWarning)
        common_name = x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)
    return x509.Name([*attributes, common_name])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found)
