"""Does the selector of a set of pods accept these labels?"""

from collections.abc import Mapping

from allot.api import meta


def accepts(selector: meta.LabelSelector, labels: Mapping[str, str]) -> bool:
    """An empty selector accepts nothing: of a set of pods it would mean all of them."""
    return not selector.is_empty and selector.selects(labels)
