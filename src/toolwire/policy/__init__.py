"""May this call run? Rules, limits, provenance, tiers, approvals and the state of a session."""
