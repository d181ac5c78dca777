"""Real engines that constrain decoding, as matchers of strings: no model and no GPU is needed.

llama.cpp's own grammar code is in the library of xllamacpp. llguidance takes a tokenizer of single bytes. xgrammar
names torch and transformers as requirements, which its matching of strings never uses; empty modules replace them here.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from toolwire import Grammar
from toolwire.grammars.text_match import match_text, open_matcher


@dataclass(frozen=True, slots=True)
class Match:
    """What an engine made of a text.

    Attributes:
        characters: how many it accepted, from the beginning.
        complete: it accepted all, and the text may end there.
    """

    characters: int
    complete: bool


class LlamaCpp:
    """llama.cpp's grammar code, by the names of its C++ functions."""

    syntaxes = ("gbnf",)

    def __init__(self) -> None:
        spec = importlib.util.find_spec("xllamacpp")
        if spec is None or spec.origin is None:
            raise ImportError("xllamacpp is not installed")
        importlib.import_module("xllamacpp")
        library = ctypes.CDLL(str(next(Path(spec.origin).parent.glob("*.so"))))
        pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        arguments = [pointer, text, text, ctypes.c_bool, pointer, size, pointer, size]
        self._load = self._function(
            library, "_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim", pointer, arguments
        )
        self._take = self._function(
            library, "_Z20llama_grammar_acceptP13llama_grammarj", None, [pointer, ctypes.c_uint32]
        )
        self._stacks = self._function(library, "_Z24llama_grammar_get_stacksP13llama_grammar", pointer, [pointer])
        self._copy = self._function(library, "_Z24llama_grammar_clone_implRK13llama_grammar", pointer, [pointer])
        self.free = self._function(library, "_Z23llama_grammar_free_implP13llama_grammar", None, [pointer])

    @staticmethod
    def _function(library: ctypes.CDLL, name: str, result: Any, arguments: list[Any]) -> Any:
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"this xllamacpp has no {name}") from None
        function.restype, function.argtypes = result, arguments
        return function

    def match(self, grammar: str, text: str, syntax: str) -> Match:
        loaded = self.load(grammar)
        try:
            for at, character in enumerate(text):
                if not self.take(loaded, character):
                    return Match(at, False)
            return Match(len(text), self.may_end(loaded))
        finally:
            self.free(loaded)

    def load(self, grammar: str) -> int:
        """Return the address of a grammar, which has to be freed."""
        loaded: int | None = self._load(None, grammar.encode(), b"root", False, None, 0, None, 0)
        if not loaded:
            raise ValueError("llama.cpp refuses the grammar")
        return loaded

    def take(self, loaded: int, character: str) -> bool:
        """Read a character; return whether the grammar allows it."""
        self._take(loaded, ord(character))
        return any(True for _ in self._vectors(loaded))

    def allows(self, loaded: int, character: str) -> bool:
        """Return whether a character may follow."""
        copied = self._copy(loaded)
        try:
            return self.take(copied, character)
        finally:
            self.free(copied)

    def may_end(self, loaded: int) -> bool:
        """Return whether the text may end here."""
        return any(begin == end for begin, end in self._vectors(loaded))

    def _vectors(self, loaded: int) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each stack; an empty one says that the text may end here."""
        stacks = (ctypes.c_void_p * 3).from_address(self._stacks(loaded))
        for address in range(stacks[0] or 0, stacks[1] or 0, 24):
            stack = (ctypes.c_void_p * 3).from_address(address)
            yield stack[0] or 0, stack[1] or 0


class LlGuidance:
    """llguidance, with a vocabulary of all bytes."""

    syntaxes = ("lark",)

    def __init__(self) -> None:
        importlib.import_module("llguidance")

    def load(self, grammar: str) -> Any:
        """Return a matcher, which tokens can be fed to."""
        return open_matcher(grammar)

    def match(self, grammar: str, text: str, syntax: str) -> Match:
        matched = match_text(Grammar(grammar, "lark"), text)
        return Match(matched.allowed, matched.complete)


class XGrammar:
    """xgrammar, which reads three syntaxes."""

    syntaxes = ("gbnf", "lark", "structural_tag")

    def __init__(self) -> None:
        importlib.import_module("tvm_ffi")
        with _empty_modules("torch", "transformers"):
            self._module: Any = importlib.import_module("xgrammar")
            self._testing: Any = importlib.import_module("xgrammar.testing")
        self._grammar = self._module.Grammar
        self._compiled = cache(self._compile)

    def _compile(self, grammar: str, syntax: str) -> Any:
        match syntax:
            case "gbnf":
                return self._grammar.from_ebnf(grammar)
            case "lark":
                return self._grammar.from_lark(grammar)
            case _:
                return self._grammar.from_structural_tag(grammar)

    def compiler(self, tokens: Sequence[bytes], end: int) -> Any:
        """Return a compiler for a vocabulary; `end` is the token that ends a text."""
        raw, size = self._module.VocabType.RAW, len(tokens)
        vocabulary = self._module.TokenizerInfo(list(tokens), vocab_type=raw, vocab_size=size, stop_token_ids=[end])
        return self._module.GrammarCompiler(vocabulary, max_threads=1)

    def matcher(self, compiler: Any, grammar: str, syntax: str) -> Any:
        """Return a matcher of tokens."""
        return self._module.GrammarMatcher(compiler.compile_grammar(self._compiled(grammar, syntax)))

    def _accepts(self, grammar: str, text: str, syntax: str) -> tuple[bool, bool]:
        matcher = self._testing._get_matcher_from_grammar(self._compiled(grammar, syntax))
        accepted = matcher.accept_string(text)
        return accepted, accepted and matcher.is_completed()

    def match(self, grammar: str, text: str, syntax: str) -> Match:
        accepted, complete = self._accepts(grammar, text, syntax)
        if accepted:
            return Match(len(text), complete)
        low, high = 0, len(text)  # the longest accepted beginning, by bisection
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._accepts(grammar, text[:middle], syntax)[0] else (low, middle - 1)
        return Match(low, False)


@contextmanager
def _empty_modules(*names: str) -> Iterator[None]:
    """Import with modules in place of these that have every name, and nothing in it."""

    class Empty(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__init__": lambda self, *arguments, **options: None})

    absent = [name for name in names if name not in sys.modules and importlib.util.find_spec(name) is None]
    sys.modules.update({name: Empty(name) for name in absent})
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


ENGINES: dict[str, type[LlamaCpp | LlGuidance | XGrammar]] = {
    "llama.cpp": LlamaCpp,
    "llguidance": LlGuidance,
    "xgrammar": XGrammar,
}
PAIRS = [(engine, syntax) for engine, kind in ENGINES.items() for syntax in kind.syntaxes]


@cache
def _open(name: str) -> LlamaCpp | LlGuidance | XGrammar | str:
    try:
        return ENGINES[name]()
    except ImportError as error:
        return str(error)


def usable_engines() -> dict[str, LlamaCpp | LlGuidance | XGrammar]:
    """Return the engines that can be used, by name, and print why others cannot."""
    opened = {name: _open(name) for name in ENGINES}
    for name, reason in opened.items():
        if isinstance(reason, str):
            print(f"without {name}: {reason}")
    return {name: real for name, real in opened.items() if not isinstance(real, str)}


def engine(name: str) -> LlamaCpp | LlGuidance | XGrammar:
    """Return an engine, or skip the test and say why."""
    opened = _open(name)
    if isinstance(opened, str):
        pytest.skip(f"the engine {name} cannot be used: {opened}")
    return opened
