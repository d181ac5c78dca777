"""Extra prompts for models of about a billion parameters."""

SYSTEM = "You answer questions about files that you cannot see. Before you answer, call a tool to look; never guess."
CHAT_SYSTEM = """You help somebody with files, which you see through tools alone. Call a tool when you have to look \
something up, or to do what you are asked to; never guess what a file says. Else answer directly."""
GO_ON = """The question was: {task}
If these results tell the answer, give it now, in plain words. If they do not, make another call; never \
guess."""
GO_ON_BY_CALL = """The question was: {task}
If these results tell the answer, give it now with final_answer, in plain words. If they do not, call another tool; \
never guess."""
TRY_AGAIN = """The question was: {task}
The call failed, so nothing is known yet. Make another call now: the same one if it can work this time, or one that \
finds what this one did not."""
RESULT_CHARACTERS = 4_000
"""Maximum length of a file excerpt for models with a short context, in characters."""
