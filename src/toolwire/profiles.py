"""Facts about model families: in which wire format a model was trained to write calls.

Data, not code: one line per family. A name is a hub name, an Ollama tag or a provider's model id; the first family
whose pattern is found in it counts, so the special stands before the general.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolwire.wire.registry import AUTO, all_formats, get_format
from toolwire.wire.syntax import Lit, Span, Tag, Value, WireFormat, as_written


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known about a model.

    Attributes:
        name: the name that was asked for.
        family: the family that it belongs to; "" if none is known, or a template told.
        format: the wire format's name; "auto" if no family is known.
        reasoning_started: its chat template opens the reasoning, at least where thinking is switched on.
        reason: why this was chosen, in a sentence.
        api: the API that its maker serves it by, where its calls stand in fields; "" if that is up to who serves it.
        quirks: what its API or its template asks for beyond the usual: keys of `QUIRKS`.
    """

    name: str
    family: str
    format: str
    reasoning_started: bool
    reason: str
    api: str = ""
    quirks: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether a format was found."""
        return self.format != AUTO

    @property
    def spans(self) -> tuple[Span, ...]:
        """The markers around its reasoning."""
        return get_format(self.format).spans if self.known else ()

    @property
    def ends_reasoning(self) -> bool:
        """Whether a call ends reasoning that was not closed."""
        return self.known and get_format(self.format).ends_reasoning

    @property
    def anywhere(self) -> bool:
        """Whether calls may stand anywhere in the content, not at its start alone."""
        return not self.known or get_format(self.format).at == "anywhere"


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    pattern: str
    format: str
    started: bool = False
    api: str = ""


def _families(
    *rows: tuple[str, str, str] | tuple[str, str, str, bool] | tuple[str, str, str, bool, str],
) -> tuple[_Family, ...]:
    return tuple(_Family(*row) for row in rows)


# family, what its names hold (a separator is one of - _ . / : or a blank), format, reasoning opened by the prompt
FAMILIES = _families(
    ("DeepSeek R1 distilled into Qwen or Llama", r"deepseek-r1.*(distill|qwen|llama)", "hermes", True),
    ("Qwen3-Coder", r"qwen-?3-coder|qwen3coder", "qwen3_coder"),
    ("Qwen3.5 and later", r"qwen-?3-[5-9](?![0-9b])", "qwen3_coder", True),
    ("Qwen3-Next", r"qwen-?3-next.*thinking", "hermes", True),
    ("Qwen3 Thinking", r"qwen-?3.*thinking", "hermes", True),
    ("QwQ", r"qwq", "hermes", True),
    ("Qwen", r"qwen-?(2-5|2|3|1-5)?", "hermes"),
    ("Hermes 4", r"hermes-?4", "hermes"),
    ("Hermes", r"(nous-?)?hermes-?(2|3|2-pro)?", "hermes"),
    ("MiMo-VL", r"mimo-vl", "hermes"),
    ("MiMo", r"mimo", "mimo"),
    ("SmolLM3", r"smollm-?3", "hermes"),
    ("Bielik", r"bielik", "hermes"),
    ("Reka", r"(^|-)reka", "hermes"),
    ("Trinity", r"trinity", "hermes"),
    ("Granite 4", r"granite-?4", "hermes"),
    ("Granite 20B function calling", r"granite-20b-function", "granite_20b"),
    ("Granite 3", r"granite-?3", "granite"),
    ("ToolACE", r"toolace", "pythonic"),
    ("Llama 4", r"llama-?4(?!-?bit|[0-9]|b)", "pythonic"),
    ("Llama Nemotron", r"llama-.*nemotron|nemotron-(ultra|super)", "nemotron"),
    ("Nemotron 3", r"nemotron-?3", "qwen3_coder", True),
    ("Nemotron Nano", r"nemotron-nano|nemotron-h", "nemotron", True),
    ("Groq Llama tool use", r"llama-?3.*tool-use", "functionary_v3_1"),
    ("FireFunction", r"firefunction", "firefunction"),
    ("Functionary v3.2", r"functionary.*v?3-2", "functionary_v3_2"),
    ("Functionary v3.1", r"functionary", "functionary_v3_1"),
    ("xLAM", r"xlam", "xlam"),
    ("DeepSeek V4.1", r"deepseek-?v?4-1", "deepseek_v4_1", True),
    ("DeepSeek V4", r"deepseek-?v?4", "deepseek_dsml", True),
    ("DeepSeek V3.2", r"deepseek-?v?3-2", "deepseek_dsml", True),
    ("DeepSeek V3.1", r"deepseek-?v?3-1", "deepseek_v3_1"),
    ("DeepSeek R1", r"deepseek-?r1", "deepseek_v3", True),
    ("DeepSeek V3", r"deepseek-?(v3|chat)", "deepseek_v3"),
    ("Cogito", r"cogito", "deepseek_v3"),
    ("Llama 3", r"llama-?3", "llama3_json"),
    ("Devstral, Magistral, Ministral 3, Mistral Small 3.1 and later",
     r"devstral|magistral|ministral-?3|mistral-small-?(3-[1-9]|2503|2506|4)|mistral-medium|mistral-large-?(3|25)",
     "mistral_args"),
    ("Mistral", r"mistral|mixtral|ministral|codestral|pixtral", "mistral_json"),
    ("Kimi K3", r"kimi-?k3", "kimi_k3", True),
    ("Kimi K2", r"kimi|moonshot", "kimi_k2"),
    ("GLM-4.5 and later", r"glm-?(4-?[5-9](?![0-9b])|5)", "glm4", True),
    ("Ling 3", r"ling-?3|ring-?3", "glm4"),
    ("Spark 2.5", r"spark-?2-5", "glm4"),
    ("Laguna", r"laguna", "laguna"),
    ("InternLM", r"internlm|intern-s1", "internlm"),
    ("Jamba", r"jamba", "jamba"),
    ("Apriel", r"apriel", "apriel", True),
    ("Hunyuan Hy3", r"(^|-)hy-?[34]|hunyuan-?(hy-?)?[34]", "hunyuan_v3", True),
    ("Hunyuan", r"hunyuan", "hunyuan"),
    ("Phi-4-mini", r"phi-?4-mini", "phi4"),
    ("MiniMax M3", r"minimax-?m3", "minimax_m3", True),
    ("MiniMax M2", r"minimax-?m2", "minimax_m2", True),
    ("MiniMax M1", r"minimax-?m1|minimax-?text", "minimax_json"),
    ("Step-3.5", r"step-?3-?5", "qwen3_coder", True),
    ("Step-3", r"step-?3", "step3", True),
    ("ERNIE 4.5", r"ernie", "ernie45", True),
    ("OLMo 3", r"olmo-?3", "olmo3"),
    ("LongCat", r"longcat", "longcat"),
    ("Seed-OSS", r"seed-?oss", "seed_oss"),
    ("Command R7B and Command A", r"command-(r7b|a)|cohere2moe", "cohere_action"),
    ("Command R", r"command-r", "cohere_json"),
    ("GigaChat", r"gigachat", "gigachat"),
    ("FunctionGemma", r"functiongemma", "functiongemma"),
    ("Gemma 4", r"gemma-?4", "gemma4"),
    ("Gemma 2 and 3", r"gemma-?[23]", "gemma_tool_code"),
    ("LFM2", r"lfm-?2", "lfm2"),
    ("Apertus", r"apertus", "apertus"),
    ("gpt-oss", r"gpt-?oss", "harmony"),
    ("MiniCPM", r"minicpm-?[45]", "minicpm5"),
    ("Muse Glimmer", r"glimmer|muse", "glimmer"),
    ("Inkling", r"inkling", "inkling"),
    ("dots", r"(^|-)dots", "dots"),
    ("K2 Horizon", r"k2-horizon", "k2_horizon"),
    ("PLaMo 3", r"plamo-?3", "plamo3"),
    ("Solar Open", r"solar-open", "solar_open"),
    ("Claude", r"claude", "anthropic_xml", False, "anthropic_messages"),
    ("Gemini", r"gemini", AUTO, False, "gemini"),
    ("GPT", r"(^|-)(gpt-?[345]|chatgpt|o[134](-|$))|codex", AUTO, False, "openai_chat"),
    ("Grok", r"(^|-)grok", AUTO, False, "openai_chat"),
    ("Nova", r"(^|-)nova-(micro|lite|pro|premier|2)", AUTO, False, "bedrock_converse"),
)  # fmt: skip

QUIRKS = {
    "nine_character_ids": "Ids of calls are nine letters and digits; others are refused.",
    "indexed_ids": "Ids of calls are functions.NAME:INDEX, and results name them.",
    "one_call_a_message": "Its chat template refuses a message with several calls.",
    "reasoning_goes_back": "Reasoning has to be sent back with the calls that followed it.",
    "signed_reasoning": "Reasoning is signed, and goes back byte for byte with the calls that followed it.",
    "no_system_role": "Its chat template has no system role.",
    "calls_in_reasoning": "It may begin a call before it has closed its reasoning.",
}
"""What a family asks for beyond the usual."""

# what a family's names hold, and the quirks that it has
_QUIRKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"mistral|mixtral|ministral|codestral|pixtral|devstral|magistral", ("nine_character_ids",)),
    (r"kimi-?k2|moonshot", ("indexed_ids", "calls_in_reasoning")),
    (r"llama-?3", ("one_call_a_message",)),
    (r"deepseek-?v?(3-2|4)|deepseek-reasoner|kimi-?k2.*thinking|minimax-?m[23]", ("reasoning_goes_back",)),
    (r"claude|gemini-?3", ("signed_reasoning",)),
    (r"(^|-)gemma-?2", ("no_system_role",)),
    (r"qwen-?3-coder|mimo-?v?2", ("calls_in_reasoning",)),
)

_SEPARATORS = re.compile(r"[-_./: ]+")


def profile(name: str) -> Profile:
    """What is known about a model, by a hub name, an Ollama tag or a provider's model id; "auto" if nothing is."""
    plain = _SEPARATORS.sub("-", name.strip().lower())
    for family in FAMILIES:
        if found := re.search(family.pattern, plain):
            does = f"writes {family.format}" if family.format != AUTO else f"calls by fields of {family.api}"
            reason = f"{found[0]!r} in the name says {family.name}, which {does}."
            return Profile(name, family.name, family.format, family.started, reason, family.api, _quirks(plain))
    return Profile(
        name, "", AUTO, False, f"No known family has a name like {name!r}: the format is found from the text."
    )


def _quirks(plain: str) -> tuple[str, ...]:
    return tuple(quirk for pattern, quirks in _QUIRKS if re.search(pattern, plain) for quirk in quirks)


def detect_from_template(template: str) -> Profile:
    """The format that a chat template writes calls in: the one most of whose written markers stand in its text.

    `reasoning_started` is told by an opener of the format's reasoning at the template's end.
    """
    best: WireFormat | None = None
    score = 0
    for wire in all_formats():
        if wire.blocks and wire.markers:
            required, more = _written(wire)
            if required and all(marker in template for marker in required):
                found = sum(map(len, required)) + sum(len(marker) for marker in more if marker in template)
                if found > score:
                    best, score = wire, found
    if best is None:
        return Profile(
            "", "", AUTO, False, "No format's markers stand in the template: the format is found from the text."
        )
    tail = template[-_END:]
    started = any(span.open in tail and span.close not in tail[tail.rfind(span.open) :] for span in best.spans)
    return Profile("", "", best.name, started, f"The markers of {best.name} stand in the template.")


_END = 200
"""Characters of a template's end in which the generation prompt stands."""


def _written(wire: WireFormat) -> tuple[set[str], set[str]]:
    """The markers that are written for a call: those that have to be there, and others."""
    required: set[str] = set()
    more: set[str] = set()
    for node, always in as_written(wire.blocks[0]):
        match node:
            case Lit(text=text, need=need, written=True):
                (required if need == "required" and always else more).add(text)
            case Tag():
                (required if always else more).add(f"{node.open}{node.name} {node.attribute}=")
            case Value(close=close):
                more.add(close)
            case _:
                pass  # no marker
    return required, more
