"""Ask an agent for a value of one of several types.

OPENAI_API_KEY=... python examples/union_output.py
"""

from pydantic import BaseModel

from toolwire import Agent


class Refund(BaseModel):
    """The customer wants money back."""

    order: int
    amount: float


class Question(BaseModel):
    """The customer wants to know something."""

    text: str


request = Agent("openai:gpt-5-mini", output_type=[Refund, Question]).ask_sync("Order 7 came broken. I paid 12.50.")
match request:
    case Refund(order=order, amount=amount):
        print(f"refund {amount} for order {order}")
    case Question(text=text):
        print(f"answer: {text}")
