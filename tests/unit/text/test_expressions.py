"""Expressions are read into trees without being evaluated, in any pieces."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.text.expression_tree import CallExpression, Source
from toolwire.text.expressions import MAX_NESTING, Callee, ExpressionScanner


def scan(text: str, size: int = 0) -> tuple[Any, str, int]:
    """Return the value, the error and the position where the scanner stopped."""
    scanner, tail, before = ExpressionScanner(), "", 0
    size = size or max(1, len(text))
    for at in range(0, len(text), size):
        tail += text[at : at + size]
        stop = scanner.scan(tail, 0, at + size >= len(text))
        before, tail = before + stop, tail[stop:]
        if scanner.done or scanner.error:
            break
    return scanner.value if scanner.done else None, scanner.error, before


def call(name: str, *positional: Any, text: str = "", unpacked: Any = (), **keywords: Any) -> CallExpression:
    return CallExpression(name, list(positional), keywords, list(unpacked), text)


READ: list[tuple[str, Any]] = [
    ("'a'", "a"),
    ('"""a "b" c"""', 'a "b" c'),
    ("[1, -2.5, 1_000, 0x10, True, None, false, null]", [1, -2.5, 1000, 16, True, None, False, None]),
    ("{'a': (1,), 'b': {1, 2}, 'c': (3), 'd': ()}", {"a": [1], "b": [1, 2], "c": 3, "d": []}),
    ('{"a": "x "y" z"}', {"a": 'x "y" z'}),
    ('{"a": "x\\/y"}', {"a": "x/y"}),
    ("{a: 1}", {"a": 1}),
    ("[x, a.b, x + 1, not y]", None),
    ("f()", call("f", text="f()")),
    ("f(1, a='x', **{'b': 2})", call("f", 1, text="f(1, a='x', **{'b': 2})", unpacked=[{"b": 2}], a="x")),
    ("f(a: 1)", call("f", text="f(a: 1)", a=1)),
    ("f(a=g(b=1))", call("f", text="f(a=g(b=1))", a=Source("g(b=1)"))),
    ("f(a=x)", call("f", text="f(a=x)", a=Source("x", is_name=True))),
    ("f(a=New York, b=x + 'q', c=2024-05-01)",
     call("f", text="f(a=New York, b=x + 'q', c=2024-05-01)", a=Source("New York"), b=Source("x + 'q'"),
          c=Source("2024-05-01"))),
    ("f(a=[1, # one\n 2,], )", call("f", text="f(a=[1, # one\n 2,], )", a=[1, 2])),
    ("f(a=x >= 2)", call("f", text="f(a=x >= 2)", a=Source("x >= 2"))),
    ("f(a=d['k'][0])", call("f", text="f(a=d['k'][0])", a=Source("d['k'][0]"))),
    (r"f(r'\d', a=r'C:\new', b=[u'x\n', R'\w'])",
     call("f", r"\d", text=r"f(r'\d', a=r'C:\new', b=[u'x\n', R'\w'])", a=r"C:\new", b=["x\n", r"\w"])),
    ("my\\_f(a\\_b=1)", call("my_f", text="my\\_f(a\\_b=1)", a_b=1)),
    ("['f'(a=1)]", [call("f", text="'f'(a=1)", a=1)]),
    # Brackets and what is between them.
    ("[]", []),
    ("{}", {}),
    ("(1, 2)", [1, 2]),
    ("((1))", 1),
    ("{'a': {'b': (1,)}}", {"a": {"b": [1]}}),
    ("[{'a'}, 'b']", [["a"], "b"]),
    ("[\n 1, # one, [two\n 2\n # three\n]", [1, 2]),
    ("{'a': # x\n 1}", {"a": 1}),
    ("f(**{'a': 1}, b=2, )", call("f", text="f(**{'a': 1}, b=2, )", unpacked=[{"a": 1}], b=2)),
    ("f(**x, **{})", call("f", text="f(**x, **{})", unpacked=[Source("x", is_name=True), {}])),
    ("f('g'(1))", call("f", Source("'g'(1)"), text="f('g'(1))")),
    ("f(g(1)(2), [h()])", call("f", Source("g(1)(2)"), [Source("h()")], text="f(g(1)(2), [h()])")),
    # Names, numbers and words.
    ("a.b-c$d(x.y=1)", call("a.b-c$d", text="a.b-c$d(x.y=1)", **{"x.y": 1})),
    ("f(.5, +1, -2, 1e3, 0b11)", call("f", 0.5, 1, -2, 1000.0, 3, text="f(.5, +1, -2, 1e3, 0b11)")),
    ("f(-x, 1.2.3, a.b, 7th)",
     call("f", Source("-x"), Source("1.2.3"), Source("a.b", is_name=True), Source("7th"),
          text="f(-x, 1.2.3, a.b, 7th)")),
    ("f(a=1(2))", call("f", text="f(a=1(2))", a=Source("1(2)"))),
    ("{a\\_b: 1, 'c\\_d': 2}", {"a_b": 1, "c\\_d": 2}),
    # Expressions that stay text.
    ("f(a==1)", call("f", Source("a==1"), text="f(a==1)")),
    ("f(a!=1, b<=2)", call("f", Source("a!=1"), Source("b<=2"), text="f(a!=1, b<=2)")),
    ("f(a=x != y, b=1)", call("f", text="f(a=x != y, b=1)", a=Source("x != y"), b=1)),
    ("f(a=lambda x: x + 1, b=d[1:2])",
     call("f", text="f(a=lambda x: x + 1, b=d[1:2])", a=Source("lambda x: x + 1"), b=Source("d[1:2]"))),
    ("f(a={'k': v: w})", call("f", text="f(a={'k': v: w})", a={"k": Source("v: w")})),
    ("{'a': x + 1, 'b': 2}", {"a": Source("x + 1"), "b": 2}),
    ("f(a=x['}', \")\"](1), b=2)",
     call("f", text="f(a=x['}', \")\"](1), b=2)", a=Source("x['}', \")\"](1)"), b=2)),
    ("f(a=x + 'it\\'s, ' + y, b=2)",
     call("f", text="f(a=x + 'it\\'s, ' + y, b=2)", a=Source("x + 'it\\'s, ' + y"), b=2)),
    ("f(a=x + 'a\\)b', b=2)", call("f", text="f(a=x + 'a\\)b', b=2)", a=Source("x + 'a\\)b'"), b=2)),
    ("f(a=g(b=1, c=[x=2]), b=2)", call("f", text="f(a=g(b=1, c=[x=2]), b=2)", a=Source("g(b=1, c=[x=2])"), b=2)),
    ("f(a=x if y == 1 else {1: 2}[3])",
     call("f", text="f(a=x if y == 1 else {1: 2}[3])", a=Source("x if y == 1 else {1: 2}[3]"))),
    ("f(a=abc'x', b=€5)", call("f", text="f(a=abc'x', b=€5)", a=Source("abc'x'"), b=Source("€5"))),
]  # fmt: skip
REFUSED = [
    "f(a=1, a=2)", "f(a=1, 2)", "f(*x)", "f(a=1 b=2)", "f(a='x' 'y')", "f(a=f'x')", "f(a=rb'x')", "[1, 2)",
    "{'a': 1, 2}", "{1: 2}",
    "f(a=)", "f(,)", "{'a': 1, 'a': 2}", "]", "[" * (MAX_NESTING + 1), "f(a=\ud83d)", "f(a=x])",
    "f(a=9" + "9" * 5000 + ")",
    # Something is missing, or too much.
    "{1, 'a': 2}", "{'a': 1, 'b'}", "{'a': }", "{'a' 1}", "[1 2]", "[1 x]", "[x y]", "[=]", "[1,, 2]", "(1]", "f(**)",
    "f(*)", "f(* *x)", "[**x]", "# x\nf()", ":", "=", "*x", "f(**x=1)", "f(1=2)", "f('a'=1)", "f(a=b=1)",
    "f(a:b=1)", "f(a=1=2)", "[a=1]", "[a: 1]", "(a: 1)", "{a=1}", "{f(): 1}", "{[1]: 2}", "{a: 1, a: 2}",
    "f(a=1, **x, a=2)", "f(a=1, x + 1)", "f(x y=1)", "['a' 'b']", "f(a='x' y='z')",
    # Brackets that do not match, and too many.
    "f(a=x + (1])", "f(a=x + [1)])", "f(a=x + {1]})", "f(a={x + y: 1})", "f(a=x}", "[1}", "{'a': 1]",
    "f(a=x + " + "(" * (MAX_NESTING + 1) + ")", "f(" * 2 + "[" * (MAX_NESTING - 1),
    # Strings that are not plain ones.
    "f(rb'x')", "f(F'x')", 'f(a=Rb"x")', "[b'x']",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), [(text, value) for text, value in READ if value is not None])
def test_an_expression_is_read_in_any_pieces(text: str, value: Any) -> None:
    for size in (0, 1, 2, 3, 5):
        assert scan(f"{text} rest", size) == (value, "", len(text)), size


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_an_expression_is_refused_at_a_character(text: str) -> None:
    outcome = scan(text)
    assert outcome[0] is None
    assert outcome[1]
    for size in (1, 2, 3):
        assert scan(text, size) == outcome


def test_nesting_is_read_up_to_a_limit() -> None:
    deep = "[" * MAX_NESTING + "1" + "]" * MAX_NESTING
    assert scan(deep)[1] == ""
    text = f"f(a=x + {'(' * MAX_NESTING}1{')' * MAX_NESTING})"
    assert scan(text)[0].keywords["a"].text == text[4:-1]


class Choosy(ExpressionScanner):
    """Knows one tool, one wrapper, one key and one text."""

    def on_call(self, name: str) -> Callee:
        return "tool" if name == "tool" else "wrapper" if name == "wrapper" else "unknown"

    def on_key(self, key: str) -> bool:
        return key == "key"

    def on_text(self, text: str) -> bool:
        return text == "text"


def choose(text: str) -> tuple[str, str, bool]:
    """Return the error, the text up to it, and whether a call to a tool has begun."""
    scanner = Choosy()
    stop = scanner.scan(text, 0, True)
    assert scanner.text == text[:stop]
    return scanner.error, text[:stop], scanner.in_call


@pytest.mark.parametrize(
    ("text", "read", "in_call"),
    [
        ("other(1)", "other", False),
        ("[other(1)]", "[other", False),
        ("wrapper(other(1))", "wrapper(other", False),
        ("tool(other(1), {'other': 'other'}, ['other']), x", "", True),
        ("wrapper(tool(1))", "", True),
        ("wrapper(['text'])", "", False),
        ("wrapper('other')", "", False),
        ("{'key': 1, 'other': 2}", "{'key': 1, 'other'", False),
        ("[{'other': 2}]", "[{'other'", False),
        ("{'key': {'other': ['other']}}", "", False),
        ("wrapper({'other': 1})", "", False),
        ("'other'", "'other'", False),
        ("['text', ['text'], 'other']", "['text', ['text'], 'other'", False),
        ("[[['other']]]", "[[['other'", False),
        ("['text', ('other')]", "", False),
        ("t" * 257 + "()", "t" * 257, False),
    ],
)
def test_reading_ends_where_it_cannot_become_a_call(text: str, read: str, in_call: bool) -> None:
    error, before, begun = choose(text)
    assert (before if error else "", begun) == (read, in_call)


def test_a_name_that_is_called_has_at_most_256_characters() -> None:
    assert scan(f"{'f' * 256}()")[1] == ""
    assert scan(f"{'f' * 257}()")[1:] == (f"{'f' * 60!r} is not a known tool", 257)


def test_repairs_are_recorded_once() -> None:
    for text, repairs in (
        ("{a: 1, b: {c: 2}}", ["bare_key"]),
        ('{"a": "x "y" z", "b": "x "y" z"}', ["inner_quote"]),
        ("{'a': 1}", []),
        ("f(a=1)", []),
    ):
        scanner = ExpressionScanner()
        scanner.scan(text, 0, True)
        assert (scanner.done, scanner.repairs) == (True, repairs), text


def test_an_expression_in_the_middle_of_a_text_is_read_as_one_of_its_own() -> None:
    text = "So f(a=g(1), b=x + 1) it is"
    scanner = ExpressionScanner()
    assert scanner.scan(text, 3, True) == 21
    assert scanner.value == call("f", text=text[3:21], a=Source("g(1)"), b=Source("x + 1"))
    assert scanner.text == text[3:21]


def test_pieces_in_the_middle_of_texts_are_read_as_one_expression() -> None:
    scanner = ExpressionScanner()
    assert scanner.scan("So f(a=g(1), ", 3, False) == 13
    assert scanner.scan("-- b=x + 1) it is", 3, True) == 11
    assert scanner.value == call("f", text="f(a=g(1), b=x + 1)", a=Source("g(1)"), b=Source("x + 1"))


@pytest.mark.parametrize(("text", "value"), [("x", Source("x", is_name=True)), ("12", 12), ("True", True)])
def test_a_word_ends_with_the_text(text: str, value: Any) -> None:
    scanner = ExpressionScanner()
    assert (scanner.scan(text, 0, False), scanner.done) == (len(text), False)
    assert (scanner.scan("", 0, True), scanner.done, scanner.value) == (0, True, value)
    assert scan(f"[{text}")[:2] == (None, "")


def test_a_piece_is_read_as_far_as_it_is_certain() -> None:
    for text, rest in (("f(a=x >= 2, b='x', ", ""), ("f(a=x =", "="), ("f(a", ""), ("f(a=", "="), ("f(*", "*")):
        scanner = ExpressionScanner()
        assert text[scanner.scan(text, 0, False) :] == rest
        assert (scanner.done, scanner.error, scanner.is_open) == (False, "", True)


def test_a_bracket_is_open_until_its_closer() -> None:
    scanner = ExpressionScanner()
    states = []
    for character in "f([1])":
        scanner.scan(character, 0, False)
        states.append(scanner.is_open)
    assert states == [False, True, True, True, True, False]


def test_a_cut_expression_is_neither_read_nor_refused() -> None:
    text = "f(a=[1, 'x'], b={'c': y + 1})"
    for cut in range(len(text)):
        value, error, _ = scan(text[:cut])
        assert value is None or value == Source("f", is_name=True)
        assert not error


@pytest.mark.parametrize(
    "text",
    [
        "f(a\uff1d'b')",
        "f(a='b'\uff0cc='d')",
        "f(a=\u4f60\u597d\uff0c\u4e16\u754c)",
        "f(a=b\uff081\uff09)",
        "f(a=b c\uff1ad)",
        "f(a=b + c \uff02d\uff02)",
    ],
)
def test_an_expression_has_no_wide_form_of_a_sign(text: str) -> None:
    at = next(at for at, character in enumerate(text) if character >= "\uff00")
    for size in (0, 1, 2):
        value, error, stop = scan(text, size)
        assert (value, stop <= at, bool(error)) == (None, True, True)


def test_text_and_strings_may_have_other_wide_signs() -> None:
    assert scan("f(a=\u4f60\u597d\u3001\u4e16)")[0].keywords["a"].text == "\u4f60\u597d\u3001\u4e16"
    assert scan("f(a='b\uff0cc\uff1dd')")[0].keywords == {"a": "b\uff0cc\uff1dd"}


def test_an_operation_inside_a_list_of_strings_is_no_string() -> None:
    assert scan('f(a=["b" + "c"])')[1] == "an expression is in the place of a string"
    assert scan("f(a='b' + 'c')")[0].keywords["a"].text == "'b' + 'c'"
