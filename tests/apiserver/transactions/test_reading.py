"""From the body of a transaction to requests."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import errors
from allot.apiserver.transactions.reading import _query


@given(st.text(alphabet="ab=&%+2F;é ", max_size=12))
def test_a_query_is_read_as_that_of_any_request(text):
    assert _query(text) == dict(parse_qsl(text, keep_blank_values=True))


@pytest.mark.parametrize("mark", ["", "+"])
def test_no_query_has_more_than_a_hundred_fields(mark):
    most = "&".join(f"a{number}={mark}" for number in range(100))
    assert len(_query(most)) == 100
    with pytest.raises(errors.BadRequest):
        _query(f"{most}&b=")
