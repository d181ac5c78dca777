// Ask a server as `useChat` does, and print the message that the page would show, as JSON.
// Usage: read_chat.mjs URL TEXT [MESSAGES]; MESSAGES is JSON, the messages that the page shows already.
import { DefaultChatTransport, readUIMessageStream } from "ai";

const [api, text, earlier = "[]"] = process.argv.slice(2);
const question = { id: "question", role: "user", parts: [{ type: "text", text }] };
const stream = await new DefaultChatTransport({ api }).sendMessages({
  chatId: "chat",
  messages: [...JSON.parse(earlier), question],
  trigger: "submit-message",
});
const chunks = [];
const observed = stream.pipeThrough(
  new TransformStream({
    transform(chunk, controller) {
      chunks.push(chunk);
      controller.enqueue(chunk);
    },
  }),
);
const errors = [];
let message;
for await (const state of readUIMessageStream({ stream: observed, onError: (error) => errors.push(String(error)) })) {
  message = state;
}
console.log(JSON.stringify({ message, errors, finished: chunks.at(-1)?.type === "finish" }));
