"""How things may be called: the shapes of names, labels and ports.

Each check takes a value and returns what is wrong with it, as the texts that
clients of Kubernetes know; an empty list means the value is fine. The texts do
not name the field: `field.invalid(path, value, text)` does.
"""

import ipaddress
import re
from functools import lru_cache

LABEL_MAX = 63
SUBDOMAIN_MAX = 253
ANNOTATIONS_BYTES_MAX = 256 * 1024
_REMEMBERED_LENGTH_MAX = SUBDOMAIN_MAX + LABEL_MAX + 1

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_label = re.compile(_LABEL)
_label_1035 = re.compile(_LABEL_1035)
_subdomain = re.compile(_SUBDOMAIN)
_qualified = re.compile(_QUALIFIED)
_plain_qualified = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")  # most are: no prefix
_label_value = re.compile(_LABEL_VALUE)
_config_key = re.compile(_CONFIG_KEY)
_c_identifier = re.compile(_C_IDENTIFIER)
_env_name = re.compile(r"[ -<>-~]+")
_port_name = re.compile("[-a-z0-9]+")
_LETTER = re.compile("[a-z]")


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"


def _shape(text: str, example: str, regex: str) -> str:
    return f"{text} (e.g. {example}, regex used for validation is '{regex}')"


_LABEL_TEXT = _shape(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character",
    "'my-name',  or '123-abc'",
    _LABEL,
)
_LABEL_1035_TEXT = _shape(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character",
    "'my-name',  or 'abc-123'",
    _LABEL_1035,
)
_SUBDOMAIN_TEXT = _shape(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character",
    "'example.com'",
    _SUBDOMAIN,
)
_QUALIFIED_SHAPE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_QUALIFIED_EXAMPLE = "'MyName',  or 'my.name',  or '123-abc'"
_LABEL_VALUE_TEXT = _shape(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character",
    "'MyValue',  or 'my_value',  or '12345'",
    _LABEL_VALUE,
)
_CONFIG_KEY_TEXT = _shape(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "'key.name',  or 'KEY_NAME',  or 'key-name'",
    _CONFIG_KEY,
)


def _size_then_shape(value: str, most: int, shape: re.Pattern[str], text: str) -> list[str]:
    fits = bool(shape.fullmatch(value))
    if fits and len(value) <= most:  # whatever has one of these shapes is ASCII
        return []
    found = [] if len(value.encode()) <= most else [_too_long(most)]
    return found if fits else [*found, text]


def label_name(value: str) -> list[str]:
    """RFC 1123 label: containers, claims in a pod, namespaces."""
    return _size_then_shape(value, LABEL_MAX, _label, _LABEL_TEXT)


def label_1035(value: str) -> list[str]:
    """RFC 1035 label, which starts with a letter: services."""
    return _size_then_shape(value, LABEL_MAX, _label_1035, _LABEL_1035_TEXT)


def subdomain(value: str) -> list[str]:
    """RFC 1123 subdomain: most objects."""
    return _size_then_shape(value, SUBDOMAIN_MAX, _subdomain, _SUBDOMAIN_TEXT)


def path_segment(value: str) -> list[str]:
    """Anything that can stand between two slashes of a URL: RBAC objects."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def qualified(value: str) -> list[str]:
    """[prefix/]name: label and annotation keys, taints, extended resources."""
    if _plain_qualified.fullmatch(value):
        return []
    return [*_with_prefix(value)] if len(value) <= _REMEMBERED_LENGTH_MAX else _look_at_prefix(value)


@lru_cache(maxsize=1024)  # the finalizers, labels and annotations of a cluster are few
def _with_prefix(value: str) -> tuple[str, ...]:
    return tuple(_look_at_prefix(value))


def _look_at_prefix(value: str) -> list[str]:
    prefix, slash, name = value.rpartition("/")
    found = []
    if "/" in prefix:
        return [
            _shape(
                f"a qualified name {_QUALIFIED_SHAPE}",
                _QUALIFIED_EXAMPLE,
                _QUALIFIED,
            )
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found.extend(f"prefix part {text}" for text in subdomain(prefix))
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > LABEL_MAX:
        found.append(f"name part {_too_long(LABEL_MAX)}")
    if not _qualified.fullmatch(name):
        found.append(f"name part {_shape(_QUALIFIED_SHAPE, _QUALIFIED_EXAMPLE, _QUALIFIED)}")
    return found


def label_value(value: str) -> list[str]:
    return _size_then_shape(value, LABEL_MAX, _label_value, _LABEL_VALUE_TEXT)


def config_key(value: str) -> list[str]:
    """A key of a ConfigMap or Secret, which may become a file name."""
    found = _size_then_shape(value, SUBDOMAIN_MAX, _config_key, _CONFIG_KEY_TEXT)
    if value == ".":
        found.append("must not be '.'")
    elif value == "..":
        found.append("must not be '..'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return found


def env_name(value: str) -> list[str]:
    if _env_name.fullmatch(value):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def c_identifier(value: str) -> list[str]:
    if _c_identifier.fullmatch(value):
        return []
    return [
        _shape(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of"
            " alphanumeric characters or '_'",
            "'my_name',  or 'MY_NAME',  or 'MyName'",
            _C_IDENTIFIER,
        )
    ]


def port_name(value: str) -> list[str]:
    """The name of a port, as RFC 6335 has it."""
    found = []
    if len(value) > 15:
        found.append("must be no more than 15 characters")
    if not _port_name.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def ip_address(value: str) -> list[str]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []
