"""The Tool Envelope: what a tool gave back, with a header that says how much it is, cut to what its reader can hold.

It concerns results alone: how calls are written, and what may run, is decided elsewhere. `shaping.Envelope` shapes the
result of any tool, the command `te` those of the shell; both write what `grammar` describes.
"""
