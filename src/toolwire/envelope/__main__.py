"""`python -m toolwire.envelope`: the command `te`, wherever it is installed."""

from toolwire.envelope.te.main import main

main()
