"""The command `te`: what tools of the shell give, in an envelope. It loads little, so that it costs little."""
