"""Ask about a picture and a document.

Run it with `OPENAI_API_KEY=... python examples/parts.py chart.png report.pdf`, or with `TOOLWIRE_EXAMPLE_URL` set to
the address of any server that speaks Chat Completions.
"""

import os
import sys

from toolwire import Agent, Client, attach

picture, report = map(attach, sys.argv[1:])
with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    print(Agent(client).ask_sync(["Does the picture agree with the report?", picture, report]))
