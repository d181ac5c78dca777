# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.client.client import Client as Client
from toolwire.client.exchange import HttpAnswer as HttpAnswer
from toolwire.client.exchange import HttpRequest as HttpRequest
from toolwire.client.exchange import Transport as Transport
from toolwire.client.extraction import ExtractOptions as ExtractOptions
from toolwire.client.transport import HttpTransport as HttpTransport
from toolwire.client.transport import Retry as Retry
from toolwire.models.backends import ApiBackend as ApiBackend
from toolwire.models.backends import Attempt as Attempt
from toolwire.models.backends import Backend as Backend
from toolwire.models.backends import Source as Source
from toolwire.models.backends import StreamOptions as StreamOptions
from toolwire.models.backends import TextBackend as TextBackend
from toolwire.models.backends import client_source as client_source
from toolwire.models.backends import text_messages as text_messages
from toolwire.models.constraints import Constraint as Constraint
from toolwire.models.constraints import GrammarServer as GrammarServer
from toolwire.models.local.model_files import locate as locate
from toolwire.models.local.model_files import open_model as open_model
from toolwire.models.local.runtime import LocalModel as LocalModel
from toolwire.models.local.weights import WEIGHTS as WEIGHTS
from toolwire.models.local.weights import fetch as fetch
from toolwire.models.model_group import CircuitBreaker as CircuitBreaker
from toolwire.models.model_group import Failure as Failure
from toolwire.models.model_group import Fallback as Fallback
from toolwire.models.model_group import Route as Route
from toolwire.models.process_sources import TextFunction as TextFunction
from toolwire.models.process_sources import Writer as Writer
from toolwire.models.process_sources import function_source as function_source
from toolwire.models.process_sources import local_source as local_source
from toolwire.providers.model_settings import Effort as Effort
from toolwire.providers.model_settings import ModelOptions as ModelOptions
from toolwire.providers.model_settings import ModelSettings as ModelSettings
from toolwire.providers.request import AskOptions as AskOptions
from toolwire.providers.request import RequestOptions as RequestOptions

__all__ = [
    "WEIGHTS",
    "ApiBackend",
    "AskOptions",
    "Attempt",
    "Backend",
    "CircuitBreaker",
    "Client",
    "Constraint",
    "Effort",
    "ExtractOptions",
    "Failure",
    "Fallback",
    "GrammarServer",
    "HttpAnswer",
    "HttpRequest",
    "HttpTransport",
    "LocalModel",
    "ModelOptions",
    "ModelSettings",
    "RequestOptions",
    "Retry",
    "Route",
    "Source",
    "StreamOptions",
    "TextBackend",
    "TextFunction",
    "Transport",
    "Writer",
    "client_source",
    "fetch",
    "function_source",
    "local_source",
    "locate",
    "open_model",
    "text_messages",
]
