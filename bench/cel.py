"""How fast selectors are compiled and evaluated. Prints one JSON object.

    python bench/cel.py

Each figure is the best of several rounds: the machine is shared, and the best round
is the one least disturbed.
"""

import json
from collections.abc import Callable
from platform import python_version
from time import perf_counter

from allot.api import Quantity
from allot.cel import CelDevice, compile_selector

ROUNDS = 7
BASE = 'device.attributes["gpu.example.com"]'
SELECTORS = {
    "driver": 'device.driver == "gpu.example.com"',
    "int": f"{BASE}.memory >= 40",
    "string": f'{BASE}.model == "a100"',
    "quantity": 'device.capacity["gpu.example.com"].hbm.compareTo(quantity("40Gi")) >= 0',
    "version": f'{BASE}.driverVersion.isGreaterThan(semver("1.0.0"))',
    "optional": f"{BASE}.?numa.orValue(0) == 0",
    "pattern": f'{BASE}.model.matches("^a[0-9]+$")',
    "macro": f'{BASE}.exists(name, name == "model")',
    "bind": f'cel.bind(gpu, {BASE}, gpu.memory >= 40 && gpu.model == "a100")',
    "four clauses": " && ".join(
        [
            'device.driver == "gpu.example.com"',
            f"{BASE}.memory >= 40",
            f'{BASE}.model in ["a100", "h100"]',
            'device.capacity["gpu.example.com"].hbm.isGreaterThan(quantity("1Gi"))',
        ]
    ),
    "absorbed error": f'{BASE}.missing == 1 || {BASE}.model == "a100"',
    "counted": 'device.driver != "" || lists.range(2000000).size() > 0',
}
DEVICE = CelDevice.of(
    "gpu.example.com",
    {
        "memory": {"int": 80},
        "model": {"string": "a100"},
        "driverVersion": {"version": "1.2.3"},
        **{f"other{number}": {"int": number} for number in range(10)},
    },
    {"hbm": Quantity.parse("80Gi")},
)


def best_s(run: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = perf_counter()
        for _ in range(times):
            run()
        best = min(best, (perf_counter() - started) / times)
    return best


def measure(expression: str) -> dict[str, float]:
    selector = compile_selector(expression, stored=True)
    selector.matches(DEVICE)
    once_s = best_s(lambda: selector.matches(DEVICE), 1)
    times = max(1, min(50_000, int(0.02 / once_s)))
    each_s = best_s(lambda: selector.matches(DEVICE), times)
    return {
        "cost": selector.cost,
        "check_us": round(best_s(lambda: compile_selector(expression, stored=True), 20) * 1e6, 1),
        "first_match_us": round(
            best_s(lambda: compile_selector(expression, stored=True).matches(DEVICE), 20) * 1e6, 1
        ),
        "evaluations_per_s": round(1 / each_s),
    }


def main() -> None:
    figures = {name: measure(expression) for name, expression in SELECTORS.items()}
    print(json.dumps({"benchmark": "cel", "python": python_version(), "selectors": figures}, indent=1))


if __name__ == "__main__":
    main()
