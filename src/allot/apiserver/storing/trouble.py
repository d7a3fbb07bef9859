"""What a store could not do, in the words of the API.

A client that is told when to come back does so again and again. That helps where the store
was busy for a moment; where it knows that it is in trouble (a full disk, an etcd that is away),
the client is better told at once.
"""

from allot.api import errors
from allot.store import OutcomeUnknown, StoreError, TooLarge, Unavailable

_RETRY_AFTER_S = 1


def as_api_error(error: StoreError) -> errors.ApiError:
    if isinstance(error, OutcomeUnknown):
        return errors.Timeout(f"the store did not answer, the outcome is unknown: {error}")
    if isinstance(error, TooLarge):
        return errors.TooLarge(f"too much to be stored at once: {error}")
    text = f"the store is not available: {error}"
    if isinstance(error, Unavailable) and not error.soon:
        return errors.Unavailable(text)
    return errors.Unavailable(text, retry_after_s=_RETRY_AFTER_S)
