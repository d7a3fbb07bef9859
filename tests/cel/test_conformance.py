"""Selector cases recorded from upstream, read where they lie.

Every case runs in each environment and feature combination it does not exclude.
"""

import json
from itertools import product
from pathlib import Path

import pytest

from allot.api import Quantity
from allot.cel import CelDevice, CompileError, EvaluationError, Features, compile_selector

CASES = Path(__file__).parents[3] / "shared" / "conformance" / "cel-selectors.json"

if not CASES.exists():
    pytest.skip(f"the recorded selector cases are not here: {CASES.parent.name}", allow_module_level=True)


def variants():
    for case in json.loads(CASES.read_text()):
        wanted = case.get("features")
        stored_too = case.get("envType")
        for consumable, lists, stored in product([False, True], repeat=3):
            features = {"EnableConsumableCapacity": consumable, "EnableListTypeAttributes": lists}
            environment = "StoredExpressions" if stored else "NewExpressions"
            if wanted in (None, features) and stored_too in (None, environment):
                name = f"{case['name']}-{environment}-{consumable:d}{lists:d}"
                yield pytest.param(case, Features(consumable, lists), stored, id=name)


@pytest.mark.parametrize(("case", "features", "stored"), variants())
def test_agrees_with_the_recorded_case(case, features, stored):
    wanted_error = case.get("expectCompileError")
    if wanted_error:
        with pytest.raises(CompileError) as refused:
            compile_selector(case["expression"], features, stored=stored)
        assert wanted_error in refused.value.message
        return

    selector = compile_selector(case["expression"], features, stored=stored)
    assert selector.cost == case["expectCost"]
    device = CelDevice.of(
        case.get("driver", ""),
        case.get("attributes", {}),
        {name: Quantity.parse(entry["value"]) for name, entry in case.get("capacity", {}).items()},
        case.get("allowMultipleAllocations", False),
    )
    if "expectMatchError" in case:
        with pytest.raises(EvaluationError, match=case["expectMatchError"]):
            selector.matches(device)
    else:
        assert selector.matches(device) is case["expectMatch"]
