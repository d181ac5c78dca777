# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.policy.approval import Approval as Approval
from toolwire.policy.approval import ApprovalAnswer as ApprovalAnswer
from toolwire.policy.approval import left_out as left_out
from toolwire.policy.approval import present as present
from toolwire.policy.commands import Command as Command
from toolwire.policy.fingerprint import approval_key as approval_key
from toolwire.policy.fingerprint import definition_hash as definition_hash
from toolwire.policy.hosts import Host as Host
from toolwire.policy.intent import Detector as Detector
from toolwire.policy.intent import Intent as Intent
from toolwire.policy.intent import IntentDetector as IntentDetector
from toolwire.policy.intent import TierGate as TierGate
from toolwire.policy.lint import Misnomer as Misnomer
from toolwire.policy.lint import checked as checked
from toolwire.policy.lint import misnomers as misnomers
from toolwire.policy.matchers import AnyOf as AnyOf
from toolwire.policy.matchers import Matcher as Matcher
from toolwire.policy.matchers import Number as Number
from toolwire.policy.matchers import PathGlob as PathGlob
from toolwire.policy.matchers import Text as Text
from toolwire.policy.policy import Allow as Allow
from toolwire.policy.policy import Ask as Ask
from toolwire.policy.policy import Context as Context
from toolwire.policy.policy import Decision as Decision
from toolwire.policy.policy import Deny as Deny
from toolwire.policy.policy import Effect as Effect
from toolwire.policy.policy import Limit as Limit
from toolwire.policy.policy import Policy as Policy
from toolwire.policy.policy import Rule as Rule
from toolwire.policy.policy import full_name as full_name
from toolwire.policy.rule_tables import PolicyTable as PolicyTable
from toolwire.policy.rule_tables import as_table as as_table
from toolwire.policy.session import Session as Session
from toolwire.tools import Tier as Tier

__all__ = [
    "Allow",
    "AnyOf",
    "Approval",
    "ApprovalAnswer",
    "Ask",
    "Command",
    "Context",
    "Decision",
    "Deny",
    "Detector",
    "Effect",
    "Host",
    "Intent",
    "IntentDetector",
    "Limit",
    "Matcher",
    "Misnomer",
    "Number",
    "PathGlob",
    "Policy",
    "PolicyTable",
    "Rule",
    "Session",
    "Text",
    "Tier",
    "TierGate",
    "approval_key",
    "as_table",
    "checked",
    "definition_hash",
    "full_name",
    "left_out",
    "misnomers",
    "present",
]
