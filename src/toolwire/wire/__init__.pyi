# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.messages import MESSAGE_LIMIT as MESSAGE_LIMIT
from toolwire.text.limits import MAX_DEPTH as MAX_DEPTH
from toolwire.text.limits import MAX_DIGITS as MAX_DIGITS
from toolwire.wire.answer_shares import FormShare as FormShare
from toolwire.wire.format_export import EXPORT_VERSION as EXPORT_VERSION
from toolwire.wire.format_export import export_formats as export_formats
from toolwire.wire.format_export import export_schema as export_schema
from toolwire.wire.format_import import import_formats as import_formats
from toolwire.wire.format_registry import get_format as get_format
from toolwire.wire.format_registry import register_formats as register_formats
from toolwire.wire.formats import FORMATS as FORMATS
from toolwire.wire.leaf_scanners import NAME_LIMIT as NAME_LIMIT
from toolwire.wire.leaf_scanners import SPACE_LIMIT as SPACE_LIMIT
from toolwire.wire.prompt_styles import PROMPT_STYLES as PROMPT_STYLES
from toolwire.wire.prompt_styles import PromptStyle as PromptStyle
from toolwire.wire.response_template_reader import format_of_response_template as format_of_response_template
from toolwire.wire.response_templates import response_template as response_template
from toolwire.wire.syntax import THINK as THINK
from toolwire.wire.syntax import THINKING as THINKING
from toolwire.wire.syntax import AnyOrder as AnyOrder
from toolwire.wire.syntax import Args as Args
from toolwire.wire.syntax import Call as Call
from toolwire.wire.syntax import Elements as Elements
from toolwire.wire.syntax import Header as Header
from toolwire.wire.syntax import Ident as Ident
from toolwire.wire.syntax import JsonCall as JsonCall
from toolwire.wire.syntax import Key as Key
from toolwire.wire.syntax import KeywordArgs as KeywordArgs
from toolwire.wire.syntax import Listing as Listing
from toolwire.wire.syntax import Lit as Lit
from toolwire.wire.syntax import Many as Many
from toolwire.wire.syntax import Mark as Mark
from toolwire.wire.syntax import Name as Name
from toolwire.wire.syntax import Node as Node
from toolwire.wire.syntax import OneOf as OneOf
from toolwire.wire.syntax import Params as Params
from toolwire.wire.syntax import PyCalls as PyCalls
from toolwire.wire.syntax import Server as Server
from toolwire.wire.syntax import Span as Span
from toolwire.wire.syntax import Tag as Tag
from toolwire.wire.syntax import TokenArgs as TokenArgs
from toolwire.wire.syntax import ToolBody as ToolBody
from toolwire.wire.syntax import ToolTag as ToolTag
from toolwire.wire.syntax import Value as Value
from toolwire.wire.syntax import WireFormat as WireFormat
from toolwire.wire.xml_scanners import HEADER_LIMIT as HEADER_LIMIT

__all__ = [
    "EXPORT_VERSION",
    "FORMATS",
    "HEADER_LIMIT",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MESSAGE_LIMIT",
    "NAME_LIMIT",
    "PROMPT_STYLES",
    "SPACE_LIMIT",
    "THINK",
    "THINKING",
    "AnyOrder",
    "Args",
    "Call",
    "Elements",
    "FormShare",
    "Header",
    "Ident",
    "JsonCall",
    "Key",
    "KeywordArgs",
    "Listing",
    "Lit",
    "Many",
    "Mark",
    "Name",
    "Node",
    "OneOf",
    "Params",
    "PromptStyle",
    "PyCalls",
    "Server",
    "Span",
    "Tag",
    "TokenArgs",
    "ToolBody",
    "ToolTag",
    "Value",
    "WireFormat",
    "export_formats",
    "export_schema",
    "format_of_response_template",
    "get_format",
    "import_formats",
    "register_formats",
    "response_template",
]
