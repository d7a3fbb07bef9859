"""The spec of a pod, which pods have and templates describe: defaults, rules, and what may change."""

from .defaults import default_pod, default_spec, default_template
from .ephemeral import keep_the_rest, validate_ephemeral
from .match import merge_label_keys
from .qos import qos_class
from .sources import respelled_at
from .update import validate_pod_update
from .validate import validate_spec, validate_template

__all__ = [
    "default_pod",
    "default_spec",
    "default_template",
    "keep_the_rest",
    "merge_label_keys",
    "qos_class",
    "respelled_at",
    "validate_ephemeral",
    "validate_pod_update",
    "validate_spec",
    "validate_template",
]
