"""Signs that a text declines to call a tool, or only explains how a call would look."""

from __future__ import annotations

import re

from toolwire.wire.result_tags import RESULT_END, RESULT_TAG

_REACH = 400
"""Number of characters next to a call that are searched for a sign, before it and behind it."""

_DECLINES = re.compile(
    r"""
    \b(?:
        (?:I|we|you|it)(?:\s(?:could|do|does|am|are|is|will|would|should)(?:\snot|n['’]t)|['’](?:m|re|s)\snot)\b
      | (?:can\s?not|(?:ca|wo)n['’]t|(?:could|should)(?:\snot|n['’]t)\sbe)\b
      | (?:do(?:es)?|is|are)(?:\snot|n['’]t)\s(?:provide|give|have|include|return|match|need|relevant|related|suitable|
          applicable|available|appropriate|designed|enough|possible|directly|able|required|necessary)
      | unable | impossible | unfortunately | sorry | apologi[sze] | (?:I|we)\s(?:refuse|decline)\sto
      | (?:I|we)(?:\s(?:did|have|had)(?:\snot|n['’]t)|['’]ve\snot)\b
      | (?:I|we)(?:\s(?:have|am|are|will|shall)|['’](?:ve|m|re|ll))?
        \s(?:(?:ignor|refus|declin)(?:e|ed|ing)|(?:disregard|reject)(?:ed|ing)?)\b
      | (?:leave|leaving|left)\s(?:it|this|that|them)\salone | prompt\sinjection | injected\sby
      | (?:page|site|file|document|mail|message|attacker)\s(?:(?:has|had|is)\s)?
        (?:ask|tell|told|want|instruct|order)(?:s|ed|ing)?\sme\sto
      | (?:should|shall)\sI\s(?:go\sahead|proceed|do|make|send|execute)
      | (?:do|would)\syou\s(?:want|like)\sme\sto\s(?:go\sahead|proceed|do\s(?:it|this|that))
      | (?:before|until|unless)\syou\s(?:confirm|approve|agree)
      | however,?\s(?:this|the|it|no)
      | (?:no|none\sof\s(?:the|these|those)|(?:is|are)(?:\snot|n['’]t)\s(?:a|any))
        \s(?:(?:given|provided|available|suitable|relevant)\s){0,2}(?:function|tool)
      | not\sclear | unclear | none\sof\sthem | irrelevant | insufficient | unsuitable | inappropriate | placeholder
      | (?:lacks?|lacking|missing)\b
      | (?:please|you\s(?:need|have)\sto|could\syou)\s(?:provide|specify|clarify|tell)
      | (?:need|require)s?\s(?:more|further|additional)\s(?:information|details|context)
      | ich\s(?:kann|werde|darf|möchte|habe)\b[^.!?\n]{0,60}\b(?:nicht|unterlassen|abgelehnt|verweigert|ignoriert)
      | (?:kann|werde|darf|möchte|habe)\sich\b[^.!?\n]{0,60}\bnicht | soll\sich
      | leider | je\sne\s(?:peux|vais|dois|veux) | désolée? | malheureusement | je\srefuse | je\sn['’]ai\spas
      | no\s(?:puedo|podemos|voy\sa|vamos\sa|debo|quiero) | lo\ssiento | lamentablemente | desafortunadamente
      | no\slo\s(?:haré|hice|hago|he) | me\sniego
      | não\s(?:posso|vou|devo|consigo) | desculpe | infelizmente | non\s(?:posso|devo|voglio)
      | mi\sdispiace | purtroppo
      | ik\s(?:kan|zal|mag|wil)\b[^.!?\n]{0,60}\bniet | helaas | nie\s(?:mogę|będę) | niestety | przepraszam
      | не\s(?:могу|можем|буду|будем|стану) | к\sсожалению | извините | отказ(?:ался|алась|ываюсь) | odmawiam
    )
    | (?:不能|不会|不會|无法|無法|没办法|沒辦法|没有|沒有)(?:调|調|使|执|執|提|帮|幫|做|完|查|回|直) | 抱歉
    | 对不起 | 對不起 | 拒绝 | 拒絕 | できません | できない | いたしません | 申し訳 | 実行していません
    | 수\s?없 | 않겠 | 죄송
    """,  # noqa: RUF001
    re.IGNORECASE | re.VERBOSE,
)
_EXPLAINS = re.compile(
    r"""
    \b(?:
        for\s(?:instance|illustration) | e\.g\. | such\sas | would\s(?:look|be|call|use|write|have)
      | (?:could|can|may|might)\s(?:be\s(?:called|used)|call|use) | to\s(?:call|use|invoke)\s(?:it|this|the)
      | (?:syntax|usage|format|signature|documentation|template|example)\b | the\sfunction\s\S+\s(?:takes|requires|is)
      | if\s(?:you|we|it|the) | suppose | assum(?:e|ing) | instead\sof | imagine
      | (?:calls?|looks?|something)\slike | I['’]d\s(?:call|use|write|rather)
      | (?:(?:not|never|\w+n['’]t)(?:\sto)?|(?:should|shall)\sI|(?:want|like)\sme\sto|whether\sto)
        \s(?:call|use|run|invoke)
      | no\sneed | rather\sthan | (?:already|have|has|['’]ve|was|were)\s(?:called|used|run)
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# In a sentence that contains a call, a negation is enough. The English ones above and below need a verb beside them,
# because "no" and "not" are words of too many other sentences.
_NEGATES = re.compile(
    r"""
    \b(?:
        nicht | niemals | nie | kein\w* | pas | jamais | aucune? | nunca | jamás | ningun\w* | ningún | não | nenhum\w*
      | no\s(?:debes?|deb[ae]mos|llam\w+|us\w+|ejecut\w+|invo\w+|es|se) | non(?!-) | mai | nessun\w* | niet | nooit
      | geen | nigdy | inte | aldrig | ikke | aldri | не | нельзя | никогда | нет | değil | asla | không | đừng
      | tidak | jangan
      | لا | لن | لم | ليس | मत
    )\b
    | नहीं | 不(?!同|过|過|错|錯|仅|僅|但|断|斷) | 没有 | 沒有 | 无需 | 無需 | 勿 | ません | ない | 않 | 못 | \b안\s
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ENDS_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？؟।]|(?<![:\n])\n")  # noqa: RUF001
# The code right before or behind a call that is defined, commented out, struck out or shown with its result.
_CODE_BEFORE = re.compile(
    r"""
      \b(?:def|class|func|function|fn|import) \s+ \Z
    | (?:^|\n) [ \t]* (?:\#|//|--) [^\n]* \Z
    | <!-- (?:(?!-->)[\s\S])* \Z | /\* (?:(?!\*/)[\s\S])* \Z
    | ~~ \Z
    | \b(?:not|never|without|avoid|\w+n['’]t) \s (?:\w+\s){0,2} [`(*"']* \Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CODE_BEHIND = re.compile(r"[`)*]*\s*(?:->|=>|→|⇒|==|#\s*=>)|~~")

_IN_RESULT = re.compile(
    rf"(?:{RESULT_TAG}|\[TOOL_RESULTS?\]|^Observation:)(?:(?!{RESULT_END})[\s\S])*\Z", re.IGNORECASE | re.MULTILINE
)


def declines(behind: str) -> bool:
    """Return whether the text behind a call has a sign of a refusal in its first 400 characters."""
    return bool(_DECLINES.search(behind, 0, _REACH))


def refusal_in(text: str) -> str:
    """Return the first sign of a refusal anywhere in a text, or ""."""
    sign = _DECLINES.search(text)
    return sign[0] if sign else ""


def explanation_near(text: str, start: int, end: int) -> str:
    """Return a sign that a text shows the call at this place and does not make it, or "".

    The sign is looked for in the 400 characters before the call and in the 400 behind it.
    """
    # On both sides, since an explanation may follow the example. Not inside the call, whose values are data.
    before = max(0, start - _REACH)
    sign = _EXPLAINS.search(text, before, start) or _EXPLAINS.search(text, end, end + _REACH)
    # A call before the result is the one that the result answers, so only an opening tag before the call counts.
    sign = sign or _IN_RESULT.search(text, before, start)
    sign = sign or _CODE_BEFORE.search(text, before, start) or _CODE_BEHIND.match(text, end)
    return sign[0] if sign else _negation_beside(text, start, end)


def _negation_beside(text: str, start: int, end: int) -> str:
    """Return a negation in the sentence that contains a call, or ""."""
    begin = max(0, start - _REACH)
    for stop in _ENDS_SENTENCE.finditer(text, begin, start):
        begin = stop.end()
    stop_behind = _ENDS_SENTENCE.search(text, end, end + _REACH)
    sign = _NEGATES.search(text, begin, start)
    sign = sign or _NEGATES.search(text, end, stop_behind.start() if stop_behind else end + _REACH)
    return sign[0] if sign else ""
