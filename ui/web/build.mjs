// Bundles src/ into ../static/: pages.js (the page's script), theme.js (what must run before the first paint) and
// LICENSES.txt (of the packages that are in the bundle). The banner's digest lets a test see a bundle that is out of date.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const STATIC = "../static";
const SOURCES = [
  ...["build.mjs", "package-lock.json", "package.json"],
  ...readdirSync("src", { recursive: true })
    .map((name) => `src/${name}`)
    .filter((name) => name.endsWith(".js")),
].sort();
const OPTIONS = { bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none" };

function digest() {
  const hash = createHash("sha256");
  for (const name of SOURCES) {
    hash.update(`${name}\0`).update(readFileSync(name)).update("\0");
  }
  return hash.digest("hex");
}

function packages(metafile) {
  const folders = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const found = input.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/);
    if (found) folders.add(found[0]);
  }
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} ${version} comes without a licence file; look for its licence and add it.`);
    return { name, version, license, text: readFileSync(`${folder}/${file}`, "utf8").trim() };
  });
}

const result = await build({ ...OPTIONS, entryPoints: ["src/pages.js"], write: false, metafile: true });
const used = packages(result.metafile);
const banner = [
  "/*! Millrace's pages, Apache-2.0. Built by `make web` from ui/web; do not edit.",
  ` * Sources: sha256 ${digest()}`,
  " * With these packages, whose licences are in LICENSES.txt:",
  ...used.map(({ name, version, license }) => ` *   ${name} ${version} (${license})`),
  " */",
].join("\n");
writeFileSync(`${STATIC}/pages.js`, `${banner}\n${result.outputFiles[0].text}`);
const rule = "-".repeat(100);
const texts = used.map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`);
writeFileSync(`${STATIC}/LICENSES.txt`, `Packages in pages.js and their licences.\n\n${rule}\n${texts.join(`\n${rule}\n`)}`);
await build({ ...OPTIONS, entryPoints: ["src/theme.js"], outfile: `${STATIC}/theme.js` });
console.log(`${STATIC}/pages.js: ${(result.outputFiles[0].contents.length / 1000).toFixed(0)} kB, ${used.length} packages`);
