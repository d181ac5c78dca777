"""Limit what a run may use, and read what it has used.

OPENAI_API_KEY=... python examples/budgets.py
"""

from toolwire.agent import Agent, Budget, Prices

budget = Budget(rounds=5, tokens=20_000, seconds=60, money=0.05, prices=Prices(input=0.25, output=2.0))
end = Agent("openai:gpt-5-mini").run_to_end_sync("Write a poem about tea.", budget=budget)
print(end.answer or end.detail)
print(f"{end.reason}: {end.usage.output_tokens} tokens written, {end.money:.4f} dollars")
