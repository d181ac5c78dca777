"""The command `te`: the output of shell commands in an envelope. It imports little, so that it starts fast."""
