"""What a field selector narrows a request to."""

from allot.api import errors

from ..requests.selectors import parse_fields


def wanted_value(field_selector: str, field: str) -> str | None:
    """The one value that the selector lets `field` have, or None.

    A selector that cannot be read narrows nothing here; the request fails later
    with an error that says what is wrong with it.
    """
    if not field_selector:
        return None
    try:
        return parse_fields(field_selector).wanted(field)
    except errors.ApiError:
        return None
