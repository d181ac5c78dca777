"""Stand-ins of vLLM's and SGLang's modules, as far as the plug-ins use them, so that their tests need neither."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, Field

ROOT = Path(__file__).parents[2]


class DeltaFunctionCall(BaseModel):
    name: str | None = None
    arguments: str | None = None


class DeltaToolCall(BaseModel):
    id: str | None = None
    type: str | None = None
    index: int
    function: DeltaFunctionCall | None = None


class DeltaMessage(BaseModel):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[DeltaToolCall] = Field(default_factory=list)


class FunctionCall(BaseModel):
    id: str | None = None
    name: str
    arguments: str


class VllmToolCall(BaseModel):
    id: str
    type: str = "function"
    function: FunctionCall


class ExtractedToolCallInformation(BaseModel):
    tools_called: bool
    tool_calls: list[VllmToolCall]
    content: str | None = None


class StructuredOutputsParams(BaseModel):
    structural_tag: str | None = None


class ToolParser:
    supports_required_and_named = True
    structural_tag_model: str | None = None
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.current_tool_id = -1
        self.streamed_args_for_tool: list[str] = []
        self.model_tokenizer = tokenizer

    def adjust_request(self, request: Any) -> Any:
        request.adjusted_by_vllm = True
        return request


class ReasoningParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, *args: Any, **keywords: Any) -> None:
        self.model_tokenizer = tokenizer


class Parser:
    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **keywords: Any) -> None:
        self.model_tokenizer = tokenizer


class Manager:
    """A registry of parsers, by name: the module and the class in it."""

    lazy_parsers: dict[str, tuple[str, str]]

    def __init__(self) -> None:
        self.lazy_parsers = {}

    def register_lazy_module(self, name: str, module_path: str, class_name: str) -> None:
        self.lazy_parsers[name] = (module_path, class_name)


def _vllm_modules() -> dict[str, dict[str, Any]]:
    protocol = {
        "DeltaFunctionCall": DeltaFunctionCall,
        "DeltaMessage": DeltaMessage,
        "DeltaToolCall": DeltaToolCall,
        "ExtractedToolCallInformation": ExtractedToolCallInformation,
        "FunctionCall": FunctionCall,
        "ToolCall": VllmToolCall,
    }
    return {
        "vllm": {},
        "vllm.entrypoints": {},
        "vllm.entrypoints.generate": {},
        "vllm.entrypoints.generate.base": {},
        "vllm.entrypoints.generate.base.protocol": protocol,
        "vllm.sampling_params": {"StructuredOutputsParams": StructuredOutputsParams},
        "vllm.tool_parsers": {"ToolParserManager": Manager()},
        "vllm.tool_parsers.abstract_tool_parser": {"ToolParser": ToolParser},
        "vllm.reasoning": {"ReasoningParser": ReasoningParser, "ReasoningParserManager": Manager()},
        "vllm.parser": {},
        "vllm.parser.abstract_parser": {"Parser": Parser},
    }


@contextmanager
def engine_modules(modules: dict[str, dict[str, Any]], package: str) -> Iterator[None]:
    """Let programs import these modules, and one of our packages in `integrations`."""
    before = dict(sys.modules)
    for name, members in modules.items():
        module = ModuleType(name)
        module.__path__ = []  # a package
        vars(module).update(members)
        sys.modules[name] = module
    source = str(ROOT / "integrations" / package / "src")
    sys.path.insert(0, source)
    try:
        yield
    finally:
        sys.path.remove(source)
        for name in set(sys.modules) - set(before):
            if name.partition(".")[0] in (*(name.partition(".")[0] for name in modules), f"toolwire_{package}"):
                del sys.modules[name]


def vllm_modules() -> Any:
    """Return a context in which vLLM's stand-ins and `toolwire_vllm` can be imported."""
    return engine_modules(_vllm_modules(), "vllm")


class SglangTool(BaseModel):
    type: str = "function"
    function: SglangFunction


class SglangFunction(BaseModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool = False


class BaseFormatDetector:
    def __init__(self) -> None:
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.current_tool_id = -1
        self.current_tool_name_sent = False
        self.streamed_args_for_tool: list[str] = []


class ToolCallItem(BaseModel):
    tool_index: int
    name: str | None = None
    parameters: str


class StreamingParseResult(BaseModel):
    normal_text: str = ""
    calls: list[ToolCallItem] = []


class StructureInfo:
    pass


class _Switch:
    def __init__(self) -> None:
        self.on = False

    def get(self) -> bool:
        return self.on


class SglangEnvironment:
    def __init__(self) -> None:
        self.SGLANG_FORWARD_UNKNOWN_TOOLS = _Switch()


class FunctionCallParser:
    ToolCallParserEnum: dict[str, Any]


class StructuralTag(BaseModel):
    type: str
    format: dict[str, Any]


def sglang_modules() -> Any:
    """Return a context in which SGLang's stand-ins and `toolwire_sglang` can be imported."""
    types = {
        "StreamingParseResult": StreamingParseResult,
        "StructureInfo": StructureInfo,
        "ToolCallItem": ToolCallItem,
    }
    table = type("FunctionCallParser", (FunctionCallParser,), {"ToolCallParserEnum": {}})
    modules: dict[str, dict[str, Any]] = {
        "sglang": {},
        "sglang.srt": {},
        "sglang.srt.environ": {"envs": SglangEnvironment()},
        "sglang.srt.function_call": {},
        "sglang.srt.function_call.base_format_detector": {"BaseFormatDetector": BaseFormatDetector},
        "sglang.srt.function_call.core_types": types,
        "sglang.srt.function_call.function_call_parser": {"FunctionCallParser": table},
        "xgrammar": {"StructuralTag": StructuralTag},
    }
    return engine_modules(modules, "sglang")
