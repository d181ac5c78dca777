// Reads a message in pieces with Toolwire, from Node.js: node examples/sidecar.mjs
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const program = process.env.TOOLWIRE ?? "toolwire";
const sidecar = spawn(program, ["serve", "--sidecar"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = []; // answers come in the order of the requests
createInterface({ input: sidecar.stdout }).on("line", (line) => waiting.shift()(JSON.parse(line)));
sidecar.on("close", () => {
  for (const answer of waiting.splice(0)) answer({ error: { message: "the sidecar has ended" } });
});

function ask(request) {
  sidecar.stdin.write(JSON.stringify(request) + "\n");
  return new Promise((resolve, reject) => {
    waiting.push(({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
  });
}

const tools = [{ name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } }];
const pieces = ["Let me look. <tool_", 'call>{"name": "get_weather", "argu', 'ments": {"city": "Paris"}}</tool_call>'];

await ask({ do: "open", stream: "1", format: "hermes", tools });
for (const text of pieces) {
  const { deltas } = await ask({ do: "feed", stream: "1", text });
  for (const delta of deltas) console.log(JSON.stringify(delta));
}
const { events } = await ask({ do: "finish", stream: "1" });
console.log(events.at(-1).event, events.at(-1).reason);
sidecar.stdin.end();
