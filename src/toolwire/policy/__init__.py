"""May this call run? Rules, limits, provenance, tiers, approvals and the state of a session."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "policy.approval": "ApprovalAnswer Approval left_out present",
        "policy.commands": "Command",
        "policy.fingerprint": "approval_key definition_hash",
        "policy.hosts": "Host",
        "policy.intent": "Detector Intent IntentDetector TierGate",
        "policy.lint": "Misnomer checked misnomers",
        "policy.matchers": "AnyOf Matcher Number PathGlob Text",
        "policy.policy": "Allow Ask Context Decision Deny Effect Limit Policy Rule full_name",
        "policy.rule_tables": "PolicyTable as_table",
        "policy.session": "Session",
        "tools": "Tier",
    },
)
