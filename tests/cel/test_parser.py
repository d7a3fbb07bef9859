"""Text to trees: what binds tighter, what literals stand for, what is refused and where."""

import pytest

from allot.cel.errors import ParseProblem
from allot.cel.parser import HEIGHT_MAX, NESTING_MAX, parse
from allot.cel.tree import Bind, Call, Comprehension, Ident, ListNode, Literal, MapNode, OptMap, Select


def shape(node):
    """A tree as nested brackets, with every operator in front."""
    match node:
        case Literal(value=value):
            return repr(value)
        case Ident(name=name):
            return name
        case Select(operand=operand, field=field, test=test):
            return f"{'has ' if test else ''}{shape(operand)}.{field}"
        case Call(function=function, target=target, args=args):
            parts = [shape(part) for part in (*([target] if target else []), *args)]
            return f"({function.strip('_@')} {' '.join(parts)})" if parts else f"({function})"
        case ListNode(elements=elements, optional=optional):
            return f"[{' '.join('?' * (i in optional) + shape(e) for i, e in enumerate(elements))}]"
        case MapNode(entries=entries):
            return "{" + " ".join(f"{'?' * e.optional}{shape(e.key)}:{shape(e.value)}" for e in entries) + "}"
        case Comprehension(loop=loop, range=range_, var=var, var2=var2, where=where, yields=yields):
            names = var if var2 is None else f"{var},{var2}"
            rest = [shape(part) if part else "-" for part in (where, yields)]
            return f"<{loop.value} {shape(range_)} {names} {' '.join(rest)}>"
        case Bind(name=name, value=value, body=body):
            return f"<bind {name} {shape(value)} {shape(body)}>"
        case OptMap(target=target, name=name, body=body, flat=flat):
            return f"<{'optFlatMap' if flat else 'optMap'} {shape(target)} {name} {shape(body)}>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a || b && c", "(|| a (&& b c))"),
        ("a && b || c && d", "(|| (&& a b) (&& c d))"),
        ("a == b && c", "(&& (== a b) c)"),
        ("a + b * c - d", "(- (+ a (* b c)) d)"),
        ("a < b == c", "(== (< a b) c)"),
        ("a ? b : c ? d : e", "(?_: a b (?_: c d e))"),
        ("-a.b", "(- a.b)"),
        ("!a[0]", "(! ([] a 0))"),
        ("a - -1", "(- a -1)"),
        ("--a", "a"),
        ("!!!a", "(! a)"),
        ("a in [1, 2,]", "(in a [1 2])"),
        ("a.b.c(d).e", "(c a.b d).e"),
        ("f(a, b)", "(f a b)"),
        ("a.?b[?c]", "([?] (?. a 'b') c)"),
        ("[?a, b]", "[?a b]"),
        ("{?a: b, 'c': 1}", "{?a:b 'c':1}"),
        ("has(a.b.c)", "has a.b.c"),
        ("a.exists(x, x > 1)", "<exists a x (> x 1) ->"),
        ("a.map(x, x > 1, x + 1)", "<map a x (> x 1) (+ x 1)>"),
        ("a.transformMap(k, v, v)", "<transformMap a k,v - v>"),
        ("cel.bind(x, a, x)", "<bind x a x>"),
        ("a.optFlatMap(x, x)", "<optFlatMap a x x>"),
        ("a.all(x, y, z, w)", "(all a x y z w)"),  # no such macro: an ordinary call
        ("a // to the end\n + b", "(+ a b)"),
    ],
)
def test_binds_as_the_grammar_says(text, wanted):
    """PARSE1."""
    assert shape(parse(text)).replace("_", "") == wanted.replace("_", "")


def test_a_long_chain_becomes_a_flat_tree():
    """PARSE1: three thousand conditions are a dozen levels deep, not three thousand."""
    node, depth = parse("&&".join(["a"] * 3000)), 0
    while isinstance(node, Call):
        node, depth = node.args[0], depth + 1
    assert depth <= 13


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615u", 2**64 - 1),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        (r"'a\n\x41\101\u00e9\U0001F600\\'", "a\nAA\u00e9\U0001f600\\"),
        (r"r'\n'", r"\n"),
        ('"""a"b\nc"""', 'a"b\nc'),
        (r"b'\xff\101a'", b"\xffAa"),
        ("b'é'", "é".encode()),
        (r"bR'\n'", rb"\n"),
        ("null", None),
        ("true", True),
    ],
)
def test_reads_literals(text, value):
    found = parse(text)
    assert isinstance(found, Literal)
    assert found.value == value
    assert isinstance(found.value, type(value))


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("?!", 0, "Syntax error"),
        ("", 0, "Syntax error"),
        ("a b", 2, "extraneous input"),
        ("f(a", 3, r"expecting '\)'"),
        ("a.", 2, "expecting IDENTIFIER"),
        ("a.in", 2, "expecting IDENTIFIER"),
        ("'abc", 0, "token recognition"),
        ("9223372036854775808", 0, "invalid int literal"),
        ("1e400 > 1.0", 0, "invalid double literal"),
        ("18446744073709551616u", 0, "invalid uint literal"),
        (r"'\q'", 0, "unescape"),
        (r"'\ud800'", 0, "code point"),
        ("while", 0, "reserved identifier"),
        ("has(a)", 4, "invalid argument to has"),
        ("a.all(1, true)", 6, "simple name"),
        ("a.all(x, x, true)", 9, "duplicate variable"),
        ("Foo{a: 1}", 3, "messages"),
        ("(" * 101 + "a", NESTING_MAX, "recursion limit"),
        ("a" + "+a" * 300, 2 * HEIGHT_MAX + 1, "recursion limit"),
    ],
)
def test_refuses_what_is_no_expression_and_says_where(text, at, message):
    """PARSE2 and PARSE3."""
    with pytest.raises(ParseProblem, match=message) as refused:
        parse(text)
    assert refused.value.issue.at == at


@pytest.mark.parametrize(
    ("text", "at"),
    [("a.b", 1), ("a + b", 2), ("f(a)", 1), ("a.f(b)", 3), ("a[b]", 1), ("a ? b : c", 2), ("!a", 0)],
)
def test_a_node_stands_where_messages_point(text, at):
    """PARSE3."""
    assert parse(text).at == at
