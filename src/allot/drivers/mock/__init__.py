"""A driver that turns parameters into environment variables: the mock driver of KEP-3063's test plan.

    driver    both halves: what is allocated, and what containers see of it

Every member of a claim's ConfigMap becomes `user_<name>`, every one of its class's `admin_<name>`. It has
as many resources on each node as it is told, or any number, everywhere.
"""

from .driver import NAME, Mock, node_plugin

__all__ = ["NAME", "Mock", "node_plugin"]
