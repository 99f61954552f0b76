// Reads {name: text} from standard input and writes what Mermaid's parser makes of each: labels and edges, or an error.
// It is run in the folder in which npm installed mermaid and jsdom.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const { JSDOM } = require("jsdom");
const { window } = new JSDOM("");
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import(pathToFileURL(require.resolve("mermaid")));
mermaid.initialize({ startOnLoad: false });

const answers = {};
for (const [name, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try {
    const { type, db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    const labels = Object.fromEntries([...db.getVertices()].map(([key, vertex]) => [key, vertex.text]));
    answers[name] = { type, labels, edges: db.getEdges().map((edge) => [edge.start, edge.end]) };
  } catch (error) {
    answers[name] = { error: String(error.message ?? error) };
  }
}
console.log(JSON.stringify(answers));
