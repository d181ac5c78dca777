"""The inspector: what happened to each request of the gateway, kept within bounds, and a page that shows it."""
