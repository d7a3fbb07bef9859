"""From templates and objects to parameters: at once, or however long it takes."""

import pytest

from allot.numeric import BadData, Expansions, Registry
from allot.numeric.models import COUNTER

MODELS = Registry([COUNTER])
TEMPLATE = """kind: Parameters
apiVersion: counter.dra.config.k8s.io/v1alpha1
required: {{object.spec.all(x, x > 0) ? object.spec.size() : 0}}
"""


def test_what_takes_long_is_not_done_at_once():
    """4381-SEC-06: it is as it would have been, when somebody has the time."""
    expansions, short, long = Expansions(), {"spec": [1, 2, 3]}, {"spec": [1] * 5000}
    assert expansions.expand_at_once(TEMPLATE, short, MODELS) == expansions.expand(TEMPLATE, short, MODELS)
    assert expansions.expand_at_once(TEMPLATE, long, MODELS) is None
    assert expansions.expand(TEMPLATE, long, MODELS).want.required == 5000


def test_what_is_wrong_is_wrong_at_once():
    for text in (TEMPLATE.replace("all", "nothing"), TEMPLATE.replace("object.spec.size()", "object.none")):
        with pytest.raises(BadData, match="the template"):
            Expansions().expand_at_once(text, {"spec": [1]}, MODELS)
