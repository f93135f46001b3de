// Tells Node which of the two builds is of which module format.
import { writeFileSync } from "node:fs";

const FORMATS = { esm: "module", cjs: "commonjs" };
for (const [directory, type] of Object.entries(FORMATS)) {
  const file = new URL(`../dist/${directory}/package.json`, import.meta.url);
  writeFileSync(file, `${JSON.stringify({ type })}\n`);
}
