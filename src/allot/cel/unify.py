"""Which type may stand where which is wanted.

Type parameters are solved on the way: `assign` returns a new, longer solution
or None, so a failed attempt leaves nothing behind. `dyn` fits everywhere and
everything fits it; when a parameter has been met by two types, the more general
one is kept.
"""

from collections.abc import Iterable, Mapping

from .types import DYN, Kind, Type

Solution = Mapping[Type, Type]
_NULLABLE = frozenset({Kind.DURATION, Kind.TIMESTAMP, Kind.OPAQUE, Kind.STRUCT, Kind.NULL})


def assign(solution: Solution, pairs: Iterable[tuple[Type, Type]]) -> Solution | None:
    """Let each left type stand where the right one is wanted, or None."""
    found = dict(solution)
    for given, wanted in pairs:
        if not _fits(found, given, wanted):
            return None
    return found


def fits_plainly(given: Iterable[Type], wanted: Iterable[Type]) -> bool:
    """The same question where no parameter is left to solve, and so no solution to keep."""
    return all(_fits({}, g, w) for g, w in zip(given, wanted, strict=True))


def resolve(solution: Solution, type: Type, free_is_dyn: bool = False) -> Type:
    """`type` with every solved parameter replaced; what is still free becomes `dyn` on request."""
    if type.kind is Kind.PARAM:
        found = solution.get(type)
        if found is not None:
            return resolve(solution, found, free_is_dyn)
        return DYN if free_is_dyn else type
    if not type.params:
        return type
    return Type(type.kind, type.name, tuple(resolve(solution, p, free_is_dyn) for p in type.params))


def join(solution: Solution, left: Type, right: Type) -> tuple[Type, Solution]:
    """The type of something that may be either."""
    found = assign(solution, [(left, right)])
    return (DYN, solution) if found is None else (_more_general(left, right), found)


def _fits(solution: dict[Type, Type], given: Type, wanted: Type) -> bool:
    if wanted.kind is Kind.PARAM:
        valid, known = _substitutes(solution, given, wanted)
        if valid or known:
            return valid
    if given.kind is Kind.PARAM:
        return _substitutes(solution, wanted, given)[0]
    if given.is_dynamic or wanted.is_dynamic:
        return True
    if given.kind is Kind.NULL:
        return wanted.kind in _NULLABLE
    if wanted.kind is Kind.NULL:
        return given.kind in _NULLABLE
    if given.kind is Kind.TYPE:
        return wanted.kind is Kind.TYPE
    return (
        given.kind is wanted.kind
        and given.name == wanted.name
        and len(given.params) == len(wanted.params)
        and all(_fits(solution, g, w) for g, w in zip(given.params, wanted.params, strict=True))
    )


def _substitutes(solution: dict[Type, Type], given: Type, param: Type) -> tuple[bool, bool]:
    """Whether `given` may stand for `param`, and whether `param` already meant something."""
    if given == param:
        return True, True
    meaning = solution.get(param)
    if meaning is not None:
        if given == meaning:
            return True, True
        if not _fits(solution, given, meaning):
            return False, True
        general = _more_general(given, meaning)
        if not _mentions(solution, general, param):
            solution[param] = general
        return True, True
    if _mentions(solution, given, param):
        return False, False
    solution[param] = given
    return True, False


def _mentions(solution: Solution, type: Type, param: Type) -> bool:
    if type == param:
        return True
    if type.kind is Kind.PARAM:
        meaning = solution.get(type)
        return meaning is not None and _mentions(solution, meaning, param)
    return any(_mentions(solution, part, param) for part in type.params)


def _more_general(left: Type, right: Type) -> Type:
    return left if _no_more_specific(left, right) else right


def _no_more_specific(left: Type, right: Type) -> bool:
    if left.is_dynamic or left.kind is Kind.PARAM:
        return True
    if right.is_dynamic or right.kind is Kind.PARAM:
        return False
    if left.kind is not right.kind or left.name != right.name or len(left.params) != len(right.params):
        return False
    if left.kind is Kind.TYPE:
        return True
    return all(_no_more_specific(a, b) for a, b in zip(left.params, right.params, strict=True))
