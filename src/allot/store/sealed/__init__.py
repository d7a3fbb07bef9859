"""Values that cannot be read from the disk: a store in front of a store.

    opening    from a key file to a store
    keys       the key file: the first key encrypts, every key decrypts
    mark       what an encrypted value begins with
    envelope   what an encrypted value looks like
    engine     encrypts what is written below some prefixes, and decrypts what is read from there
    rewriting  which keys are in use, and how the latest comes to be the only one

`envelope` costs some tens of milliseconds to import; those who encrypt nothing never do.
"""

from .keys import BadKeys
from .opening import sealed_store

__all__ = ["BadKeys", "sealed_store"]
