"""Does a label selector accept these labels?"""

from collections.abc import Mapping

from allot.api import meta


def accepts(selector: meta.LabelSelector, labels: Mapping[str, str]) -> bool:
    """An empty selector accepts nothing: of a set of pods it would mean all of them."""
    if not selector.match_labels and not selector.match_expressions:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(one, labels.get(one.key)) for one in selector.match_expressions)


def _holds(need: meta.LabelSelectorRequirement, value: str | None) -> bool:
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
