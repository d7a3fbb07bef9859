"""Between the generations of the API: manifests that people still have, as what is written today. Pure.

mapping     what took the place of the classes and parameters that administrators once made
manifests   documents of files, whatever they are: `convert`
claims      claims, templates, classes and slices of every version of resource.k8s.io
podspecs    the members of pods, and of what makes pods, that were spelled otherwise
"""

from .manifests import Conversion, convert
from .mapping import BadMapping, Mapping, read_mapping

__all__ = ["BadMapping", "Conversion", "Mapping", "convert", "read_mapping"]
