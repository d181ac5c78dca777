"""Members of whole answers of provider APIs, by what they mean; see `request_members.py`.

Of an answer, `-` also marks what describes the exchange and not the answer: ids and times, the echo of the request,
fingerprints, prices, routing, ratings of filters that let the answer pass, and token counts in finer detail than four
numbers. `ParsedResponse.raw` has these.
"""

from __future__ import annotations

_CHAT_ANSWER = """
id                                                  -
object                                              -
created                                             -
model                                               model
choices[].index                                     -
choices[].finish_reason                             finish
choices[].message.role                              -
choices[].message.content                           text
choices[].message.content[].text                    text
choices[].message.refusal                           text
choices[].message.content[].thinking                reasoning
choices[].message.content[].thinking[].text         reasoning
choices[].message.content[].signature               seal
choices[].message.reasoning                         reasoning
choices[].message.reasoning_content                 reasoning
choices[].message.reasoning_details[].text          reasoning
choices[].message.reasoning_details[].signature     seal
choices[].message.reasoning_details[].data          seal
choices[].message.reasoning_details[].summary       reasoning
choices[].message.reasoning_details[].type          -
choices[].message.reasoning_details[].format        -
choices[].message.reasoning_details[].id            -
choices[].message.reasoning_details[].index         -
choices[].message.annotations[].url_citation.url            citation
choices[].message.annotations[].url_citation.title          citation.title
choices[].message.annotations[].url_citation.start_index    citation.start
choices[].message.annotations[].url_citation.end_index      citation.end
choices[].message.images[].image_url.url            media
choices[].message.tool_calls[].index                -
choices[].message.tool_calls[].id                   call.id
choices[].message.tool_calls[].function.name        call.name
choices[].message.tool_calls[].function.arguments** call.arguments
choices[].message.tool_calls[].custom.name          call.name
choices[].message.tool_calls[].custom.input         call.arguments/input
choices[].message.function_call.name                call.name
choices[].message.function_call.arguments**         call.arguments
choices[].native_finish_reason                      -
usage.prompt_tokens                                 usage.input
usage.completion_tokens                             usage.output
usage.total_tokens                                  -
usage.prompt_tokens_details.cached_tokens           usage.cached
usage.num_cached_tokens                             usage.cached?
usage.prompt_cache_hit_tokens                       usage.cached?
usage.prompt_cache_miss_tokens                      -
usage.completion_tokens_details.reasoning_tokens    usage.reasoning
usage**                                             -
system_fingerprint                                  -
service_tier                                        -
provider                                            -
usage_breakdown**                                   -
choices[].content_filter_results**                  -
choices[].stop_reason                               -
choices[].message.reasoning_details[].id            -
choices[].message.reasoning_details[].index         -
choices[].message.tool_calls[].extra_content.google.thought_signature  seal
copilot_usage**                                     -
cost**                                              -
generationId                                        -
metadata**                                          -
prompt_filter_results**                             -
request_id                                          -
timings**                                           -
venice_parameters**                                 -
x_groq**                                            -
choices[].message.provider_metadata**               -
choices[].message.padding                           -
choices[].message.audio.expires_at                  -
obfuscation                                         -
"""

ANSWERS: dict[str, str] = {
    "openai_chat": _CHAT_ANSWER,
    "groq": _CHAT_ANSWER,
    "mistral": _CHAT_ANSWER,
    "cohere": """
id                                                  -
finish_reason                                       finish
message.role                                        -
message.content[].text                              text
message.content[].thinking                          reasoning
message.tool_plan                                   reasoning
message.citations[].sources[].document.url          citation
message.citations[].sources[].document.title        citation.title
message.citations[].sources[].tool_output.url       citation
message.citations[].sources[].tool_output.title     citation.title
message.citations[].start                           citation.start
message.citations[].end                             citation.end
message.citations[].text                            citation.part
message.tool_calls[].id                             call.id
message.tool_calls[].function.name                  call.name
message.tool_calls[].function.arguments**           call.arguments
usage.tokens.input_tokens                           usage.input
usage.tokens.output_tokens                          usage.output
usage.tokens.reasoning_tokens                       usage.reasoning
usage.cached_tokens                                 usage.cached
usage.billed_units.input_tokens                     -
usage.billed_units.output_tokens                    -
""",
    "ollama": """
model                                               model
created_at                                          -
done                                                -
done_reason                                         finish
message.role                                        -
message.content                                     text
message.thinking                                    reasoning
message.tool_calls[].id                             call.id
message.tool_calls[].function.index                 -
message.tool_calls[].function.name                  call.name
message.tool_calls[].function.arguments**           call.arguments
prompt_eval_count                                   usage.input
eval_count                                          usage.output
total_duration                                      -
load_duration                                       -
prompt_eval_duration                                -
eval_duration                                       -
""",
    "openai_responses": """
id                                                  -
object                                              -
created_at                                          -
completed_at                                        -
model                                               model
status                                              finish
incomplete_details.reason                           finish
output_text                                         -
background                                          -
billing**                                           -
content_filters**                                   -
copilot_usage**                                     -
frequency_penalty                                   -
instructions**                                      -
max_output_tokens                                   -
max_tool_calls                                      -
metadata**                                          -
moderation                                          -
parallel_tool_calls                                 -
presence_penalty                                    -
previous_response_id                                -
prompt**                                            -
prompt_cache_key                                    -
prompt_cache_options**                              -
prompt_cache_retention                              -
reasoning**                                         -
safety_identifier                                   -
service_tier                                        -
store                                               -
system_fingerprint                                  -
temperature                                         -
text**                                              -
tool_choice**                                       -
tool_usage**                                        -
tools**                                             -
top_logprobs                                        -
top_p                                               -
truncation                                          -
usage**                                             -
user                                                -
output[].id                                         -
output[].status                                     -
output[].role                                       -
output[].content[].text                             text
output[].content[].refusal                          text
output[].content[].annotations[].url                citation
output[].content[].annotations[].title              citation.title
output[].content[].annotations[].start_index        citation.start
output[].content[].annotations[].end_index          citation.end
output[].summary[].text                             reasoning
output[].encrypted_content                          seal
output[].call_id                                    call.id
output[].namespace                                  call.server
output[].name                                       call.name
output[].arguments**                                call.arguments
output[].input                                      call.arguments/input
usage.input_tokens                                  usage.input
usage.output_tokens                                 usage.output
usage.total_tokens                                  -
usage.input_tokens_details.cached_tokens            usage.cached
usage.output_tokens_details.reasoning_tokens        usage.reasoning
""",
    "anthropic_messages": """
id                                                  -
type                                                -
role                                                -
model                                               model
stop_reason                                         finish
content[].text                                      text
content[].thinking                                  reasoning
content[].signature                                 seal
content[].data                                      seal
content[].citations[].type                          -
content[].citations[].url                           citation
content[].citations[].title                         citation.title
content[].citations[].document_title                citation.title
content[].citations[].cited_text                    citation.text
content[].id                                        call.id
content[].name                                      call.name
content[].input**                                   call.arguments
content[].caller.type                               caller
usage.input_tokens                                  usage.input
usage.cache_read_input_tokens                       usage.cached+usage.input
usage.cache_creation_input_tokens                   usage.input
usage.output_tokens                                 usage.output
usage.output_tokens_details.thinking_tokens         usage.reasoning
usage.iterations[].input_tokens                     usage.input@compaction
usage.iterations[].cache_creation_input_tokens      usage.input@compaction
usage.iterations[].cache_read_input_tokens          usage.cached+usage.input@compaction
usage.iterations[].output_tokens                    usage.output@compaction
usage**                                             -
""",
    "gemini": """
modelVersion                                        model
responseId                                          -
createTime                                          -
candidates[].index                                  -
candidates[].finishReason                           finish
candidates[].content.role                           -
candidates[].content.parts[].text                   text
candidates[].content.parts[].thought                -
candidates[].content.parts[].thoughtSignature       seal
candidates[].content.parts[].functionCall.id        call.id
candidates[].content.parts[].functionCall.name      call.name
candidates[].content.parts[].functionCall.args**    call.arguments
candidates[].content.parts[].inlineData.data        media
candidates[].content.parts[].inlineData.mimeType    media.type
candidates[].groundingMetadata.groundingChunks[].web.uri    citation
candidates[].groundingMetadata.groundingChunks[].web.title  citation.title
candidates[].groundingMetadata.groundingSupports[].segment.text        citation.part
candidates[].groundingMetadata.groundingSupports[].segment.startIndex  citation.start
candidates[].groundingMetadata.groundingSupports[].segment.endIndex    citation.end
usageMetadata.promptTokenCount                      usage.input
usageMetadata.toolUsePromptTokenCount               usage.input
usageMetadata.candidatesTokenCount                  usage.output
usageMetadata.thoughtsTokenCount                    usage.reasoning+usage.output
usageMetadata.cachedContentTokenCount               usage.cached
usageMetadata**                                     -
candidates[].finishMessage                          -
""",
    "bedrock_converse": """
output.message.role                                 -
stopReason                                          finish
output.message.content[].text                       text
output.message.content[].reasoningContent.reasoningText.text       reasoning
output.message.content[].reasoningContent.reasoningText.signature  seal
output.message.content[].reasoningContent.redactedContent          seal
output.message.content[].citationsContent.content[].text           text
output.message.content[].citationsContent.citations[].title        citation.title
output.message.content[].citationsContent.citations[].sourceContent[].text  citation.text
output.message.content[].citationsContent.citations[].location.web.url      citation
output.message.content[].toolUse.toolUseId          call.id
output.message.content[].toolUse.name               call.name
output.message.content[].toolUse.input**            call.arguments
usage.inputTokens                                   usage.input
usage.outputTokens                                  usage.output
usage.totalTokens                                   -
usage.cacheReadInputTokens                          usage.cached+usage.input
usage.cacheReadInputTokenCount                      -
usage.cacheWriteInputTokens                         usage.input
usage.cacheWriteInputTokenCount                     -
metrics**                                           -
$metadata**                                         -
""",
}
"""Members of whole answers, by API."""

WITHOUT_MODEL = ("bedrock_converse", "cohere")
"""APIs whose answers do not say the model, because the request did."""

FINISHES = {
    "end": "stop tool_calls function_call completed tool_use end_turn stop_sequence complete tool_call "
    "unexpected_tool_call 1",
    "length": "length max_tokens max_output_tokens incomplete model_length model_context_window_exceeded 2",
    "filter": "content_filter refusal safety content_filtered guardrail_intervened recitation blocklist "
    "prohibited_content",
}  # fmt: skip
"""Reasons why an answer ended, as the APIs spell them in any case; whether it ended with calls shows in these."""
