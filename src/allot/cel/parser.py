"""Tokens to a tree, by precedence climbing.

What it promises
    PARSE1  Operators bind as CEL's grammar says; a chain of `&&` or `||` becomes a balanced
            tree, so its length does not become depth.
    PARSE2  Nothing deeper than NESTING_MAX brackets or HEIGHT_MAX nodes leaves here, so
            that everything after may recurse.
    PARSE3  Positions are those of the operator, of the opening bracket of a call, or of the
            name: the places CEL's own error messages point to.
"""

from typing import Final

from . import macros
from .errors import ParseProblem, SyntaxProblem
from .lexer import RESERVED, Lexeme, Token, tokenize
from .literals import value_of
from .tree import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, children

NESTING_MAX: Final = 100
HEIGHT_MAX: Final = 200

_BINARY: Final = {
    "||": (1, "_||_"), "&&": (2, "_&&_"),
    "==": (3, "_==_"), "!=": (3, "_!=_"), "<": (3, "_<_"), "<=": (3, "_<=_"),
    ">": (3, "_>_"), ">=": (3, "_>=_"), "in": (3, "@in"),
    "+": (4, "_+_"), "-": (4, "_-_"),
    "*": (5, "_*_"), "/": (5, "_/_"), "%": (5, "_%_"),
}  # fmt: skip
_CHAINED: Final = {"_||_", "_&&_"}


def parse(source: str) -> Node:
    """The tree of `source`; raises ParseProblem."""
    parser = _Parser(tokenize(source))
    node = parser.expression()
    parser.expect_end()
    return node


class _Parser:
    def __init__(self, lexemes: list[Lexeme]) -> None:
        self._lexemes = lexemes
        self._next = 0
        self._nesting = 0
        self._heights: list[int] = []

    # -- tokens

    @property
    def _here(self) -> Lexeme:
        return self._lexemes[self._next]

    def _take(self) -> Lexeme:
        lexeme = self._lexemes[self._next]
        self._next += 1
        return lexeme

    def _sees(self, sign: str) -> bool:
        here = self._here
        return here.text == sign and here.token in (Token.SIGN, Token.KEYWORD)

    def _accept(self, sign: str) -> bool:
        if self._sees(sign):
            self._next += 1
            return True
        return False

    def _expect(self, sign: str) -> Lexeme:
        if not self._sees(sign):
            raise SyntaxProblem(self._here.at, f"mismatched input {self._here.shown()} expecting '{sign}'")
        return self._take()

    def expect_end(self) -> None:
        if self._here.token is not Token.END:
            raise SyntaxProblem(self._here.at, f"extraneous input {self._here.shown()} expecting <EOF>")

    # -- nodes

    def _id(self) -> int:
        self._heights.append(0)
        return len(self._heights) - 1

    def _made(self, node: Node) -> Node:
        """Every node with children passes here, so that its height is known and bounded (PARSE2)."""
        height = 1 + max((self._heights[child.id] for child in children(node)), default=0)
        if height > HEIGHT_MAX:
            raise ParseProblem(node.at, f"expression recursion limit exceeded: {HEIGHT_MAX}")
        self._heights[node.id] = height
        return node

    # -- expressions

    def expression(self) -> Node:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise ParseProblem(self._here.at, f"expression recursion limit exceeded: {NESTING_MAX}")
        node = self._binary(1)
        if self._sees("?"):
            at = self._take().at
            then = self._binary(1)
            self._expect(":")
            node = self._made(Call(self._id(), at, "_?_:_", None, (node, then, self.expression())))
        self._nesting -= 1
        return node

    def _operator(self, level: int) -> tuple[int, str] | None:
        here = self._here
        if here.token is Token.SIGN or here.token is Token.KEYWORD:
            found = _BINARY.get(here.text)
            if found is not None and found[0] >= level:
                return found
        return None

    def _binary(self, level: int) -> Node:
        left = self._unary()
        while (found := self._operator(level)) is not None:
            binding, function = found
            if function in _CHAINED:
                left = self._chain(left, binding, function)
            else:
                at = self._take().at
                left = self._made(Call(self._id(), at, function, None, (left, self._binary(binding + 1))))
        return left

    def _chain(self, first: Node, binding: int, function: str) -> Node:
        terms, places = [first], []
        while self._operator(binding) == (binding, function):
            places.append(self._take().at)
            terms.append(self._binary(binding + 1))

        def balanced(low: int, high: int) -> Node:
            if low == high:
                return terms[low]
            middle = (low + high + 1) // 2
            halves = (balanced(low, middle - 1), balanced(middle, high))
            return self._made(Call(self._id(), places[middle - 1], function, None, halves))

        return balanced(0, len(terms) - 1)

    def _unary(self) -> Node:
        for sign, function in (("!", "!_"), ("-", "-_")):
            if self._sees(sign):
                at, count = self._here.at, 0
                while self._sees(sign) and not (sign == "-" and self._is_negative_number()):
                    self._take()
                    count += 1
                operand = self._member()
                if count % 2 == 0:  # signs cancel in pairs
                    return operand
                return self._made(Call(self._id(), at, function, None, (operand,)))
        return self._member()

    def _is_negative_number(self) -> bool:
        return self._lexemes[self._next + 1].token in (Token.INT, Token.FLOAT)

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._sees("."):
                node = self._dotted(node)
            elif self._sees("["):
                at = self._take().at
                function = "_[?_]" if self._accept("?") else "_[_]"
                index = self.expression()
                self._expect("]")
                node = self._made(Call(self._id(), at, function, None, (node, index)))
            else:
                return node

    def _dotted(self, operand: Node) -> Node:
        at = self._take().at
        optional = self._accept("?")
        field = self._take()
        if field.token is not Token.IDENT:
            raise SyntaxProblem(field.at, f"mismatched input {field.shown()} expecting IDENTIFIER")
        if optional:
            name = Literal(self._id(), field.at, field.text)
            return self._made(Call(self._id(), at, "_?._", None, (operand, name)))
        if self._sees("("):
            at = self._here.at
            args = self._arguments()
            return self._made(macros.expand(self._id(), at, field.text, operand, args))
        if self._sees("{"):
            raise SyntaxProblem(at, "messages cannot be made in a selector")
        return self._made(Select(self._id(), at, operand, field.text))

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        args: list[Node] = []
        while not self._sees(")"):
            args.append(self.expression())
            if not self._accept(","):
                break
        self._expect(")")
        return tuple(args)

    def _primary(self) -> Node:
        here = self._take()
        match here.token, here.text:
            case Token.SIGN, "(":
                node = self.expression()
                self._expect(")")
                return node
            case Token.SIGN, "[":
                return self._list(here.at)
            case Token.SIGN, "{":
                return self._map(here.at)
            case Token.SIGN, ".":
                return self._name(self._take(), leading_dot=True)
            case Token.SIGN, "-" if self._here.token in (Token.INT, Token.FLOAT):
                return Literal(self._id(), here.at, value_of(self._take(), negative=True))
            case Token.KEYWORD, ("true" | "false" | "null") as word:
                return Literal(self._id(), here.at, {"true": True, "false": False, "null": None}[word])
            case ((Token.INT | Token.UINT | Token.FLOAT | Token.STRING | Token.BYTES), _):
                return Literal(self._id(), here.at, value_of(here))
            case Token.IDENT, _:
                return self._name(here)
        raise SyntaxProblem(here.at, f"mismatched input {here.shown()} expecting an expression")

    def _name(self, lexeme: Lexeme, leading_dot: bool = False) -> Node:
        if lexeme.token is not Token.IDENT:
            raise SyntaxProblem(lexeme.at, f"mismatched input {lexeme.shown()} expecting IDENTIFIER")
        if lexeme.text in RESERVED:
            raise ParseProblem(lexeme.at, f"reserved identifier: {lexeme.text}")
        if self._sees("("):
            at = self._here.at
            args = self._arguments()
            return self._made(macros.expand(self._id(), at, lexeme.text, None, args))
        if self._sees("{"):
            raise SyntaxProblem(self._here.at, "messages cannot be made in a selector")
        return Ident(self._id(), lexeme.at, "." + lexeme.text if leading_dot else lexeme.text)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._sees("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]")
        return self._made(ListNode(self._id(), at, tuple(elements), frozenset(optional)))

    def _map(self, at: int) -> Node:
        entries: list[Entry] = []
        while not self._sees("}"):
            optional = self._accept("?")
            key = self.expression()
            colon = self._expect(":").at
            entries.append(Entry(colon, key, self.expression(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        return self._made(MapNode(self._id(), at, tuple(entries)))
