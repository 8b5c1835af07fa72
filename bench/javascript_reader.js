// What JavaScript reads: for each line {schema, texts, documents} on standard input, a line of answers, one for each text, on standard output.
// An answer is {value, refused}: the value that JSON.parse finds, spelled as `readers.spelled` in Python does, and why ajv refuses it
// (its keyword and message), null where it accepts.  The folder with node_modules is the argument.
"use strict";
const { createRequire } = require("node:module");
const readline = require("node:readline");

const load = createRequire(process.argv[2] + "/");
const addFormats = load("ajv-formats").default;
const OPTIONS = { strict: false, logger: false, validateSchema: false };
const bits = new DataView(new ArrayBuffer(8));

function kinds(schema) {
  const dialect = (schema && schema.$schema) || "";
  if (/draft-0[34]/.test(dialect)) return ["ajv-draft-04"];
  if (/draft-0[67]/.test(dialect)) return ["ajv"];
  if (/2019-09/.test(dialect)) return ["ajv/dist/2019"];
  // Schemas without a dialect are often older than 2020-12, and mean it.
  return ["ajv/dist/2020", "ajv"];
}

function validator(schema, documents) {
  let problem;
  for (const name of kinds(schema)) {
    // Some patterns escape what needs none, which is an error with the flag u.
    for (const unicodeRegExp of [true, false]) {
      const ajv = new (load(name).default)({ ...OPTIONS, unicodeRegExp });
      addFormats(ajv);
      if (name === "ajv") ajv.addMetaSchema(load("ajv/dist/refs/json-schema-draft-06.json"));
      try {
        for (const [uri, document] of Object.entries(documents)) {
          if (uri !== String(schema.$id || schema.id || "").replace(/#$/, "")) ajv.addSchema(document, uri);
        }
        return ajv.compile(schema);
      } catch (error) {
        problem = problem || error;
      }
    }
  }
  throw problem;
}

function spelled(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    bits.setFloat64(0, value + 0);
    return "n" + bits.getBigUint64(0).toString(16).padStart(16, "0");
  }
  if (typeof value === "string") return "s" + Buffer.from(value, "utf16le").toString("hex");
  if (Array.isArray(value)) return "[" + value.map(spelled).join(",") + "]";
  return "{" + Object.keys(value).map((key) => spelled(key) + ":" + spelled(value[key])).sort().join(",") + "}";
}

function answer(text, check, problem) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { value: null, refused: ["JSON.parse", String(error)] };
  }
  let refused = problem;
  if (check && !check(value)) refused = [check.errors[0].keyword, check.errors[0].message || ""];
  return { value: spelled(value), refused };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { schema, texts, documents } = JSON.parse(line);
  let check = null;
  let problem = null;
  try {
    check = validator(schema, documents);
  } catch (error) {
    problem = ["does not read the schema", String(error).slice(0, 200)];
  }
  process.stdout.write(JSON.stringify(texts.map((text) => answer(text, check, problem))) + "\n");
});
