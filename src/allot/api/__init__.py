"""What can be said: the nouns on the wire, and the rules each of them keeps.

`errors` and `field` are how the API says no; `kind` is what the server must know
about each kind; every generation of the API is a package of its own
(`from allot.api import resource`).
"""

from . import age, cron, errors, field, frames, meta, names, unheeded
from .equality import equal
from .field import FieldError, Path
from .gates import GATES, Gates, UnknownGate
from .http import SOCKET, Duplex, Request, Response, Talk, Transport, WatchChunk, repeated
from .kind import (
    NAME_AND_AGE,
    Column,
    FieldErrorText,
    Fields,
    Guard,
    Kind,
    Rules,
    Scale,
    Version,
    WriteContext,
)
from .object import OBJECT_BYTES_MAX, SEAL, STORED_HEAD, Metadata, Object, encode, stored_form
from .quantity import Format as QuantityFormat
from .quantity import Quantity
from .semver import Semver
from .semver import normalized as normalized_semver
from .user import Action, Decision, User

__all__ = [
    "GATES",
    "NAME_AND_AGE",
    "OBJECT_BYTES_MAX",
    "SEAL",
    "SOCKET",
    "STORED_HEAD",
    "Action",
    "Column",
    "Decision",
    "Duplex",
    "FieldError",
    "FieldErrorText",
    "Fields",
    "Gates",
    "Guard",
    "Kind",
    "Metadata",
    "Object",
    "Path",
    "Quantity",
    "QuantityFormat",
    "Request",
    "Response",
    "Rules",
    "Scale",
    "Semver",
    "Talk",
    "Transport",
    "UnknownGate",
    "User",
    "Version",
    "WatchChunk",
    "WriteContext",
    "age",
    "cron",
    "encode",
    "equal",
    "errors",
    "field",
    "frames",
    "meta",
    "names",
    "normalized_semver",
    "repeated",
    "stored_form",
    "unheeded",
]
