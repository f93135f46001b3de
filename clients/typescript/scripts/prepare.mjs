// Builds the package, with the licences of the repository, before it is packed, and when its folder
// is installed as it is. In the second case npm fetches nothing for the build, so that is done here.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const compiler = fileURLToPath(new URL("../node_modules/typescript", import.meta.url));

function npm(...words) {
  execFileSync("npm", words, { cwd, stdio: "inherit" });
}

if (!existsSync(compiler)) npm("ci", "--ignore-scripts", "--no-audit", "--no-fund");
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
  const common = `${cwd}/../../${licence}`;
  if (existsSync(common)) copyFileSync(common, `${cwd}/${licence}`);
}
npm("run", "build");
