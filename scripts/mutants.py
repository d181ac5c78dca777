"""Mutation operators: the small edits of a module's source that its tests should notice.

A mutant is one edit of the text, so that the rest of the module stays as it is written and a difference is one line.
Annotations, decorators, f-strings, docstrings, prose and what is raised are left alone, as are lines that say
`pragma: no mutate`, and figures that a benchmark writes between `# begin measured` and `# end measured`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NOT_VALUES = {"TypeVar", "ParamSpec", "NewType", "cast"}
_TYPE = re.compile(r"[A-Z]\w*[a-z]|(dict|list|tuple|set|frozenset|type|int|float|str|bytes|bool)$")
"""Names of types: what they are subscripted or united with is not a value."""
_WORDS_OF_PROSE = 3
_FIGURES = re.compile(rb"# begin measured\n.*?# end measured\n", re.DOTALL)


@dataclass(frozen=True)
class Mutant:
    """One edit: the bytes from `start` to `end` become `text`.

    Args:
        operator: the kind of mutation.
        first: the first line of what is mutated.
        last: the last line of it.
        statement: the first line of the statement around it.
    """

    operator: str
    start: int
    end: int
    text: str
    first: int
    last: int
    statement: int

    @property
    def key(self) -> str:
        """Name the mutant within one version of the source."""
        return f"{self.start}-{self.end}:{self.text}"

    def apply(self, source: bytes) -> bytes:
        """Return the mutated source."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> tuple[str, str]:
        """Return the first line that differs, before and after."""
        begin = source.rfind(b"\n", 0, self.start) + 1
        before, after = (text[begin:].partition(b"\n")[0].decode().strip() for text in (source, self.apply(source)))
        return before, after

    def compiles(self, source: bytes) -> bool:
        """Tell whether the mutated source is Python."""
        try:
            ast.parse(self.apply(source))
        except SyntaxError:
            return False
        return True


def find_mutants(source: bytes) -> list[Mutant]:
    """Return all mutants of a module, by position."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    lines = source.decode().splitlines()
    figures = [match.span() for match in _FIGURES.finditer(source)]
    kept = [
        one
        for one in finder.found
        if "pragma: no mutate" not in lines[one.first - 1]
        and not any(begin <= one.start < end for begin, end in figures)
    ]
    return sorted(kept, key=lambda one: (one.start, one.end, one.text))


class _Finder(ast.NodeVisitor):
    """Collects mutants; `visit_*` of what holds no values does nothing."""

    def __init__(self, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._source = source
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self._statement = 1

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end_column

    def _add(self, operator: str, node: ast.expr | ast.stmt, text: str, span: tuple[int, int] | None = None) -> None:
        start, end = span or self._span(node)
        last = node.end_lineno or node.lineno
        self.found.append(Mutant(operator, start, end, text, node.lineno, last, self._statement))

    def _between(
        self, operator: str, node: ast.expr | ast.stmt, around: tuple[int, int], swap: tuple[str, str]
    ) -> None:
        """Swap the operator that stands between two operands."""
        begin, end = around
        gap = self._source[begin:end]
        if b"#" not in gap and (found := re.search(swap[0].encode(), gap)):
            self._add(operator, node, swap[1], (begin + found.start(), begin + found.end()))

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr):
            start, end = self._span(test)
            self._add("negation", test, f"not ({self._source[start:end].decode()})")

    def visit(self, node: ast.AST) -> None:
        """Remember the statement before its parts are visited."""
        if isinstance(node, ast.stmt):
            self._statement = node.lineno
        super().visit(node)

    def _nothing(self, node: ast.AST) -> None:
        """Leave a node alone, and all that it holds."""

    visit_Import = visit_ImportFrom = visit_Raise = visit_Assert = visit_JoinedStr = _nothing

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if not isinstance(node, ast.ClassDef):
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
        for statement in node.body:
            self.visit(statement)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _body

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call | ast.Await):
            self._add("statement removed", node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        names_something = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))
        leaves = isinstance(node.body[0], ast.Return | ast.Raise | ast.Continue | ast.Break)
        if len(node.body) == 1 and leaves and not node.orelse and not names_something:
            self._add("guard removed", node.test, "False")
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            return
        if not (isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))):
            self._add("return value", value, "None")
        self.visit(value)

    def visit_Break(self, node: ast.Break) -> None:
        self._add("loop control", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("loop control", node, "break")

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, sign, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between("comparison", node, (self._span(left)[1], self._span(right)[0]), _COMPARISONS[type(sign)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        swap = (r"\band\b", "or") if isinstance(node.op, ast.And) else (r"\bor\b", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("boolean", node, (self._span(left)[1], self._span(right)[0]), swap)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self._span(node)[0]
        if isinstance(node.op, ast.Not):
            self._add("negation", node, "", (start, start + len("not ")))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not _is_union_or_text(node) and (swap := _ARITHMETIC.get(type(node.op))):
            self._between("arithmetic", node, (self._span(node.left)[1], self._span(node.right)[0]), swap)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if swap := _ARITHMETIC.get(type(node.op)):
            self._between("arithmetic", node, (self._span(node.target)[1], self._span(node.value)[0]), swap)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _FUNCTIONS:
            self._add("function", node.func, _FUNCTIONS[name])
        if name not in _NOT_VALUES:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and _TYPE.match(node.value.id)):
            self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._add("slice bound", bound, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        for text in _other_constants(node.value):
            self._add("constant", node, text)


def _is_union_or_text(node: ast.BinOp) -> bool:
    """Tell whether another operator would only be a TypeError: types that are united, strings that are joined."""
    for side in (node.left, node.right):
        name = side.id if isinstance(side, ast.Name) else side.attr if isinstance(side, ast.Attribute) else ""
        if isinstance(node.op, ast.BitOr) and _TYPE.match(name):
            return True
        if isinstance(side, ast.JoinedStr) or (
            isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, str))
        ):
            return True
    return False


def _other_constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int | float):
        yield repr(value + 1)
    elif isinstance(value, str) and value and len(value.split()) < _WORDS_OF_PROSE:
        yield '""'
    elif isinstance(value, bytes) and value:
        yield 'b""'
