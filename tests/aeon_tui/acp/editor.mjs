// An editor that uses the protocol's TypeScript library: takes the first answer to each question, and prints what it saw.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const [cwd, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const seen = { updates: [], asked: [] };
const editor = client({ name: "editor" })
  .onNotification(methods.client.session.update, ({ params }) => { seen.updates.push(params.update); })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.options.map((option) => option.name));
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  });
await editor.connectWith(stream, async (ctx) => {
  await ctx.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const session = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
  seen.modes = session.modes.availableModes.map((mode) => mode.id);
  await ctx.request(methods.agent.session.setMode, { sessionId: session.sessionId, modeId: "plan" });
  const prompt = [{ type: "text", text: "write 'hi' to hi.txt" }];
  seen.stopReason = (await ctx.request(methods.agent.session.prompt, { sessionId: session.sessionId, prompt })).stopReason;
});
agent.stdin.end();
process.stdout.write(JSON.stringify(seen));
