"""Text formats of tool calls: one description each, read by a parser and a renderer.

A plug-in describes its format with these nodes and registers the `WireFormat` under the entry point group
`toolwire.formats`. A program registers its own with `register_formats`.
"""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "messages": "MESSAGE_LIMIT",
        "text.limits": "MAX_DEPTH MAX_DIGITS",
        "wire.answer_shares": "FormShare",
        "wire.format_export": "EXPORT_VERSION export_formats export_schema",
        "wire.format_import": "import_formats",
        "wire.format_registry": "get_format register_formats",
        "wire.formats": "FORMATS",
        "wire.leaf_scanners": "NAME_LIMIT SPACE_LIMIT",
        "wire.prompt_styles": "PROMPT_STYLES PromptStyle",
        "wire.response_template_reader": "format_of_response_template",
        "wire.response_templates": "response_template",
        "wire.syntax": (
            "THINK THINKING AnyOrder Args Call Elements Header Ident JsonCall Key KeywordArgs Listing Lit Many Mark "
            "Name Node OneOf Params PyCalls Server Span Tag TokenArgs ToolBody ToolTag Value WireFormat"
        ),
        "wire.xml_scanners": "HEADER_LIMIT",
    },
)
