"""Several requests that are carried out together or not at all.

    reading      from a body to the requests in it
    rendering    the answers of its members, which are made when all of them are stored
    carrying     carries them out, and says how it went

Each member takes the path of any other request: it is authorized, defaulted, admitted, validated, charged and
guarded by the same code, which reads and writes through a `storing.pending`.
"""

from .carrying import CarriedOut, Transactions, of_member
from .reading import Asked

__all__ = ["Asked", "CarriedOut", "Transactions", "of_member"]
