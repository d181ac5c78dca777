"""Continue a stored conversation, in this process or in another one.

OPENAI_API_KEY=... python examples/conversations.py
"""

from toolwire.agent import Agent, ConversationStore

store = ConversationStore("sqlite:///chats.sqlite3")
agent = Agent("openai:gpt-5-mini")
agent.ask_sync("I am Ada.", conversation=store.open("ada"))
print(agent.ask_sync("Who am I?", conversation=store.open("ada")))
