// Bundles the page of the admin interface (src/page/, with uPlot) to build/page/: one script and one style with a hash of their
// contents in their names, and a manifest that says which they are. With `--define admin_html=disabled` the manifest says that
// there are none. `--out` names another folder.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const outAt = process.argv.indexOf('--out');
const folder = outAt < 0 ? path.join(root, 'build', 'page') : path.resolve(process.argv[outAt + 1]);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

async function bundle() {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['src/page/page.ts', 'src/page/page.css'],
    outdir: folder,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    charset: 'utf8',
    legalComments: 'inline',
    write: false,
    logLevel: 'warning',
  });
  const manifest = {};
  for (const { path: file, contents } of outputFiles) {
    writeFileSync(file, contents);
    manifest[file.endsWith('.js') ? 'script' : 'style'] = path.basename(file);
  }
  return manifest;
}

const isDisabled = process.argv.includes('admin_html=disabled');
writeFileSync(path.join(folder, 'manifest.json'), JSON.stringify(isDisabled ? null : await bundle()));
