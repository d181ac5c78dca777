"""Emit OpenTelemetry spans of a run, its requests and its calls; here they are printed.

    pip install 'toolwire[agent,otel]'
    OPENAI_API_KEY=... python examples/observability.py

With `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment the program needs none of this: spans are sent there.
"""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import set_tracer_provider

from toolwire import Agent

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
set_tracer_provider(provider)
print(Agent("openai:gpt-5-mini").ask_sync("What is the capital of France?"))
