"""Addresses and their ranges: `ip("10.0.0.1")`, `cidr("10.0.0.0/8").containsIP(...)`.

Reading is strict: no leading zeros, no zones, no IPv4 in IPv6 clothing.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from re import ASCII, compile
from typing import Final

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import BOOL, CIDR, INT, IP, STRING
from ..values import register

Address = IPv4Address | IPv6Address
_TEXT_MAX: Final = 64
_BITS = compile("0|[1-9][0-9]{0,2}", ASCII)


@dataclass(frozen=True, slots=True)
class Cidr:
    address: Address  # as written, host bits included
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def masked(self) -> "Cidr":
        shift = self.address.max_prefixlen - self.bits
        return Cidr(type(self.address)(int(self.address) >> shift << shift), self.bits)

    def contains(self, address: Address) -> bool:
        if address.version != self.address.version:
            return False
        shift = self.address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift


register(IPv4Address, IP)
register(IPv6Address, IP)
register(Cidr, CIDR)


def parse_ip(text: str) -> Address:
    try:
        if len(text) > _TEXT_MAX or "%" in text:
            raise ValueError
        address = ip_address(text)
    except ValueError:
        raise EvaluationError(f"unable to parse IP {text[:_TEXT_MAX]!r}") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError("IPv4-mapped IPv6 address is not allowed")
    return address


def parse_cidr(text: str) -> Cidr:
    written, slash, bits = text.partition("/")
    address = parse_ip(written)
    if not slash or not _BITS.fullmatch(bits) or int(bits) > address.max_prefixlen:
        raise EvaluationError(f"unable to parse CIDR {text[:_TEXT_MAX]!r}")
    return Cidr(address, int(bits))


def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


def is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def is_global_unicast(address: Address) -> bool:
    """Go's meaning: private ranges count, broadcast does not."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or (int(address) == 0xFFFFFFFF and isinstance(address, IPv4Address))
    )


def contains_cidr(outer: Cidr, inner: Cidr) -> bool:
    return outer.bits <= inner.bits and outer.contains(inner.address)


DECLARATIONS: Final = (
    function("ip", "string_to_ip", (STRING,), IP, parse_ip),
    function("isIP", "is_ip", (STRING,), BOOL, is_ip),
    function("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, lambda text: str(parse_ip(text)) == text),
    method("family", "ip_family", (IP,), INT, lambda address: address.version),
    method("isUnspecified", "ip_is_unspecified", (IP,), BOOL, lambda ip: ip.is_unspecified),
    method("isLoopback", "ip_is_loopback", (IP,), BOOL, lambda ip: ip.is_loopback),
    method("isLinkLocalMulticast", "ip_is_link_local_multicast", (IP,), BOOL, is_link_local_multicast),
    method(
        "isLinkLocalUnicast", "ip_is_link_local_unicast", (IP,), BOOL, lambda address: address.is_link_local
    ),
    method("isGlobalUnicast", "ip_is_global_unicast", (IP,), BOOL, is_global_unicast),
    function("string", "ip_to_string", (IP,), STRING, str),
    function("cidr", "string_to_cidr", (STRING,), CIDR, parse_cidr),
    function("isCIDR", "is_cidr", (STRING,), BOOL, is_cidr),
    method("containsIP", "cidr_contains_ip_ip", (CIDR, IP), BOOL, Cidr.contains),
    method(
        "containsIP",
        "cidr_contains_ip_string",
        (CIDR, STRING),
        BOOL,
        lambda c, text: c.contains(parse_ip(text)),
    ),
    method("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), BOOL, contains_cidr),
    method(
        "containsCIDR",
        "cidr_contains_cidr_string",
        (CIDR, STRING),
        BOOL,
        lambda outer, text: contains_cidr(outer, parse_cidr(text)),
    ),
    method("ip", "cidr_ip", (CIDR,), IP, lambda c: c.address),
    method("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda c: c.bits),
    method("masked", "cidr_masked", (CIDR,), CIDR, Cidr.masked),
    function("string", "cidr_to_string", (CIDR,), STRING, str),
)
