"""The models of this process, by the types that they understand.

Those of ours are there if their gate is on. Others come with packages that name an object in the entry points
`allot.numeric_models`; a package that cannot be loaded is reported and keeps nobody else away. Two models of
one type stop the component: nobody could say which of them decides.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from allot.api import Gates

from .model import Model, TypeId, Types
from .models import COUNTER, PARTITION, TOPOLOGY

ENTRY_POINTS: Final = "allot.numeric_models"

OURS: Final[Mapping[str, Model]] = {
    "DRANumericModelCounter": COUNTER,
    "DRANumericModelPartition": PARTITION,
    "DRANumericModelTopology": TOPOLOGY,
}
"""By the gate of each."""


class TypeTaken(Exception):
    """Two models want to understand one type."""


class Registry:
    def __init__(self, models: Iterable[Model], off: Mapping[str, str] | None = None) -> None:
        """`off` are groups of models that are not here, with the gate that would bring each. Raises
        TypeTaken."""
        self._capacity: dict[TypeId, Model] = {}
        self._parameters: dict[TypeId, Model] = {}
        self._off = off or {}
        for model in models:
            _enter(self._capacity, model, model.types.capacity)
            _enter(self._parameters, model, model.types.parameters)

    def for_capacity(self, type: TypeId) -> Model | None:
        return self._capacity.get(type)

    def for_parameters(self, type: TypeId) -> Model | None:
        return self._parameters.get(type)

    @property
    def parameter_types(self) -> tuple[TypeId, ...]:
        return tuple(sorted(self._parameters))

    def gate_of(self, type: TypeId) -> str | None:
        """The gate that is off and would bring the model of this type."""
        return self._off.get(type.api_version.rpartition("/")[0])


def load_models(
    gates: Gates,
    report: Callable[[str], None],
    found: Iterable[EntryPoint] | None = None,
) -> Registry:
    """All that there are. `report` is told which packages could not be loaded. Raises TypeTaken."""
    here = [model for gate, model in OURS.items() if gates[gate]]
    off = {model.types.group: gate for gate, model in OURS.items() if not gates[gate]}
    for entry in sorted(entry_points(group=ENTRY_POINTS) if found is None else found):
        try:
            model = entry.load()
            _require_model(model)
        except Exception as why:  # of somebody else's code: anything may come
            report(f"numeric model {entry.name} ({entry.value}) was not loaded: {why!r}")
        else:
            here.append(model)
    return Registry(here, off)


def _enter(known: dict[TypeId, Model], model: Model, kind: str) -> None:
    for type in model.types.of(kind):
        other = known.setdefault(type, model)
        if other is not model:
            raise TypeTaken(f"{type} is claimed by two numeric models: {other.name} and {model.name}")


_PARTS = (
    "name",
    "capacity",
    "parameters",
    "amounts",
    "is_flexible",
    "choices",
    "lacking",
    "allocation",
    "taken",
)


def _require_model(model: Any) -> None:
    lacking = [part for part in _PARTS if not hasattr(model, part)]
    if lacking or not isinstance(getattr(model, "types", None), Types):
        raise TypeError(f"it is no numeric model: it lacks {', '.join(lacking) or 'types'}")
