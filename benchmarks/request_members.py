"""Members of requests to provider APIs, by what they mean: the yardstick of `benchmarks/translation.py`.

The tables are written from the providers' documentation and from recorded traffic, not from Toolwire's code, so that
a mistake of the code is not a mistake of the yardstick. A line has a path and a meaning. `[]` is an item of a list, and
`**` ends a path whose value is the caller's own JSON: arguments, schemas, structured results.

A meaning with a role in front of it is bound to the speaker: `text` of the system is lost if the user says it. `-`
marks structure, which says nothing by itself: discriminators, positions, names of objects. A member without a line
has a meaning that only its API knows.
"""

from __future__ import annotations

_CHAT_MESSAGES = """
messages[].role                                     -
messages[].content                                  text
messages[].content[]                                text
messages[].content[].text                           text
messages[].content[].refusal                        text
messages[].refusal                                  text
messages[].content[].image_url                      media
messages[].content[].image_url.url                  media
messages[].content[].image_url.detail               media.detail
messages[].content[].file.file_data                 media
messages[].content[].file.filename                  media.name
messages[].content[].input_audio.data               media
messages[].content[].input_audio.format             media.type
messages[].content[].thinking                       reasoning
messages[].content[].thinking[].text                reasoning
messages[].content[].signature                      seal
messages[].content[].cache_control.type             cache
messages[].content[].cache_control.ttl              cache.ttl
messages[].reasoning                                reasoning
messages[].reasoning_content                        reasoning
messages[].reasoning_details[].text                 reasoning
messages[].reasoning_details[].signature            seal
messages[].reasoning_details[].data                 seal
messages[].reasoning_details[].summary              reasoning
messages[].reasoning_details[].type                 -
messages[].reasoning_details[].format               -
messages[].reasoning_details[].id                   -
messages[].reasoning_details[].index                -
messages[].name                                     name
messages[].tool_calls[].index                       -
messages[].tool_calls[].id                          call.id
messages[].tool_calls[].function.name               call.name
messages[].tool_calls[].function.arguments**        call.arguments
messages[].tool_calls[].custom.name                 call.name
messages[].tool_calls[].custom.input                call.arguments/input
messages[].function_call.name                       call.name
messages[].function_call.arguments**                call.arguments
messages[].tool_call_id                             result.id
tools[].function.name                               tool.name
tools[].function.description                        tool.description
tools[].function.parameters**                       tool.schema
tools[].function.strict                             tool.strict
tools[].custom.name                                 tool.name
tools[].custom.description                          tool.description
tools[].custom.format.type                          -
tools[].custom.format.grammar.syntax                tool.grammar.syntax
tools[].custom.format.grammar.definition            tool.grammar
tools[].cache_control.type                          cache
tools[].cache_control.ttl                           cache.ttl
functions[].name                                    tool.name
functions[].description                             tool.description
functions[].parameters**                            tool.schema
tool_choice                                         choice
tool_choice.type                                    -
tool_choice.function.name                           choice.name
tool_choice.custom.name                             choice.name
tool_choice.allowed_tools.mode                      choice
tool_choice.allowed_tools.tools[].function.name     choice.name
tool_choice.allowed_tools.tools[].type              -
function_call                                       choice
function_call.name                                  choice.name
parallel_tool_calls                                 parallel
model                                               model
stream                                              stream
max_tokens                                          max_tokens
max_completion_tokens                               max_tokens
temperature                                         temperature
top_p                                               top_p
top_k                                               top_k
stop                                                stop
stop[]                                              stop
seed                                                seed
frequency_penalty                                   frequency_penalty
presence_penalty                                    presence_penalty
logprobs                                            logprobs
top_logprobs                                        top_logprobs
n                                                   candidates
reasoning_effort                                    effort
reasoning.effort                                    effort
reasoning.max_tokens                                effort
reasoning.enabled                                   effort.switch
thinking.type                                       effort.switch
enable_thinking                                     effort.switch
response_format.type                                output.kind
response_format.json_schema.name                    output.name
response_format.json_schema.description             output.description
response_format.json_schema.strict                  output.strict
response_format.json_schema.schema**                output.schema
service_tier                                        service_tier
user                                                end_user
prompt_cache_key                                    cache.key
prompt_cache_retention                              cache.retention
store                                               store
modalities[]                                        modality
stream_options.include_usage                        -
"""

REQUESTS: dict[str, str] = {
    "openai_chat": _CHAT_MESSAGES,
    "groq": _CHAT_MESSAGES,
    "mistral": _CHAT_MESSAGES
    + """
messages[].content[].document_url                   media
messages[].content[].document_name                  media.name
messages[].content[].input_audio                    media
random_seed                                         seed
""",
    "cohere": _CHAT_MESSAGES
    + """
messages[].content[].document.data**                text
messages[].tool_plan                                reasoning
p                                                   top_p
k                                                   top_k
stop_sequences[]                                    stop
thinking.token_budget                               effort
response_format.json_schema**                       output.schema
""",
    "ollama": _CHAT_MESSAGES
    + """
messages[].images[]                                 media
messages[].thinking                                 reasoning
messages[].tool_name                                result.name
messages[].tool_calls[].function.index              -
options.num_predict                                 max_tokens
options.temperature                                 temperature
options.top_p                                       top_p
options.top_k                                       top_k
options.stop[]                                      stop
options.seed                                        seed
options.frequency_penalty                           frequency_penalty
options.presence_penalty                            presence_penalty
think                                               effort
format                                              output.kind
format**                                            output.schema
""",
    "openai_responses": """
model                                               model
stream                                              stream
instructions                                        system:text
input                                               user:text
input[].role                                        -
input[].id                                          -
input[].status                                      -
input[].namespace                                   call.server
input[].content                                     text
input[].content[].text                              text
input[].content[].refusal                           text
input[].content[].image_url                         media
input[].content[].detail                            media.detail
input[].content[].file_data                         media
input[].content[].file_url                          media
input[].content[].filename                          media.name
input[].summary[].text                              reasoning
input[].encrypted_content                           seal
input[].content[].annotations[].url                 citation
input[].content[].annotations[].title               citation.title
input[].content[].annotations[].start_index         citation.start
input[].content[].annotations[].end_index           citation.end
input[].call_id                                     call.id
input[].name                                        call.name
input[].arguments**                                 call.arguments
input[].input                                       call.arguments/input
input[].output                                      tool:text
input[].output[].text                               tool:text
input[].output[].image_url                          media
input[].output[].detail                             media.detail
input[].output[].file_data                          media
input[].output[].file_url                           media
input[].output[].filename                           media.name
tools[].name                                        tool.name
tools[].description                                 tool.description
tools[].parameters**                                tool.schema
tools[].strict                                      tool.strict
tools[].format.type                                 -
tools[].format.syntax                               tool.grammar.syntax
tools[].format.definition                           tool.grammar
tool_choice                                         choice
tool_choice.type                                    -
tool_choice.name                                    choice.name
tool_choice.mode                                    choice
tool_choice.tools[].type                            -
tool_choice.tools[].name                            choice.name
parallel_tool_calls                                 parallel
max_output_tokens                                   max_tokens
temperature                                         temperature
top_p                                               top_p
top_logprobs                                        top_logprobs
reasoning.effort                                    effort
reasoning.summary                                   reasoning.shown
service_tier                                        service_tier
user                                                end_user
prompt_cache_key                                    cache.key
prompt_cache_retention                              cache.retention
store                                               store
context_management[].type                           compact_at.kind
context_management[].compact_threshold              compact_at
text.format.type                                    output.kind
text.format.name                                    output.name
text.format.description                             output.description
text.format.strict                                  output.strict
text.format.schema**                                output.schema
""",
    "anthropic_messages": """
model                                               model
stream                                              stream
system                                              system:text
system[].text                                       system:text
system[].cache_control.type                         cache
system[].cache_control.ttl                          cache.ttl
messages[].role                                     -
messages[].content                                  text
messages[].content[].text                           text
messages[].content[].thinking                       reasoning
messages[].content[].signature                      seal
messages[].content[].data                           seal
messages[].content[].cache_control.type             cache
messages[].content[].cache_control.ttl              cache.ttl
messages[].content[].source.type                    -
messages[].content[].source.data                    media
messages[].content[].source.url                     media
messages[].content[].source.media_type              media.type
messages[].content[].title                          media.name
messages[].content[].context                        media.context
messages[].content[].citations.enabled              media.citations
messages[].content[].citations[].type               -
messages[].content[].citations[].url                citation
messages[].content[].citations[].title              citation.title
messages[].content[].citations[].cited_text         citation.text
messages[].content[].id                             call.id
messages[].content[].name                           call.name
messages[].content[].input**                        call.arguments
messages[].content[].tool_use_id                    result.id
messages[].content[].is_error                       result.error
messages[].content[].content                        tool:text
messages[].content[].content[].text                 tool:text
messages[].content[].content[].source.type          -
messages[].content[].content[].source.data          media
messages[].content[].content[].source.url           media
messages[].content[].content[].source.media_type    media.type
messages[].content[].content[].title                media.name
messages[].content[].content[].cache_control.type   cache
messages[].content[].content[].cache_control.ttl    cache.ttl
cache_control.type                                  cache
cache_control.ttl                                   cache.ttl
tools[].name                                        tool.name
tools[].description                                 tool.description
tools[].input_schema**                              tool.schema
tools[].strict                                      tool.strict
tools[].cache_control.type                          cache
tools[].cache_control.ttl                           cache.ttl
tool_choice.type                                    choice
tool_choice.name                                    choice.name
tool_choice.disable_parallel_tool_use               parallel/not
max_tokens                                          max_tokens
temperature                                         temperature
top_p                                               top_p
top_k                                               top_k
stop_sequences[]                                    stop
metadata.user_id                                    end_user
service_tier                                        service_tier
context_management.edits[].type                     compact_at.kind
context_management.edits[].trigger.type             -
context_management.edits[].trigger.value            compact_at
thinking.type                                       effort.switch
thinking.budget_tokens                              effort
thinking.display                                    reasoning.shown
output_config.effort                                effort
output_config.format.type                           output.kind
output_config.format.schema**                       output.schema
""",
    "gemini": """
model                                               model
stream                                              stream
systemInstruction                                   system:text
systemInstruction.role                              -
systemInstruction.parts.text                        system:text
systemInstruction.parts[].text                      system:text
systemInstruction.parts[].thought                   -
contents[].role                                     -
contents[].parts[].text                             text
contents[].parts[].thought                          -
contents[].parts[].thoughtSignature                 seal
contents[].parts[].inlineData.data                  media
contents[].parts[].inlineData.mimeType              media.type
contents[].parts[].inlineData.displayName           media.name
contents[].parts[].fileData.fileUri                 media
contents[].parts[].fileData.mimeType                media.type
contents[].parts[].fileData.displayName             media.name
contents[].parts[].functionCall.id                  call.id
contents[].parts[].functionCall.name                call.name
contents[].parts[].functionCall.args**              call.arguments
contents[].parts[].functionResponse.id              result.id
contents[].parts[].functionResponse.name            result.name
contents[].parts[].functionResponse.response**      tool:result
contents[].parts[].functionResponse.parts[].inlineData.data      media
contents[].parts[].functionResponse.parts[].inlineData.mimeType  media.type
contents[].parts[].functionResponse.parts[].fileData.fileUri     media
contents[].parts[].functionResponse.parts[].inlineData.displayName  media.name
contents[].parts[].functionResponse.parts[].fileData.displayName  media.name
contents[].parts[].functionResponse.parts[].fileData.mimeType    media.type
tools[].functionDeclarations[].name                 tool.name
tools[].functionDeclarations[].description          tool.description
tools[].functionDeclarations[].parameters**         tool.schema
tools[].functionDeclarations[].parametersJsonSchema**  tool.schema
toolConfig.functionCallingConfig.mode               choice
toolConfig.functionCallingConfig.allowedFunctionNames[]  choice.name
generationConfig.maxOutputTokens                    max_tokens
generationConfig.temperature                        temperature
generationConfig.topP                               top_p
generationConfig.topK                               top_k
generationConfig.stopSequences[]                    stop
generationConfig.seed                               seed
generationConfig.frequencyPenalty                   frequency_penalty
generationConfig.presencePenalty                    presence_penalty
generationConfig.responseLogprobs                   logprobs
generationConfig.logprobs                           top_logprobs
generationConfig.candidateCount                     candidates
generationConfig.responseModalities[]               modality
generationConfig.mediaResolution                    media.resolution
generationConfig.thinkingConfig.thinkingLevel       effort
generationConfig.thinkingConfig.thinkingBudget      effort
generationConfig.thinkingConfig.includeThoughts     reasoning.shown
generationConfig.responseMimeType                   output.kind
generationConfig.responseSchema**                   output.schema
generationConfig.responseJsonSchema**               output.schema
serviceTier                                         service_tier
""",
    "bedrock_converse": """
modelId                                             model
system[].text                                       system:text
system[].cachePoint.type                            cache
system[].cachePoint.ttl                             cache.ttl
messages[].role                                     -
messages[].content[].text                           text
messages[].content[].cachePoint.type                cache
messages[].content[].cachePoint.ttl                 cache.ttl
messages[].content[].reasoningContent.reasoningText.text       reasoning
messages[].content[].reasoningContent.reasoningText.signature  seal
messages[].content[].reasoningContent.redactedContent          seal
messages[].content[].image.format                   media.type
messages[].content[].image.source.bytes             media
messages[].content[].document.format                media.type
messages[].content[].document.name                  media.name
messages[].content[].document.context               media.context
messages[].content[].document.citations.enabled     media.citations
messages[].content[].document.source.bytes          media
messages[].content[].document.source.text           media/text
messages[].content[].document.source.s3Location.uri  media
messages[].content[].audio.format                   media.type
messages[].content[].audio.source.bytes             media
messages[].content[].video.format                   media.type
messages[].content[].video.source.bytes             media
messages[].content[].video.source.s3Location.uri    media
messages[].content[].citationsContent.content[].text   text
messages[].content[].citationsContent.citations[].title  citation.title
messages[].content[].citationsContent.citations[].sourceContent[].text  citation.text
messages[].content[].citationsContent.citations[].location.web.url  citation
messages[].content[].toolUse.toolUseId              call.id
messages[].content[].toolUse.name                   call.name
messages[].content[].toolUse.input**                call.arguments
messages[].content[].toolResult.toolUseId           result.id
messages[].content[].toolResult.status              result.error
messages[].content[].toolResult.type                -
messages[].content[].toolResult.content[].text      tool:text
messages[].content[].toolResult.content[].json**    tool:result
messages[].content[].toolResult.content[].image.format         media.type
messages[].content[].toolResult.content[].image.source.bytes   media
messages[].content[].toolResult.content[].document.format      media.type
messages[].content[].toolResult.content[].document.name        media.name
messages[].content[].toolResult.content[].document.source.bytes  media
messages[].content[].toolResult.content[].document.source.s3Location.uri  media
messages[].content[].toolResult.content[].video.format         media.type
messages[].content[].toolResult.content[].video.source.bytes   media
toolConfig.tools[].toolSpec.name                    tool.name
toolConfig.tools[].toolSpec.description             tool.description
toolConfig.tools[].toolSpec.inputSchema.json**      tool.schema
toolConfig.tools[].toolSpec.strict                  tool.strict
toolConfig.tools[].cachePoint.type                  cache
toolConfig.tools[].cachePoint.ttl                   cache.ttl
toolConfig.toolChoice**                             choice
toolConfig.toolChoice.tool.name                     choice.name
inferenceConfig.maxTokens                           max_tokens
inferenceConfig.temperature                         temperature
inferenceConfig.topP                                top_p
inferenceConfig.stopSequences[]                     stop
additionalModelRequestFields.top_k                  top_k
additionalModelRequestFields.thinking.type          effort.switch
additionalModelRequestFields.thinking.budget_tokens effort
outputConfig.effort                                 effort
outputConfig.textFormat.type                        output.kind
outputConfig.textFormat.structure.jsonSchema.name   output.name
outputConfig.textFormat.structure.jsonSchema.description  output.description
outputConfig.textFormat.structure.jsonSchema.schema**     output.schema
serviceTier.type                                    service_tier
stream                                              stream
""",
}
"""Members of requests, by API. Metadata has names of its own everywhere, so `metadata` is matched by name."""

CHOICES = {
    "auto": "auto", "any": "required", "required": "required", "none": "none", "tool": "required",
    "validated": "auto", "function": "required",
}  # fmt: skip
"""Modes of the choice of tools, as the APIs spell them in any case."""

MEDIA_TYPES = {
    "mpeg": "mp3", "jpg": "jpeg", "plain": "txt", "markdown": "md", "x-wav": "wav", "quicktime": "mov",
    "vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}  # fmt: skip
"""Names of formats by the second half of a media type, where they differ."""

DEFAULTS: dict[str, tuple[object, ...]] = {
    "stream": (False,), "choice": ("auto",), "media.detail": ("auto",), "candidates": (1,), "cache.ttl": ("5m",),
    "output.kind": ("text", "text/plain"), "tool.strict": (False,), "result.error": (False,), "logprobs": (False,),
    "modality": ("text",), "parallel": (True,), "top_logprobs": (0,),
    "caller": ("direct",),
}  # fmt: skip
"""Values that mean what a body without the member means."""

IN_ADDRESS = {"gemini": ("model", "stream"), "bedrock_converse": ("stream",)}
"""Meanings that are part of an API's address, not of its body."""
