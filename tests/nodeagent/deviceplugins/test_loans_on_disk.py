"""Loans as a file: what is written is read, and what is not whole is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.nodeagent import BadCheckpoint
from allot.nodeagent.deviceplugins import checkpoint
from allot.nodeagent.deviceplugins.loans import Answer, Lent, Loan
from allot.wire import deviceplugin

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
devices = st.dictionaries(texts, st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=4)
answers = st.none() | st.builds(
    Answer,
    st.dictionaries(texts, texts, max_size=2),
    st.just((deviceplugin.Mount("/in", "/out", True),)),
    st.just((deviceplugin.DeviceSpec("/dev/a", "/dev/b", "rw"),)),
)


@st.composite
def loans(draw):
    lent = tuple(sorted(Lent(id, tuple(sorted(numa))) for id, numa in draw(devices).items()))
    return Loan(draw(texts), draw(texts), draw(texts), lent, draw(st.booleans()), draw(answers), draw(texts))


@given(st.lists(loans(), max_size=4), st.lists(texts, max_size=3, unique=True))
def test_what_is_written_is_read(written, resources):
    read = checkpoint.decode(checkpoint.encode(written, resources))
    assert read == (tuple(written), tuple(resources))


def test_the_fields_are_those_of_a_kubelet():
    loan = Loan("uid", "main", "example.com/gpu", (Lent("a", (0,)), Lent("b")), answer=Answer({"A": "1"}))
    data = json.loads(json.loads(checkpoint.encode([loan], ["example.com/gpu"]))["Data"])
    assert list(data["RegisteredDevices"]) == ["example.com/gpu"]
    (entry,) = data["PodDeviceEntries"]
    assert entry["PodUID"] == "uid"
    assert entry["ContainerName"] == "main"
    assert entry["ResourceName"] == "example.com/gpu"
    assert entry["DeviceIDs"] == {"0": ["a"], "-1": ["b"]}
    assert entry["AllocResp"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-10],
        lambda content: content.replace(b"uid", b"uie"),
        lambda content: b"",
        lambda content: b"{}",
    ],
)
def test_a_file_that_is_not_whole_is_an_error_that_says_what_to_do(spoil):
    """Else devices would be lent a second time."""
    content = checkpoint.encode([Loan("uid", "main", "example.com/gpu", (Lent("a"),))], [])
    with pytest.raises(BadCheckpoint, match=r"kubelet_internal_checkpoint: .*drain the node"):
        checkpoint.decode(spoil(content))
