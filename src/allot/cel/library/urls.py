"""Addresses on the web: `url("https://example.com:80/a?b=c").getHost()`.

Read as a server would read a request's target: absolute, or a path from the root,
and without a fragment.
"""

from dataclasses import dataclass
from re import ASCII, compile
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import BOOL, STRING, URL, list_of, map_of
from ..values import register

_SCHEME = compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", ASCII)
_HOST = compile(r"(?:[^@/]*@)?(\[[^\]\s]*\]|[^\s:\[\]<>\"]*)(?::(\d*))?", ASCII)
_BAD_ESCAPE = compile(r"%(?![0-9a-fA-F]{2})", ASCII)
_VALID_PATH = compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]%]*", ASCII)


@dataclass(frozen=True, slots=True)
class Url:
    text: str
    scheme: str
    host: str
    port: str
    path: str
    query: str

    @property
    def hostname(self) -> str:
        host = self.host.removesuffix(f":{self.port}") if self.port else self.host.removesuffix(":")
        return host[1:-1] if host.startswith("[") else host


register(Url, URL)


def parse(text: str) -> Url:
    found = _SCHEME.fullmatch(text)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", text)
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text) or not (scheme or rest.startswith("/")):
        raise _unreadable(text)
    rest, _, query = rest.partition("?")
    if scheme and not rest.startswith("/"):
        return Url(text, scheme, "", "", "", query)  # mailto:someone
    host = port = ""
    path = rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, after = rest[2:].partition("/")
        host, port = _host(authority, text)
        path = slash + after
    if _BAD_ESCAPE.search(path):
        raise _unreadable(text)
    return Url(text, scheme, host, port, path, query)


def _unreadable(text: str) -> EvaluationError:
    return EvaluationError(f"URL parse error during conversion from string: {text[:64]!r}")


def _host(authority: str, text: str) -> tuple[str, str]:
    found = _HOST.fullmatch(authority)
    if found is None or _BAD_ESCAPE.search(found[1]):
        raise _unreadable(text)
    port = found[2] or ""
    return (f"{found[1]}:{port}" if found[2] is not None else found[1]), port


def is_url(text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def escaped_path(url: Url) -> str:
    if _VALID_PATH.fullmatch(url.path):
        return url.path
    return quote(unquote(url.path), safe="/!$&'()*+,;=:@~-._")


def query(url: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


DECLARATIONS: Final = (
    function("url", "string_to_url", (STRING,), URL, parse),
    function("isURL", "is_url_string", (STRING,), BOOL, is_url),
    method("getScheme", "url_get_scheme", (URL,), STRING, lambda url: url.scheme),
    method("getHost", "url_get_host", (URL,), STRING, lambda url: url.host),
    method("getHostname", "url_get_hostname", (URL,), STRING, lambda url: url.hostname),
    method("getPort", "url_get_port", (URL,), STRING, lambda url: url.port),
    method("getEscapedPath", "url_get_escaped_path", (URL,), STRING, escaped_path),
    method("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), query),
)
