"""What is said of a node that is silent."""

from allot.api import Object, encode
from allot.controllers.nodelifecycle.health import silenced

NOW = "2026-05-01T10:00:00Z"


def test_a_condition_without_a_type_or_status_is_kept_and_stumbles_nobody():
    """The server takes them, as upstream does: nodes say what they like of themselves."""
    nameless, open_ = {"status": "True"}, {"type": "Ready"}
    node = Object(encode({"metadata": {"name": "n"}, "status": {"conditions": [nameless, open_]}}))
    told = silenced(node, NOW)
    assert told is not None and nameless in told
    assert {one.get("type"): one.get("status") for one in told}["Ready"] == "Unknown"
