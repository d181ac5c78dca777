"""Granite 20B: a marker before each call, which is one JSON object, without a closing marker.

    <function_call> {"name": "get_weather", "arguments": {"city": "Paris"}}

Source: https://huggingface.co/ibm-granite/granite-20b-functioncalling (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="granite_20b",
    title='<function_call> {"name":..,"arguments":{..}}',
    aliases=("granite-20b-fc",),
    models="granite-20b-functioncalling",
    source="https://huggingface.co/ibm-granite/granite-20b-functioncalling",
    blocks=((Lit("<function_call>", after=" "), JsonCall()),),
)
