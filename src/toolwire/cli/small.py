"""What models with a billion parameters have to be told, beyond the task."""

SYSTEM = "You answer questions about files that you cannot see. Before you answer, call a tool to look; never guess."
GO_ON = """The question was: {task}
If these results tell the answer, give it now, in plain words. If they do not, or if a call failed, make another call; \
never guess."""
RESULT_CHARACTERS = 4_000
"""Characters of a file that models with little memory are told at a time."""
