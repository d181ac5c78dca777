"""Which way definitions, calls and results take."""

from pathlib import Path

import pytest

import toolwire
from toolwire import ConfigurationError, FormatNegotiator, ToolCall, ToolDefinition, ToolResult, ToolsConfig
from toolwire.config.tables import load_configuration

TOOL = ToolDefinition("f", "Does it.", {"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.mark.mission("D3", "D17", "D18", "F13", "F21", "F23", "F44")
@pytest.mark.parametrize(
    ("provider", "model", "definitions", "calls"),
    [
        ("ollama", "qwen3:8b", "ollama", "hermes"),
        ("", "Qwen/Qwen3-8B", "hermes", "hermes"),
        ("openai", "gpt-5", "openai_chat", "auto"),
        ("", "gpt-5", "openai_chat", "auto"),
        ("anthropic", "claude-sonnet-4-20250514", "anthropic_messages", "anthropic_xml"),
        ("groq", "llama-3.3-70b-versatile", "groq", "llama3_json"),
        ("", "nobody-knows", "auto", "auto"),
        ("gemini", "nobody-knows", "gemini", "auto"),
    ],
)
def test_profile_of_the_model_decides(provider: str, model: str, definitions: str, calls: str) -> None:
    negotiator = FormatNegotiator()
    plan = negotiator.negotiate(provider, model)
    assert (plan.definitions, plan.calls, plan.results) == (definitions, calls, definitions)
    assert plan.reason
    assert negotiator.detect_format(provider, model) == definitions
    assert negotiator.negotiate(provider, model) is plan


def test_model_without_a_format_is_asked_for_the_one_nearest_to_its_answers() -> None:
    plan = FormatNegotiator().negotiate("", "deepseek-ai/deepseek-coder-6.7b-instruct")
    assert (plan.definitions, plan.calls, plan.results) == ("pythonic", "auto", "pythonic")
    assert "has no format of its own" in plan.reason


@pytest.mark.mission("F21", "F24")
def test_configuration_takes_precedence() -> None:
    config = ToolsConfig(definition_format="anthropic", call_parser="qwen_xml", result_format="openai")
    plan = FormatNegotiator(config).negotiate("ollama", "qwen3:8b")
    assert (plan.definitions, plan.calls, plan.results) == ("anthropic_xml", "utp_xml", "openai_chat")
    for wrong in (ToolsConfig(definition_format="opnai"), ToolsConfig(call_parser="x"), ToolsConfig(result_format="")):
        with pytest.raises(ConfigurationError, match="unknown wire format"):
            FormatNegotiator(wrong)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        *(("qwen", "utp_xml"), ("Qwen_XML", "utp_xml"), ("anthropic", "anthropic_xml"), ("openai", "openai_chat")),
        *(("auto", "auto"), ("HERMES", "hermes"), ("qwen25", "hermes"), ("groq", "groq")),
    ],
)
def test_a_configuration_names_formats_and_apis(name: str, format: str) -> None:
    plan = FormatNegotiator(ToolsConfig(call_parser=name, result_format=name)).negotiate("ollama", "qwen3:8b")
    assert (plan.definitions, plan.calls, plan.results) == ("ollama", format, format)


def test_an_unknown_name_is_refused_with_those_that_a_configuration_knows() -> None:
    with pytest.raises(ConfigurationError, match="may also name: auto, qwen, qwen_xml, anthropic, openai, "):
        FormatNegotiator(ToolsConfig(call_parser="x"))


@pytest.mark.parametrize("name", ["config", "team"])
def test_only_settings_of_tools_are_settings(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a ToolsConfig or None, not 'hermes'"):
        FormatNegotiator(**{name: "hermes"})  # type: ignore[arg-type]


@pytest.mark.parametrize(("format", "calls"), [("glm4", "glm4"), ("openai_chat", "hermes"), ("auto", "auto")])
def test_calls_are_read_in_the_format_in_which_text_asks_for_them(format: str, calls: str) -> None:
    plan = FormatNegotiator(ToolsConfig(definition_format=format)).negotiate("ollama", "qwen3:8b")
    assert (plan.definitions, plan.calls, plan.results, plan.reason) == (format, calls, format, "It was configured.")


@pytest.mark.mission("D5", "D57", "D61")
def test_team_setting_for_xml_takes_precedence() -> None:
    xml, extra = ToolsConfig(use_xml_tool_format=True), ToolsConfig(use_xml_tool_format=False)
    assert FormatNegotiator(xml).detect_format("openai", "gpt-5") == "autobyteus_xml"
    assert FormatNegotiator(extra, team=xml).detect_format("openai", "gpt-5") == "autobyteus_xml"
    assert FormatNegotiator(xml, team=extra).detect_format("openai", "gpt-5") == "openai_chat"
    assert FormatNegotiator(xml, team=ToolsConfig()).detect_format("openai", "gpt-5") == "autobyteus_xml"


@pytest.mark.mission("D4", "F5", "F6", "F22")
def test_definition_adapter_renders_fields_or_text() -> None:
    negotiator = FormatNegotiator()
    native = negotiator.get_definition_adapter("anthropic_messages")
    assert native.render([TOOL])[0]["name"] == "f"
    assert native.format_system_prompt("be brief", [TOOL]) == "be brief"
    text = negotiator.get_definition_adapter("hermes")
    assert '"name": "f"' in text.render([TOOL])
    assert text.format_system_prompt("be brief", [TOOL]).startswith("be brief\n\nYou can call these tools")
    assert negotiator.get_definition_adapter("hermes") is text
    assert negotiator.get_definition_adapter("auto").format == "hermes"
    assert negotiator.get_definition_adapter("bedrock_converse").render([TOOL])["tools"]


@pytest.mark.mission("F7", "F8", "F22", "F25")
def test_call_parser_reads_fields_and_text() -> None:
    negotiator = FormatNegotiator()
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    response = toolwire.get_api("openai_chat").encode_response(toolwire.ParsedResponse(text))
    for format in ("openai_chat", "hermes", "auto"):
        parser = negotiator.get_call_parser(format)
        assert [call.arguments for call in parser.parse(response).tool_calls] == [{"a": 1}]
        assert [call.arguments for call in parser.parse(text).tool_calls] == [{"a": 1}]
        parsed = toolwire.collect(parser.stream(toolwire.replay(toolwire.ParsedResponse(text))))
        assert len(parsed.tool_calls) == 1
        assert toolwire.collect([*parser.text_parser().feed(text)]).tool_calls
    assert negotiator.get_call_parser("openai_chat").decoder().finish()
    with pytest.raises(toolwire.DefinitionError, match="hermes is a text format"):
        negotiator.get_call_parser("hermes").decoder()


@pytest.mark.mission("F22")
def test_result_adapter_renders_messages_or_text() -> None:
    negotiator = FormatNegotiator()
    result = ToolResult("c1", "f", "rain")
    assert negotiator.get_result_adapter("openai_chat").render([result]) == [
        {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    ]
    assert negotiator.get_result_adapter("hermes").render([result]) == "<tool_response>\nrain\n</tool_response>"
    assert ToolCall("f").format == ""


CONFIG = """
[profiles.coder]
provider = "ollama"
model = "qwen3-coder:30b"
url = "http://localhost:11434"

[profiles.coder.tools]
definition_format = "openai"
call_parser = "auto"
"""


@pytest.mark.mission("F24")
def test_configuration_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(CONFIG)
    profile = load_configuration(path).profiles["coder"]
    assert (profile.provider, profile.tools.definition_format, profile.tools.result_format) == (
        "ollama",
        "openai",
        None,
    )
    assert profile.negotiator().detect_format(profile.provider, profile.model) == "openai_chat"


@pytest.mark.mission("F24")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CONFIG.replace('"auto"', '"atuo"'),
            r"models.toml:9: profiles.coder.tools.call_parser: unknown wire format 'atuo'",
        ),
        (CONFIG.replace("call_parser", "parser"), r"models.toml:9: profiles.coder.tools.parser: there is no such key"),
        (CONFIG.replace('"qwen3-coder:30b"', "5"), r"models.toml:4: profiles.coder.model: .*it is 5"),
        ("[profiles]\ncoder = 5\n", r"models.toml:2: profiles.coder: .*it is 5"),
        ("a = \n", r"models.toml: .*line 1"),
        ('[profiles.x]\ntools.call_parser = "y"\n', r"models.toml:2: profiles.x.tools.call_parser"),
    ],
)
def test_error_in_a_configuration_file_names_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(path)


def test_missing_configuration_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_configuration(tmp_path / "none.toml")
