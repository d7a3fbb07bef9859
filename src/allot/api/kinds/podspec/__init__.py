"""The spec of a pod, which pods have and templates describe: defaults, rules, and what may change."""

from .defaults import default_pod, default_spec, default_template
from .qos import qos_class

__all__ = ["default_pod", "default_spec", "default_template", "qos_class"]
