"""Profiles of model families: the wire format in which a model was trained to write calls, and what it writes.

The table is data, one line per family. A name is a hub name, an Ollama tag or a provider's model id. The first family
whose pattern matches counts, so special families come before general ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from toolwire._surface import check_type
from toolwire.wire.answer_shares import FormShare, form_shares, measured_answers, nearest_format, plain_name
from toolwire.wire.format_registry import AUTO, all_formats, get_format
from toolwire.wire.result_text import PLACE
from toolwire.wire.syntax import Lit, Span, Tag, Value, WireFormat, as_written


@dataclass(frozen=True, slots=True)
class Profile:
    """Facts about a model.

    Attributes:
        name: the name that was looked up.
        family: the family of the model; "" if it is not known, or a template was examined.
        format: the wire format's name; "auto" if the family is not known.
        reasoning_started: the chat template opens the reasoning, at least with thinking switched on.
        reason: the reason for this choice, in a sentence.
        api: the API of the model's maker, where calls are in fields of their own; "" if it depends on the server.
        quirks: special requirements of the API or the chat template, as short names.
        prompt_format: the wire format to ask for in a prompt: `format`, or else the one that measured answers were
            nearest to; "auto" if there are none.
        forms: shares of the formats and dialects in measured answers to a prompt, the most frequent first. If the model
            itself was not measured, the answers are of other models in its family.
        answers: number of these answers; 0 if nothing was measured.
    """

    name: str
    family: str
    format: str
    reasoning_started: bool
    reason: str
    api: str = ""
    quirks: tuple[str, ...] = ()
    prompt_format: str = AUTO
    forms: tuple[FormShare, ...] = ()
    answers: int = 0

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that it fell into in at least one of a hundred measured answers, the most frequent first."""
        return tuple(share.form for share in self.forms if share.dialect and share.share >= _NOTABLE)

    @property
    def known(self) -> bool:
        """True if the format is known."""
        return self.format != AUTO

    @property
    def text_format(self) -> str | None:
        """The format of calls in its text, beside calls in fields; None if it is not known to write any there."""
        return self.format if self.known else None

    @property
    def spans(self) -> tuple[Span, ...]:
        """The markers around its reasoning."""
        return get_format(self.format).spans if self.known else ()

    @property
    def ends_reasoning(self) -> bool:
        """True if a call ends reasoning that was not closed."""
        return self.known and get_format(self.format).ends_reasoning

    @property
    def anywhere(self) -> bool:
        """True if calls may be anywhere in the content, and not only at its start."""
        return not self.known or get_format(self.format).at == "anywhere"


@dataclass(frozen=True, slots=True)
class _Family:
    """Facts about a family, whose `pattern` is searched for in model names.

    In a name every separator becomes a `-`, and both ends get one, so `-muse-` is a whole word. A `#` in a pattern
    ends a version: no digit follows, and no `b`, which would make it a number of billions.
    """

    name: str
    pattern: str
    format: str
    started: bool = False
    api: str = ""
    quirks: tuple[str, ...] = ()

    def found_in(self, plain: str) -> str:
        """Return the part of a name that belongs to this family's names, or ""."""
        match = re.search(self.pattern.replace("#", "(?![0-9b])"), plain)
        return match[0].strip("-") if match else ""


FAMILIES = (
    _Family("DeepSeek R1 distilled into Qwen or Llama", r"deepseek-r1.*(distill|qwen|llama)", "hermes", started=True),
    _Family("Qwen3-Coder", r"qwen-?3-?coder", "qwen3_coder", quirks=("calls_in_reasoning",)),
    _Family("Qwen3.5 and later", r"qwen-?3-[5-9]#", "qwen3_coder", started=True),
    _Family("Qwen3-Next", r"qwen-?3-next.*thinking", "hermes", started=True),
    _Family("Qwen3 Thinking", r"qwen-?3.*thinking", "hermes", started=True),
    _Family("QwQ", r"-qwq", "hermes", started=True),
    _Family("Qwen", r"qwen", "hermes"),
    _Family("Hermes 4", r"hermes-?4#", "hermes"),
    _Family("Hermes", r"hermes", "hermes"),
    _Family("MiMo-VL", r"-mimo-vl", "hermes"),
    _Family("MiMo V2", r"-mimo-?v?2#", "mimo", quirks=("calls_in_reasoning",)),
    _Family("MiMo", r"-mimo-", "mimo"),
    _Family("SmolLM3", r"smollm-?3#", "hermes"),
    _Family("Bielik", r"bielik", "hermes"),
    _Family("Reka", r"-reka", "hermes"),
    _Family("Trinity", r"trinity", "hermes"),
    _Family("Kolibri 1", r"-kolibri-?1#", "hermes"),
    _Family("BerryLM", r"-berrylm", "qwen3_coder"),
    _Family("Granite 4", r"granite-?4#", "hermes"),
    _Family("Granite 20B function calling", r"granite-20b-function", "granite_20b"),
    _Family("Granite 3", r"granite-?3#", "granite"),
    _Family("ToolACE", r"toolace", "pythonic"),
    _Family("Llama 4", r"llama-?4#(?!-?bit)", "pythonic"),
    _Family("Llama Nemotron", r"llama-.*nemotron|nemotron-(ultra|super)", "nemotron"),
    _Family("Nemotron 3", r"nemotron-?3#", "qwen3_coder", started=True),
    _Family("Nemotron Nano", r"nemotron-nano|nemotron-h", "nemotron", started=True),
    _Family("Groq Llama tool use", r"llama-?3.*tool-use", "functionary_v3_1"),
    _Family("FireFunction", r"firefunction", "firefunction"),
    _Family("Functionary v2.5", r"functionary.*v2-5#", "functionary_v2_5"),
    _Family("Functionary v2", r"functionary.*v2#", "functionary_v2"),
    _Family("Functionary v3.0 and v3.2", r"functionary.*v?3-[02]#", "functionary_v3_2"),
    _Family("Functionary v3.1", r"functionary", "functionary_v3_1"),
    _Family("xLAM", r"xlam", "xlam"),
    _Family("DeepSeek Coder", r"deepseek-?coder(?!-?v?2)", AUTO),
    _Family("DeepSeek V4.1", r"deepseek-?v?4-1#", "deepseek_v4_1", started=True, quirks=("reasoning_goes_back",)),
    _Family("DeepSeek V4", r"deepseek-?v?4#", "deepseek_dsml", started=True, quirks=("reasoning_goes_back",)),
    _Family(
        "DeepSeek V3.2",
        r"deepseek-?v?3-2#|deepseek-reasoner",
        "deepseek_dsml", started=True, quirks=("reasoning_goes_back",),
    ),
    _Family("DeepSeek V3.1", r"deepseek-?v?3-1#", "deepseek_v3_1"),
    _Family("DeepSeek R1", r"deepseek-?r1", "deepseek_v3", started=True),
    _Family("DeepSeek V3", r"deepseek-?(v3|chat)", "deepseek_v3"),
    _Family("Cogito", r"-cogito", "deepseek_v3"),
    _Family("Llama 3", r"llama-?3#", "llama3_json", quirks=("one_call_a_message",)),
    _Family(
        "Devstral, Magistral, Ministral 3, Mistral Small 3.1 and later",
        r"devstral|magistral|ministral-?3#|mistral-small-?(3-[1-9]|2503|2506|4)#|mistral-medium|mistral-large-?(3#|25)",
        "mistral_args", quirks=("nine_character_ids",),
    ),
    _Family("Mistral", r"mistral|mixtral|ministral|codestral|pixtral", "mistral_json", quirks=("nine_character_ids",)),
    _Family("Kimi K3", r"-kimi-?k3", "kimi_k3", started=True),
    _Family(
        "Kimi K2 Thinking",
        r"-kimi-?k2.*thinking",
        "kimi_k2", quirks=("indexed_ids", "calls_in_reasoning", "reasoning_goes_back"),
    ),
    _Family("Kimi K2", r"-kimi|moonshot", "kimi_k2", quirks=("indexed_ids", "calls_in_reasoning")),
    _Family("GLM-4.5 and later", r"-glm-?(4-?[5-9]|5)#", "glm4", started=True),
    _Family("Ling 3", r"-[lr]ing-?3#", "glm4"),
    _Family("Spark 2.5, Spark 3", r"-spark-?x?-?(2-5|3)#", "glm4"),
    _Family("IQuest Q1", r"iquest-?q1", "glm4"),
    _Family("IQuest Coder V2", r"iquest-?coder-?v2", "iquest_coder_v2"),
    _Family("TeleChat4, Xing 4.0", r"telechat-?(4#|3.*coder)|-xing-?4#", "telechat4"),
    _Family("Laguna", r"laguna", "laguna"),
    _Family("InternLM", r"internlm|intern-s1", "internlm"),
    _Family("Jamba", r"jamba", "jamba"),
    _Family("Apriel", r"apriel", "apriel", started=True),
    _Family("Hunyuan Hy3", r"-hy-?[34]#|hunyuan-?(hy-?)?[34]#", "hunyuan_v3", started=True),
    _Family("Hunyuan", r"hunyuan", "hunyuan"),
    _Family("Phi-4-mini", r"-phi-?4-mini", "phi4"),
    _Family("MiniMax M3", r"minimax-?m3", "minimax_m3", started=True, quirks=("reasoning_goes_back",)),
    _Family("MiniMax M2", r"minimax-?m2", "minimax_m2", started=True, quirks=("reasoning_goes_back",)),
    _Family("MiniMax M1", r"minimax-?m1|minimax-?text", "minimax_json"),
    _Family("Step-3.5", r"-step-?3-?5#", "qwen3_coder", started=True),
    _Family("Step-3", r"-step-?3#", "step3", started=True),
    _Family("ERNIE 4.5", r"-ernie", "ernie45", started=True),
    _Family("OLMo 3", r"olmo-?3#", "olmo3"),
    _Family("LongCat", r"longcat", "longcat"),
    _Family("Seed-OSS", r"seed-?oss", "seed_oss"),
    _Family("Command R7B and Command A", r"command-(r7b|a)-|cohere2moe", "cohere_action"),
    _Family("Command R", r"command-r-", "cohere_json"),
    _Family("GigaChat 3.5 Reasoning", r"gigachat-?3-5#.*reasoning", "gigachat35", started=True),
    _Family("GigaChat 3.5", r"gigachat-?3-5#", "gigachat35"),
    _Family("GigaChat", r"gigachat", "gigachat"),
    _Family("FunctionGemma", r"functiongemma", "functiongemma"),
    _Family("Gemma 4", r"gemma-?4#", "gemma4"),
    _Family("Gemma 2", r"gemma-?2#", "gemma_tool_code", quirks=("no_system_role",)),
    _Family("Gemma 3", r"gemma-?3#", "gemma_tool_code"),
    _Family("LFM2", r"-lfm-?2#", "lfm2"),
    _Family("Apertus", r"apertus", "apertus"),
    _Family("gpt-oss", r"-gpt-?oss", "harmony"),
    _Family("MiniCPM", r"minicpm-?[45]#", "minicpm5"),
    _Family("Muse Glimmer", r"-(muse|glimmer)-", "glimmer"),
    _Family("Gorilla OpenFunctions", r"gorilla-openfunctions", AUTO),
    _Family("Snowflake Arctic", r"snowflake-arctic(?!-embed)", AUTO),
    _Family("Inkling", r"-inkling", "inkling"),
    _Family("dots", r"-dots-", "dots"),
    _Family("K2 Horizon", r"k2-horizon", "k2_horizon"),
    _Family("PLaMo 3", r"plamo-?3#", "plamo3"),
    _Family("Solar Open 2", r"solar-open-?2#", "solar_open2", started=True),
    _Family("Solar Open", r"solar-open", "solar_open"),
    _Family("Sarashina", r"sarashina", "sarashina"),
    _Family("RWKV-7", r"-rwkv-?7#", "rwkv"),
    _Family("Code World Model", r"-cwm-", "cwm"),
    _Family("Beam 1", r"-beam-?1#", "beam"),
    _Family("Claude", r"-claude", "anthropic_xml", api="anthropic_messages", quirks=("signed_reasoning",)),
    _Family("Gemini 3", r"-gemini-?3#", AUTO, api="gemini", quirks=("signed_reasoning",)),
    _Family("Gemini", r"-gemini", AUTO, api="gemini"),
    _Family("GPT", r"-(gpt-?[345]|chatgpt|o[134]-)|-codex", AUTO, api="openai_chat"),
    _Family("Grok", r"-grok", AUTO, api="openai_chat"),
    _Family("Nova", r"-nova-(micro|lite|pro|premier|2)", AUTO, api="bedrock_converse"),
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
"""Special requirements of a family, by key."""

_NOTABLE = 0.01
"""Smallest share of a dialect that is worth a mention."""


def profile(name: str) -> Profile:
    """Return the profile for a hub name, an Ollama tag or a provider's model id; "auto" if the family is not known."""
    check_type("name", name, str, "text")
    family, words = _family_of(name)
    if family is None:
        reason = f"No known family has a name like {name!r}: the format is detected from the text."
        return Profile(name, "", AUTO, False, reason)
    if family.format != AUTO:
        does = f"writes {family.format}"
    elif family.api:
        does = f"calls by fields of {family.api}"
    else:
        does = "has no format of its own"
    measured = measured_answers(name, lambda other: _family_of(other)[0] is family)
    shares = form_shares(measured)
    return Profile(
        name,
        family.name,
        family.format,
        family.started,
        f"{words!r} in the name says {family.name}, which {does}.",
        family.api,
        family.quirks,
        prompt_format=family.format if family.format != AUTO else nearest_format(shares) or AUTO,
        forms=shares,
        answers=sum(model.answers for model in measured),
    )


@lru_cache(maxsize=256)
def _family_of(name: str) -> tuple[_Family | None, str]:
    """Return the family of a model and the part of the name that says so, or None and ""."""
    plain = plain_name(name)
    for family in FAMILIES:
        if words := family.found_in(plain):
            return family, words
    return None, ""


def detect_from_template(template: str) -> Profile:
    """Return the profile for a chat template, whose format is the one with the most markers in its text.

    All markers that a call needs must be there. Markers around reasoning, content, definitions and results count too.
    Of several formats with the same markers, the one wins whose white space is there too, and then the one that the
    others vary. `reasoning_started` is set if one branch of the template ends with an opener of reasoning that is not
    closed.
    """
    check_type("template", template, str, "text")
    best: WireFormat | None = None
    most = (0, 0, False)
    for wire in all_formats():
        if wire.blocks and wire.markers:
            required, more = _written(wire)
            # All of them, because single markers such as `<tool_call>` belong to several formats.
            if required and all(marker in template for marker in required):
                markers = required | {marker for marker in more | _around(wire) if marker in template}
                spaced = sum(marker in template for marker in _spaced(wire))
                # By length and not by number: a long marker is unlikely to be in a template by chance.
                if (score := (sum(map(len, markers)), spaced, wire.detected)) > most:
                    best, most = wire, score
    spans = (best or get_format("plain")).spans
    # Only at the end: templates also mention reasoning where they remove it from earlier turns.
    started = any(span.close not in rest for span in spans for rest in template[-_END:].split(span.open)[1:])
    if best is None:
        reason = "The template has no format's markers: the format is detected from the text."
        return Profile("", "", AUTO, started, reason)
    reason = f"The template has the markers of {best.name}."
    return Profile("", "", best.name, started, reason, prompt_format=best.name)


_END = 200
"""Length of a template's end that contains the generation prompt, in characters."""


def _around(wire: WireFormat) -> set[str]:
    """Return the markers around reasoning, content, definitions and results."""
    listing = wire.definitions
    edges = (listing.open, listing.close, *listing.each, *wire.result, *wire.drop)
    parts = (part.strip() for edge in edges for part in PLACE.split(edge))
    return {part for part in parts if len(part) > 1} | {marker for s in wire.spans for marker in (s.open, s.close)}


def _spaced(wire: WireFormat) -> set[str]:
    """Return the markers of a call that are written with white space around them, including it."""
    literals = (node for node, _ in as_written(wire.blocks[0]) if isinstance(node, Lit))
    return {node.before + node.text + node.after for node in literals if node.before or node.after}


def _written(wire: WireFormat) -> tuple[set[str], set[str]]:
    """Return the markers that are written for a call: the required ones, and others."""
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
