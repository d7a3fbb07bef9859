"""`kubectl get resourcepoolstatusrequests`."""

from datetime import UTC, datetime

from allot.api import resource

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
KIND = resource.RESOURCE_POOL_STATUS_REQUEST


def test_the_columns_tell_the_sums_and_how_far_the_answer_is():
    """NAME DRIVER TOTAL AVAILABLE ALLOCATED UNAVAILABLE ERRORS POOLS STATUS COMPLETED."""
    assert [column.name.upper() for column in KIND.columns] == [
        "NAME", "DRIVER", "TOTAL", "AVAILABLE", "ALLOCATED", "UNAVAILABLE", "ERRORS", "POOLS", "STATUS",
        "COMPLETED",
    ]  # fmt: skip
    asked = {"metadata": {"name": "q"}, "spec": {"driver": "gpu.example.com"}}
    assert KIND.row(asked, NOW) == ["q", "gpu.example.com", 0, 0, 0, 0, 0, 0, "Pending", ""]
    pool = {"totalDevices": 4, "availableDevices": 1, "allocatedDevices": 2, "unavailableDevices": 1}
    done = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    pools = [pool, {**pool, "validationError": "it is incomplete"}]
    answered = {**asked, "status": {"poolCount": 2, "pools": pools, "conditions": [done]}}
    assert KIND.row(answered, NOW) == ["q", "gpu.example.com", 8, 2, 4, 2, 1, 2, "Complete", "5m"]
