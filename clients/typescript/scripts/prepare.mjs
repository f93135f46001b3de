// Builds the package before it is packed, and when its folder is installed as it is. In the second
// case npm fetches nothing for the build, so that is done here.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const compiler = fileURLToPath(new URL("../node_modules/typescript", import.meta.url));

function npm(...words) {
  execFileSync("npm", words, { cwd, stdio: "inherit" });
}

if (!existsSync(compiler)) npm("ci", "--ignore-scripts", "--no-audit", "--no-fund");
npm("run", "build");
