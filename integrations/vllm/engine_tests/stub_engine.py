"""A pytest plug-in that lets vLLM's tests of parsers run without torch, a GPU, and downloaded tokenizers.

Modules that need them are replaced by stand-ins whose every attribute exists. Tokenizers are small ones that know the
bytes and the special tokens of the family that a test asks for.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import re
import sys
import types
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic_core import core_schema

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
STAND_INS = tuple((Path(__file__).parent / "stand_ins.txt").read_text("utf-8").split())

REAL = ("vllm.renderers.chat_utils",)
"""Packages inside these that are the real ones."""


class StandIn:
    """An object that can be used as a module's function, class, decorator, annotation or constant."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = StandIn(name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not keywords else StandIn(self.__name__)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __getitem__(self, item: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.any_schema()


class _Module(types.ModuleType):
    __path__: ClassVar[list[str]] = []
    __all__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = StandIn(name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if not name.startswith(REAL) and any(
            name == stand_in or name.startswith(f"{stand_in}.") for stand_in in STAND_INS
        ):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        module = _Module(spec.name)
        top, *rest = spec.name.split(".")
        if top == "vllm" and rest:  # so that a module inside it can be the real one
            module.__path__ = [str(Path(path, *rest)) for path in sys.modules["vllm"].__path__]
        return module

    def exec_module(self, module: Any) -> None:
        pass


with contextlib.suppress(ImportError):
    # The real xgrammar works without torch, if its own library is loaded before the stand-in of torch is there.
    import tvm_ffi  # noqa: F401
os.environ |= ENVIRONMENT
sys.meta_path.insert(0, _Finder())


# -- tokenizers ----------------------------------------------------------------------------------------------------

_MARKER = re.compile(r"""<[|｜/]?[A-Za-z_][\w:|｜▁/-]*[|｜]?>|\[/?[A-Z_]{4,}\]|◁/?think▷""")


@cache
def _markers() -> tuple[str, ...]:
    """Return the markers that vLLM's parsers mention: each is one token of the small tokenizer."""
    import vllm

    root = Path(vllm.__path__[0])
    files = (path for room in ("tool_parsers", "parser", "reasoning") for path in (root / room).rglob("*.py"))
    markers = {marker for path in files for marker in _MARKER.findall(path.read_text("utf-8"))}
    return tuple(sorted(markers, key=lambda marker: (-len(marker), marker)))


@cache
def small_tokenizer(*args: Any, **keywords: Any) -> Any:
    """Return a tokenizer of bytes and markers, the same for every model."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({character: at for at, character in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_tokens([AddedToken(marker, normalized=False) for marker in _markers()])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", bos_token="<s>")


def pytest_configure(config: Any) -> None:
    """Put the small tokenizer where tests get theirs, before they are imported."""
    import transformers
    import vllm.tokenizers

    transformers.AutoTokenizer.from_pretrained = small_tokenizer
    for module in (vllm.tokenizers, sys.modules["vllm.tokenizers.registry"]):
        module.get_tokenizer = small_tokenizer
        module.cached_get_tokenizer = small_tokenizer
