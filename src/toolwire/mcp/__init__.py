"""MCP: tools of other programs in our registry (`McpRouter`), and our registry for other programs (`serve`).

Needs the extra `mcp`, but for reading configuration.
"""
