# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.gateway.access import Access as Access
from toolwire.gateway.app import Gateway as Gateway
from toolwire.gateway.model_table import ModelTable as ModelTable
from toolwire.gateway.model_table import ServedModel as ServedModel
from toolwire.gateway.questions import Upstream as Upstream
from toolwire.gateway.serving import ServerOptions as ServerOptions
from toolwire.gateway.serving import serve as serve
from toolwire.gateway.upstreams import ApiUpstream as ApiUpstream
from toolwire.gateway.upstreams import TextUpstream as TextUpstream
from toolwire.inspector.inspector import InspectorOptions as InspectorOptions

__all__ = [
    "Access",
    "ApiUpstream",
    "Gateway",
    "InspectorOptions",
    "ModelTable",
    "ServedModel",
    "ServerOptions",
    "TextUpstream",
    "Upstream",
    "serve",
]
