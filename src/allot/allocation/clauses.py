"""The parts of a selector that must each hold, and the published values they look at.

A refusal that quotes a whole selector leaves the reader to find out which half of
it failed. Here a selector is cut at the `&&` of its outermost level, and for each
part the attributes and capacities that it names are found, so that an explanation
can say: this part, and the best value seen was that.

This reads text, not syntax trees: it is used for words only, and a part that does
not compile alone is simply not told apart.
"""

from collections.abc import Iterable, Iterator
from re import VERBOSE, Match, compile

from allot.api import Quantity

from .kind import Kind

_TOKEN = compile(
    r"""
    (?P<text> [rRbB]{0,2} (?: "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' ) )
    | (?P<open> [(\[{] ) | (?P<close> [)\]}] )
    | (?P<and> && )
    | (?P<or> \|\| | (?<![.\[]) \? (?![.\[]) )   # or a choice, but not the ? of optional fields
    """,
    VERBOSE,
)
_NAMED = compile(
    r"""
    device\.(?P<map>attributes|capacity) \[ (?P<quote>["']) (?P<domain>[^"']+) (?P=quote) \]
    (?: \.\?? (?P<id>[A-Za-z_]\w*) | \[ \?? (?P<quote2>["']) (?P<key>[^"']+) (?P=quote2) \] )
    """,
    VERBOSE,
)
THRESHOLD = compile(r"""^(?P<before>.*quantity\(["'])(?P<amount>[^"']+)(?P<after>["']\)\)\s*>=?\s*0\s*)$""")


def conjuncts(expression: str) -> list[str]:
    """The parts of `a && b && c`; the whole where the outermost operator is another."""
    depth, start, parts = 0, 0, []
    for token in _TOKEN.finditer(expression):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif token["or"] and depth == 0:
            return [expression.strip()]
        elif token["and"] and depth == 0:
            parts.append(expression[start : token.start()].strip())
            start = token.end()
    parts.append(expression[start:].strip())
    return parts if all(parts) else [expression.strip()]


def without(expression: str, part: str) -> str:
    """The expression less one of its parts; empty if nothing is left."""
    parts = conjuncts(expression)
    parts.remove(part)
    return " && ".join(parts)


def values_seen(part: str, kinds: Iterable[Kind], most: int = 4) -> str:
    """What the devices publish where the part looks: the largest amount, or the values themselves."""
    named = list(_NAMED.finditer(part))
    seen = [words for name in named if (words := _seen(name, list(kinds), most))]
    return "; ".join(dict.fromkeys(seen))


def best_amount(part: str, kinds: Iterable[Kind]) -> Quantity | None:
    """The largest capacity seen where the part asks for at least some amount of one."""
    name = _NAMED.search(part)
    if name is None or name["map"] != "capacity" or not THRESHOLD.match(part):
        return None
    return max(_amounts(name, kinds), default=None, key=lambda amount: amount.nano)


def _seen(name: Match[str], kinds: list[Kind], most: int) -> str:
    label = name["id"] or name["key"]
    if name["map"] == "capacity":
        best = max(_amounts(name, kinds), default=None, key=lambda amount: amount.nano)
        return f"best {label} is {best}" if best is not None else f"no device has {label}"
    values = list(dict.fromkeys(_values(name, kinds)))
    if not values:
        return f"no device has {label}"
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return f"{label} is {', '.join(values[:most])}{more}"


def _amounts(name: Match[str], kinds: Iterable[Kind]) -> Iterator[Quantity]:
    for kind in kinds:
        found = kind.capacity.get(f"{name['domain']}/{name['id'] or name['key']}")
        if found is None and name["domain"] == kind.driver:
            found = kind.capacity.get(name["id"] or name["key"])
        if found is not None:
            yield found.value


def _values(name: Match[str], kinds: Iterable[Kind]) -> Iterator[str]:
    for kind in kinds:
        found = kind.attribute(f"{name['domain']}/{name['id'] or name['key']}")
        if found is None:
            continue
        for one in (found.int_, found.bool_, found.string, found.version):
            if one is not None:
                yield str(one).lower() if isinstance(one, bool) else str(one)
        for many in (found.ints, found.bools, found.strings, found.versions):
            if many is not None:
                yield "[" + ", ".join(map(str, many)) + "]"
