"""Reading of limits: a text such as "a + b <= 1" becomes functions of numpy arrays, without `eval`.

Python's parser makes a tree of the text. Only the nodes named here are translated, so a text can compare numbers and
nothing else. Its length, depth and number of nodes are limited, and all arithmetic is in floats. So nothing grows or
hangs.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from keyword import iskeyword
from typing import Any, NoReturn, final

import numpy as np

from .._utils.checks import many, nearest, shown
from ..errors import InvalidInput, printable
from . import limits_terms as algebra
from .limits_terms import Term, Truth
from .parameters import CHOSEN, Choice, Float, Parameter

LONGEST = 4_000  # characters of a limit
MOST_NODES = 1_000  # of its tree
MOST_LEVELS = 100  # of its tree: Python's own tools for trees are recursive
_ARITHMETIC: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.Mod: "%", ast.FloorDiv: "//"
}  # fmt: skip
_COMPARED: dict[type, str] = {ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "==": "!=", "!=": "=="}
_FUNCTIONS = ("min", "max", "abs", "log", "exp")
_WRITTEN: dict[type, str] = {
    ast.BitXor: "A power is written **, not ^.",
    ast.BitAnd: "Comparisons are joined by `and`, not by &.",
    ast.BitOr: "Comparisons are joined by `or`, not by |.",
    ast.Tuple: "Give limits one by one: where('a <= b', 'b <= c').",
    ast.List: "Give limits one by one: where('a <= b', 'b <= c').",
    ast.IfExp: "A condition is written with `or`: 'kind != \"sgd\" or rate <= 0.1'.",
    ast.Subscript: "Parameters are named without brackets.",
}
_SIGNS = {
    "&&": "and", "||": "or", "≤": "<=", "≥": ">=", "≠": "!=", "=<": "<=", "=>": ">=", "<>": "!=", "·": "*", "÷": "/",
    "²": "**2",
}  # fmt: skip


@final
class Reader:
    """Reads the texts of limits on these parameters.

    Args:
        parameters: of the space, by name.
        columns: of each parameter in encoded points.
        dimension: number of columns.
    """

    def __init__(self, parameters: Mapping[str, Parameter], columns: Mapping[str, slice], dimension: int) -> None:
        self.parameters, self.columns, self.dimension = parameters, columns, dimension
        self._known = {_as_read(name): name for name in parameters} | {name: name for name in parameters}
        self._text = ""
        self._quoted: dict[str, str] = {}

    def read(self, text: str) -> tuple[str, list[Truth]]:
        """Returns a limit as Python writes it, and its comparisons, all of which must hold.

        Raises:
            InvalidInput: the text is no limit on these parameters.
        """
        self._text, self._quoted = text, {}
        if len(text) > LONGEST:
            self._refuse(f"has {len(text):,} characters, and the most is {LONGEST:,}", "Write several, or a function.")
        tree = self._parsed(re.sub(r"`([^`]*)`", self._without_quotes, text.strip()))
        with np.errstate(all="ignore"):  # of constants, which are checked
            found = self._truths(tree, negated=False)
        if not any(truth.names for truth in found):
            self._refuse("names no parameter, so it always holds or never does", "")
        kept = ast.unparse(tree)
        for stand_in, name in self._quoted.items():
            kept = kept.replace(stand_in, f"`{name}`")
        return kept, found

    def _without_quotes(self, match: re.Match[str]) -> str:
        """Returns a name between backticks, or one that stands in for it if Python would not read it as a name."""
        name = match[1]
        if name.isidentifier() and not iskeyword(name) and name == _as_read(name):
            return name
        stand_in = f"_quoted_{len(self._quoted)}_"
        while stand_in in self._text:
            stand_in += "_"
        self._quoted[stand_in] = name
        return stand_in

    def _refuse(self, why: str, advice: str) -> NoReturn:
        raise InvalidInput(f"Limit {shown(self._text)} {why}.", advice=advice)

    def _parsed(self, text: str) -> ast.expr:
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._refuse_syntax(text)
        level, count = [tree], 0
        for _ in range(MOST_LEVELS):
            count += len(level)
            level = [child for node in level for child in ast.iter_child_nodes(node)]  # type: ignore[misc]
            if not level:
                break
        if level or count > MOST_NODES:
            self._refuse("is nested too deeply, or too long", "Write several limits, or a function.")
        return tree

    def _refuse_syntax(self, text: str) -> NoReturn:
        sign = next((sign for sign in _SIGNS if sign in text), None)
        if sign is not None:
            self._refuse(f"has {sign} in it", f"Write {_SIGNS[sign]}.")
        if re.search(r"(?<![<>=!])=(?!=)", text):
            self._refuse("has a single =, which assigns", "Equality is written ==.")
        if not text:
            self._refuse("is empty", "Such as 'a + b <= 1'.")
        self._refuse(
            "cannot be read", "It is written as in Python, such as 'a + b <= 1' or 'kind != \"sgd\" or a > 0'."
        )

    # Truths

    def _truths(self, node: ast.expr, *, negated: bool) -> list[Truth]:
        """Returns comparisons, all of which must hold. A negated node is turned into comparisons without `not`."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._truths(node.operand, negated=not negated)
        if isinstance(node, ast.BoolOp):
            parts = [self._truths(value, negated=negated) for value in node.values]
            return algebra.combined(parts, every=isinstance(node.op, ast.And) != negated)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides[:-1], node.ops, sides[1:], strict=True)
            return algebra.combined([self._compared(*pair, negated=negated) for pair in pairs], every=not negated)
        name = self._name(node)
        if name is not None and (place := self._place(name, True)) is not None:  # an option True, as a condition
            return [self._is_option(name, place, negated=negated)]
        return self._refuse_node(node, "is no comparison, such as 'a + b <= 1'")

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, *, negated: bool) -> list[Truth]:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
                self._refuse("has `in` without a list of options", 'Such as \'kind in ("adam", "sgd")\'.')
            opposite = isinstance(op, ast.NotIn) != negated
            parts = [self._compared(left, ast.Eq(), each, negated=opposite) for each in right.elts]
            return algebra.combined(parts, every=opposite)
        sign = _COMPARED.get(type(op))
        if sign is None:
            self._refuse("compares with `is`", "Write == or !=.")
        sign = _OPPOSITE[sign] if negated else sign
        if sign in ("==", "!="):
            found = self._options(left, right, negated=sign == "!=")
            if found is not None:
                return [found]
        elif sign in ("<", ">="):
            left, right, sign = right, left, ">" if sign == "<" else "<="
        first, second = self._term(left), self._term(right)
        cyclic = any(isinstance(n, ast.Mod | ast.FloorDiv) for side in (left, right) for n in ast.walk(side))
        real = any(self.parameters[name].real for name in first.names | second.names)
        return [algebra.ordered(first, sign, second, real=real, cyclic=cyclic)]

    def _options(self, left: ast.expr, right: ast.expr, *, negated: bool) -> Truth | None:
        """Returns a comparison of options, or None if numbers are compared."""
        for one, other in ((left, right), (right, left)):
            name = self._name(one)
            parameter = None if name is None else self.parameters[name]
            if name is None or not isinstance(parameter, Choice):
                continue
            theirs = self._name(other)
            of = None if theirs is None else self.parameters[theirs]
            if theirs is not None and isinstance(of, Choice):
                return _same_option(name, parameter, theirs, of, negated=negated)
            try:
                given = ast.literal_eval(other)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
            place = self._place(name, given)
            if place is None:
                texts = [option for option in parameter.options if isinstance(option, str)]
                hint = nearest(given, texts) if isinstance(given, str) else ""
                self._refuse(
                    f"compares `{printable(name)}` with {shown(given)}, which is not among its options "
                    f"{shown(parameter.options)}",
                    hint.strip(),
                )
            return self._is_option(name, place, negated=negated)
        return None

    def _place(self, name: str, value: Any) -> int | None:
        """Returns the place of an option, or None if a parameter has no such option."""
        parameter = self.parameters[name]
        same = [_same(option, value) for option in parameter.options] if isinstance(parameter, Choice) else []
        return same.index(True) if True in same else None

    def _is_option(self, name: str, place: int, *, negated: bool) -> Truth:
        return algebra.comparison(
            lambda v: algebra.signs((v.numbers[name] == place) != negated), frozenset([name]), equal=not negated
        )

    # Numbers

    def _name(self, node: ast.expr) -> str | None:
        """Returns the parameter that a node names, or None. A name may have dots, or stand between backticks."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        name = ast.unparse(node)
        quoted = self._quoted.get(name)
        return self._known.get(name) if quoted is None else quoted if quoted in self.parameters else None

    def _term(self, node: ast.expr) -> Term:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return self._constant(node.value)
        name = self._name(node)
        if name is not None:
            return self._parameter(name)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._term(node.operand)
            return inner if isinstance(node.op, ast.UAdd) else algebra.times(inner, -1.0)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            found = self._binary(_ARITHMETIC[type(node.op)], self._term(node.left), self._term(node.right))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            found = self._call(node.func.id, node)
        else:
            self._refuse_node(node, "")
        return found if found.names else self._constant(float(found.of(algebra.NOWHERE)[0]), whole=found.whole)

    def _constant(self, value: Any, *, whole: bool | None = None) -> Term:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self._refuse("has a number that is too large for a float, or none", "Check powers and divisions in it.")
        at = np.float64(number)
        is_whole = isinstance(value, int) if whole is None else whole
        return Term(lambda _: (at, np.abs(at)), whole=is_whole, line=(np.zeros(self.dimension), number))

    def _parameter(self, name: str) -> Term:
        parameter, names = self.parameters[name], frozenset([name])
        row = np.zeros(self.dimension)
        if isinstance(parameter, Choice):
            if any(type(option) not in (int, float) for option in parameter.options):
                self._refuse(
                    f"takes `{printable(name)}` for a number, and its options are {shown(parameter.options)}",
                    f"Options are compared by == and !=, such as {name} == {parameter.options[0]!r}.",
                )
            numbers = np.array(parameter.options, dtype=float)
            row[self.columns[name]] = numbers / CHOSEN
            whole = all(type(option) is int for option in parameter.options)
            return Term(
                lambda v: (numbers[v.numbers[name]], np.abs(numbers[v.numbers[name]])), names, whole, (row, 0.0)
            )
        row[self.columns[name]] = parameter.high - parameter.low
        least = algebra.RESOLUTION * max(abs(parameter.low), abs(parameter.high))
        return Term(
            lambda v: (v.numbers[name], np.abs(v.numbers[name]) + least), names, not isinstance(parameter, Float),
            None if parameter.log else (row, float(parameter.low)),
        )  # fmt: skip

    def _binary(self, sign: str, left: Term, right: Term) -> Term:
        if sign in "+-":
            return algebra.plus(left, right if sign == "+" else algebra.times(right, -1.0))
        for one, other in ((left, right), (right, left)):
            if sign == "*" and not other.names:
                return replace(algebra.times(one, float(other.of(algebra.NOWHERE)[0])), whole=one.whole and other.whole)
        if sign == "/" and not right.names and left.names and (by := float(right.of(algebra.NOWHERE)[0])):
            return replace(
                algebra.times(left, 1.0 / by), of=lambda v: algebra.ratio(left.of(v), right.of(v)), whole=False
            )
        names, both = left.names | right.names, left.whole and right.whole
        if sign in ("%", "//") and not both:
            self._refuse(f"has {sign} between numbers that are not whole", f"{sign} is for whole numbers (Int).")
        if sign == "**":
            both = both and not right.names and bool(right.of(algebra.NOWHERE)[0] >= 0)
        of = algebra.OF_TWO[sign]
        return Term(lambda v: of(left.of(v), right.of(v)), names, both and sign != "/")

    def _call(self, function: str, node: ast.Call) -> Term:
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            self._refuse(f"calls {function} with other things than numbers", f"Such as {function}(a, 1).")
        terms, several = [self._term(each) for each in node.args], function in ("min", "max")
        if len(terms) < 2 if several else len(terms) != 1:
            wanted = "two numbers or more" if several else "one number"
            self._refuse(f"calls {function} with {many(len(terms), 'number')}", f"It takes {wanted}.")
        names, whole = frozenset[str]().union(*(term.names for term in terms)), all(term.whole for term in terms)
        if several:
            before = np.less if function == "min" else np.greater
            return Term(lambda v: algebra.extreme([term.of(v) for term in terms], before), names, whole)
        (term,), of_one = terms, algebra.OF_ONE[function]
        named = self._name(node.args[0]) if function == "log" else None
        parameter = None if named is None else self.parameters[named]
        line = None
        if named is not None and not isinstance(parameter, Choice) and parameter is not None and parameter.log:
            row = np.zeros(self.dimension)
            row[self.columns[named]] = math.log(parameter.high / parameter.low)
            line = row, math.log(parameter.low)
        return Term(lambda v: of_one(*term.of(v)), names, whole and function == "abs", line)

    def _refuse_node(self, node: ast.expr, otherwise: str) -> NoReturn:
        """Raises the error of a node that belongs to no limit."""
        part = shown(ast.unparse(node))
        if isinstance(node, ast.Name | ast.Attribute) and self._name(node) is None:
            self._refuse_name(self._quoted.get(ast.unparse(node), ast.unparse(node)))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            plain = called.rpartition(".")[2]
            advice = f"Write {plain}(...)." if plain != called and plain in _FUNCTIONS else ""
            advice = "A root is written ** 0.5." if plain == "sqrt" else advice
            self._refuse(
                f"calls {shown(called)}, and it may call {', '.join(_FUNCTIONS)} alone",
                advice or "Anything else is a function: where(lambda a, b: ...).",
            )
        if isinstance(node, ast.Constant):
            self._refuse(
                f"takes {part} for a number or a comparison", "Only options of a Choice are text, True or None."
            )
        kind = type(node.op) if isinstance(node, ast.BinOp) else type(node)
        if kind in _WRITTEN:
            self._refuse(f"has {part} in it", _WRITTEN[kind])
        if otherwise:
            self._refuse(otherwise, "Compare it with something: <=, >=, <, >, == or !=.")
        self._refuse(
            f"has {part} in it, and a limit is made of numbers, parameters, + - * / **, {', '.join(_FUNCTIONS)}, "
            "comparisons, and, or, not",
            "Anything else is a function: where(lambda a, b: ...).",
        )

    def _refuse_name(self, name: str) -> NoReturn:
        hint = nearest(name, self.parameters).strip()
        if not hint and not all(map(str.isidentifier, self.parameters)):
            hint = "A name that Python would not read as one stands between backticks: '`learning rate` <= 0.1'."
        named = printable(name)
        raise InvalidInput(
            f"Limit {shown(self._text)} names `{named}`, which is no parameter: the space has "
            f"{shown(', '.join(self.parameters))}. {hint}".rstrip(),
            advice=""
            if hint
            else f"If {named} is an outcome, which is known after a trial, that is `constraints=`: "
            f"nr.minimize(..., constraints='{named} <= 50').",
        )


def _as_read(name: str) -> str:
    """Returns a name as Python reads it."""
    return unicodedata.normalize("NFKC", name)


def _same(option: Any, value: Any) -> bool:
    """Returns True for the same option. True is not 1, and 1.0 is."""
    kinds = {type(option), type(value)}
    return (len(kinds) == 1 or kinds == {int, float}) and bool(option == value)


def _same_option(name: str, one: Choice, other_name: str, other: Choice, *, negated: bool) -> Truth:
    table = np.array([[_same(a, b) != negated for b in other.options] for a in one.options])
    return algebra.comparison(
        lambda v: algebra.signs(table[v.numbers[name], v.numbers[other_name]]),
        frozenset((name, other_name)),
        equal=not negated,
    )
