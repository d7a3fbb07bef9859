"""What a failed call to etcd means."""

import grpc
import pytest

from allot.store.etcd.connection import Verdict, verdict

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("code", "text", "meaning"),
    [
        (Code.UNAVAILABLE, "failed to connect to all addresses; last error: refused", Verdict.NOT_DONE),
        (Code.UNAVAILABLE, "Socket closed", Verdict.LOST),
        (
            Code.UNAVAILABLE,
            "etcdserver: request timed out, possibly due to previous leader failure",
            Verdict.LOST,
        ),
        (Code.UNAVAILABLE, "etcdserver: leader changed", Verdict.LOST),
        (Code.UNAVAILABLE, "etcdserver: no leader", Verdict.NOT_DONE),
        (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", Verdict.LOST),
        (Code.CANCELLED, "", Verdict.LOST),
        (Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Verdict.REFUSED),
        (Code.RESOURCE_EXHAUSTED, "etcdserver: too many requests", Verdict.NOT_DONE),
        (Code.INVALID_ARGUMENT, "etcdserver: request is too large", Verdict.TOO_LARGE),
        (Code.PERMISSION_DENIED, "etcdserver: permission denied", Verdict.REFUSED),
        (Code.UNAUTHENTICATED, "etcdserver: invalid auth token", Verdict.BAD_TOKEN),
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", Verdict.COMPACTED),
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision", Verdict.FUTURE),
    ],
)
def test_in_doubt_a_call_is_lost_and_never_undone(code: grpc.StatusCode, text: str, meaning: Verdict):
    assert verdict(code, text) is meaning
