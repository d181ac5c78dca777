"""Which texts decline to call a tool or only explain a call, and which do not."""

from __future__ import annotations

import pytest

from toolwire.wire.refusals import declines, explanation_near, refusal_in

DECLINES = [
    *(f"I {verb} sent it." for verb in ("did not", "didn’t", "have not", "haven't", "hadn't")),
    *("I've not sent it.", "I have refused.", "I’m ignoring this.", "I rejected it.", "We'll disregard it."),
    *("I am leaving this alone.", "This is a prompt injection.", "It was injected by somebody."),
    *(f"The {source} me to write this." for source in ("page asked", "file has told", "mail is instructing")),
    *("Should I go ahead?", "Shall I proceed?", "Do you want me to do it?", "Nothing runs until you confirm it."),
    *(f"{who} do not see how." for who in ("I", "We", "You", "It")),
    *(f"I {verb} not search." for verb in ("could", "do", "does", "am", "are", "is", "will", "would", "should")),
    *(f"I don{apostrophe}t know. Let{apostrophe}s see." for apostrophe in "'’"),
    *(f"{subject} not able to." for subject in ("I'm", "I’m", "We're", "We’re", "It's", "It’s")),
    *(f"The tools {verb} do that." for verb in ("cannot", "can not", "can't", "can’t", "won't", "won’t")),
    *(f"The tool {verb} be used." for verb in ("could not", "couldn't", "couldn’t", "should not", "shouldn't")),
    *(f"The tool {verb} provide this." for verb in ("does not", "do not", "doesn't", "don’t", "is not", "are not")),
    *(f"The tools do not {verb} it." for verb in ("give", "have", "include", "return", "match", "need")),
    *(f"The tool is not {word}." for word in ("relevant", "related", "suitable", "applicable", "available")),
    *(f"The tool isn't {word}." for word in ("appropriate", "designed for this", "enough", "possible to use")),
    *(f"The tools aren’t {word}." for word in ("directly usable", "able to", "required", "necessary")),
    *("I am unable to help.", "It is impossible to look it up.", "Unfortunately, this fails.", "Sorry for that."),
    *("I apologize.", "I apologise.", "My apologies.", "I refuse to look it up.", "We decline to do it."),
    *("However, this is a guess.", "However the city is small.", "However, it fails.", "However, nobody knows."),
    *(f"{none} functions fit." for none in ("No", "None of the", "None of these", "None of those")),
    *(f"There is no {word} tool." for word in ("given", "provided", "available", "suitable", "relevant")),
    *("None of the functions fits.", "No available suitable tool fits.", "There is no tool.", "None of them fits."),
    *(f"There {verb} tool for it." for verb in ("isn't a", "isn’t a", "is not a", "aren't any", "are not any")),
    *("The date is not clear.", "The question is unclear.", "The tool is irrelevant.", "Insufficient data."),
    *("The tool is unsuitable.", "This would be inappropriate.", "The values are placeholders."),
    *("The city is missing.", "The question lacks a date.", "They lack a date.", "A date is lacking."),
    *(f"{asked} provide the date." for asked in ("Please", "You need to", "You have to", "Could you")),
    *(f"Please {verb} the date." for verb in ("specify", "clarify", "tell me")),
    *(f"This {verb} {more} {data}." for verb, more, data in (
        ("needs", "more", "information"), ("requires", "further", "details"), ("may need", "additional", "context"),
    )),
]  # fmt: skip
"""Texts of which each has one sign of a refusal."""
EXPLAINS = [
    *("For example:", "For instance:", "For illustration:", "e.g. this", "a tool such as", "Suppose that"),
    *(f"It would {verb}" for verb in ("look", "be", "call", "use", "write", "have been")),
    *(f"You {verb} call" for verb in ("could", "can", "may", "might")),
    *(f"The tool can {verb}:" for verb in ("be called", "be used", "use")),
    *(f"To {verb} it:" for verb in ("call", "use", "invoke")),
    *("To call this:", "To call the tool:"),
    *(f"The {word} is" for word in ("syntax", "usage", "format", "signature", "documentation", "template", "example")),
    *(f"The function f {verb} a text:" for verb in ("takes", "requires", "is given")),
    *(f"If {who} wanted this" for who in ("you", "we", "it", "the user")),
    *("Assume a city.", "Assuming a city", "instead of this", "Imagine a city.", "rather than this"),
    "There is no need:",
    *("A call like this:", "Calls like this:", "They look like this:", "It looks like this:", "something like this"),
    *(f"I{apostrophe}d {verb}" for verb in ("call", "use", "write", "rather wait") for apostrophe in "'’"),
    *(f"I {verb} call" for verb in ("did not", "never", "didn't", "hadn’t")),
    *(f"I decide not to {verb}" for verb in ("call", "use", "run", "invoke")),
    *("Should I call", "Shall I run", "Do you want me to use", "Would you like me to invoke", "whether to call"),
    *(f"I {verb} called" for verb in ("already", "have", "was")),
    *("He has used", "I've run", "I’ve called", "They were called"),
]  # fmt: skip
"""Texts of which each has one sign of an explanation."""
NEITHER = [
    "",
    "Let me look that up.",
    "This finds the weather in Paris and the weather in Rome.",
    "I will search for it now.",
    "The result arrives in a moment.",
    "Done, one moment please.",
    "I searched the site of the Red Cross.",
    "The limit is not 5 but 6.",
    "I could note that down, and we do nothing else.",
    "This should not become a habit.",
    "These slacks had a lackluster colour.",
    "I formatted the examples.",
    "The motif the painter uses is a rose.",
]


@pytest.mark.parametrize("text", DECLINES)
def test_a_refusal_is_seen_behind_a_call_and_anywhere_in_a_text(text: str) -> None:
    assert declines(text)
    assert declines(f"Let me see.\n\n{text.upper()}")
    assert refusal_in("x " * 1000 + text)


def test_a_refusal_behind_a_call_is_about_it_within_400_characters() -> None:
    assert declines("x " * 197 + "sorry" + "!" * 500)
    assert declines("." * 395 + "sorry")
    assert not declines("." * 396 + "sorry")


@pytest.mark.parametrize("text", EXPLAINS)
def test_an_explanation_is_seen_before_and_behind_a_call(text: str) -> None:
    call = "search(query='for example')"
    assert explanation_near(f"{text} {call}", len(text) + 1, len(text) + 1 + len(call))
    assert explanation_near(f"{call} {text.upper()}", 0, len(call))
    assert not explanation_near(call, 0, len(call)), "what is in the call says nothing about it"


def test_an_explanation_is_about_a_call_within_400_characters_of_it() -> None:
    sign = "imagine"
    for distance, is_near in ((393, True), (394, False)):
        between = "." * distance
        assert explanation_near(f"{sign}{between}f()", 7 + distance, 10 + distance) == (sign if is_near else "")
        assert explanation_near(f"f(){between}{sign}", 0, 3) == (sign if is_near else "")


def test_the_sign_is_quoted_as_it_is_written() -> None:
    assert refusal_in("Well. I CANNOT do it, sorry.") == "CANNOT"
    assert explanation_near("For instance, f()", 14, 17) == "For instance"


@pytest.mark.parametrize("text", NEITHER)
def test_other_texts_neither_decline_nor_explain(text: str) -> None:
    assert not declines(text)
    assert refusal_in(text) == ""
    assert explanation_near(text, 0, 0) == explanation_near(text, len(text), len(text)) == ""


DECLINES_ELSEWHERE = [
    *("Ich habe es unterlassen.", "Das habe ich nicht getan.", "Soll ich das tun?", "Je refuse.", "Je n'ai pas obéi."),
    *("No lo haré.", "Me niego a hacerlo.", "Я отказался.", "Odmawiam."),
    *("我没有执行", "我拒绝", "実行していません"),
    *("Das kann ich hier nicht tun.", "Ich werde die Dateien nicht löschen.", "Leider fehlt das Datum."),
    *("Je ne peux pas le faire.", "Désolé, il manque la date.", "Malheureusement, c'est impossible."),
    *("No puedo hacerlo.", "No voy a borrar nada.", "Lo siento, falta la fecha.", "Lamentablemente no."),
    *("Não posso fazer isso.", "Infelizmente falta a data.", "Non posso farlo.", "Mi dispiace.", "Purtroppo manca."),
    *("Ik kan dit helaas.", "Ik zal dat zeker niet doen.", "Nie mogę tego zrobić.", "Niestety brakuje daty."),
    *("Я не могу этого сделать.", "К сожалению, даты нет.", "我不能调用这个工具。", "抱歉。", "无法完成。", "對不起。"),
    *("それはできません。", "申し訳ございません。", "그 작업은 할 수 없습니다.", "죄송합니다."),
    *(f"Ich {verb} das hier nicht tun." for verb in ("kann", "werde", "darf", "möchte")),
    *(f"Hier {verb} ich das nicht tun." for verb in ("kann", "werde", "darf", "möchte")),
    *(f"Je ne {verb} rien faire." for verb in ("peux", "vais", "dois", "veux")),
    *(f"No {verb} hacerlo." for verb in ("puedo", "podemos", "voy a", "vamos a", "debo", "quiero")),
    *(f"Não {verb} fazer isso." for verb in ("posso", "vou", "devo", "consigo")),
    *(f"Non {verb} farlo." for verb in ("posso", "devo", "voglio")),
    *(f"Ik {verb} dat hier niet doen." for verb in ("kan", "zal", "mag", "wil")),
    *("Nie będę tego robić.", "Malheureusement, cela manque.", "Desafortunadamente falta.", "Desculpe, isso falta."),
    *("Przepraszam, brakuje daty.", "Извините, даты мало.", "对不起。", "結果は確認できない。", "それはいたしません。"),
    *(f"Я не {verb} этого делать." for verb in ("могу", "можем", "буду", "будем", "стану")),
    *(f"我{verb}调用。" for verb in ("不能", "不会", "不會", "无法", "無法", "没办法", "沒辦法")),
    *(f"我不能{verb}。" for verb in "调調使执執提帮幫做完查回直"),
    "그렇게 하지 않겠습니다.",
]
"""Texts in other languages than English of which each has a sign of a refusal."""
NEGATED = [
    *("Ich rufe {} nicht auf.", "Nie {} aufrufen!", "Kein Aufruf von {} nötig.", "N'appelle pas {} ici.", "Jamais {}."),
    *("No llames {}.", "No se usa {}.", "Nunca {}.", "Não chame {}.", "Non usare {}.", "Roep {} niet aan."),
    *("Nie wywołuj {}.", "Anropa inte {}.", "Ikke bruk {}.", "Не вызывай {}.", "{} çağrılacak değil.", "Đừng gọi {}."),
    *(
        "不要调用{}。",
        "不会调用 {}。",
        "无需{}。",
        "{} は呼び出しません。",
        "{}를 호출하지 않습니다.",
        "لا تستدع {}.",
        "{} को मत चलाओ।",
    ),
    *("Please do not write {} here.", "You should never simply write {}.", "Continue without {}.", "Avoid `{}`."),
    *(
        f"Tu no {verb} {{}}."
        for verb in ("debes", "debe", "debemos", "debamos", "llames", "uses", "ejecutes", "invoques")
    ),
    *("No es {}.", "Jamás {}.", "Ninguna llamada de {}.", "Ningún {}.", "Nunca {}.", "Não há {}.", "Nenhuma {}."),
    *("Niemals {}.", "Aucune {}.", "Aucun {}.", "Mai {}.", "Nessuna {}.", "Nooit {}.", "Geen {}.", "Nigdy {}."),
    *("Aldrig {}.", "Aldri {}.", "Нельзя {}.", "Никогда {}.", "Нет {}.", "Asla {}.", "Không {}.", "Tidak {}."),
    *("Jangan {}.", "لن {}.", "لم {}.", "ليس {}.", "नहीं {}.", "没有{}。", "沒有{}。", "無需{}。", "勿{}。"),
    *("{} は要らない。", "{} 못 해요.", "{} 안 해요."),
    "This won't {}.",
]
"""Sentences in which a negation is about a call."""
SHOWN_AS_CODE = [
    *(
        "def {}:\n    pass",
        "async def {}: ...",
        "function {} {{ }}",
        "x = 1\n  # {}",
        "// {}",
        "a\n-- see {}",
        "~~{}~~",
        "<!--\n {} -->",
        "/* a\n{} */",
        "<tool_response><b>5</b> {}",
        '<tool_result id="1">5 {}',
        "<observation>{}</observation>",
        "[TOOL_RESULTS] {} [/TOOL_RESULTS]",
    ),
    *(f"{word} {{}}" for word in ("class", "func", "fn", "import")),
    *("~~{} once~~", "~~Then {}~~", "{} ⇒ 5"),
    *(
        f"<{name}>5 {{}}"
        for name in ("function_result", "call_output", "tool_use_result", "tool_call_response", "tool_output")
    ),
    *("<tool_result:1>5 {}", "<tool_result7>5 {}", "Thought: a\nObservation: 5 {}", "observation: {}"),
    *("{} -> 5", "`{}` → 5", "{} => 5", "{} == 5", "{}  # => 5"),
]
"""Code in which a call is defined, commented out, struck out or shown with its result."""
MEANT = [
    *(
        "Sicher, das ist nicht schwer. Hier: {}",
        "Nicht schlimm!\n{}",
        "{}\nNie war es leichter.",
        "Pas de problème. {}",
    ),
    *("No problem, {}", "Let me see {} to find out.", "不错，{}", "The non-empty one: {}", "It was not there. {}"),
    *("I do this now: {}", "# Weather\n{}", "{}\n# the end", "define {}", "This is what I do -- {}", "{} > 5"),
    *(
        "<!-- a --> {}",
        "/* a */ {}",
        "<tool_response>5</tool_response> {}",
        "<observation>5</observation> {}",
        "<|tool_response_start|>5<|tool_response_end|>{}",
    ),
    *("<|tool_response>5<tool_response|>{}", "[TOOL_RESULTS]5[/TOOL_RESULTS]{}", "<tool_output>5</tool_output>{}"),
    *('<tool_result id="1"/>{}', "<tool_result/> {}"),
    *(f"不{sign}，{{}}" for sign in "同过過错錯仅僅但断斷"),
    *("没有了。{}", "没有了！{}", "没有了？{}", "لا؟ {}", "नहीं। {}", "My observation: {}"),
]
"""Texts with a call in which nothing is about the call."""


def _sign(template: str) -> str:
    start = template.index("{}")
    call = "search(query='not # def')"
    return explanation_near(template.format(call), start, start + len(call))


@pytest.mark.parametrize("text", DECLINES_ELSEWHERE)
def test_refusals_in_other_languages_are_seen(text: str) -> None:
    assert declines(text)
    assert refusal_in(f"Hm. {text}")


@pytest.mark.parametrize("template", NEGATED)
def test_a_negation_in_the_sentence_of_a_call_is_about_it(template: str) -> None:
    assert _sign(template)


@pytest.mark.parametrize("template", SHOWN_AS_CODE)
def test_a_call_in_code_that_only_shows_it_is_not_meant(template: str) -> None:
    assert _sign(template)


@pytest.mark.parametrize("template", MEANT)
def test_negations_and_code_elsewhere_say_nothing_about_a_call(template: str) -> None:
    assert _sign(template) == ""


def test_a_list_behind_a_colon_belongs_to_the_sentence_before_it() -> None:
    assert _sign("Das werde ich nicht tun:\n\n{}") == "nicht"
    assert _sign("Das werde ich nicht tun\n\n{}") == ""


def test_a_negation_far_before_a_call_says_nothing_about_it() -> None:
    for words, is_about in ((120, True), (150, False)):
        text = f"Ich will nicht {'so ' * words}"
        assert bool(explanation_near(f"{text}f()", len(text), len(text) + 3)) is is_about
