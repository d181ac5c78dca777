"""Let a model call an HTTP API that an OpenAPI document describes.

    pip install 'toolwire[openapi]'
    OPENAI_API_KEY=... SHOP_TOKEN=... python examples/openapi_tools.py shop.yaml https://shop.example.com/v1

With `TOOLWIRE_EXAMPLE_URL`, any server that speaks Chat Completions answers in place of OpenAI.
"""

import os
import sys

from toolwire import Agent, Client
from toolwire.openapi import OpenApi

token = os.environ.get("SHOP_TOKEN", "")
shop = OpenApi(sys.argv[1], base_url=sys.argv[2], headers={"Authorization": f"Bearer {token}"})
with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    print(Agent(client, shop.tools).ask_sync("How much tea is left?"))
