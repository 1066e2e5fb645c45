// The licences of what bundles and the addon are made of, in one text: who gets those gets no packages that would bring them.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Beside those that the program's bundles have in them: the page's, the addon's, and what that is built from. */
const OTHERS = ['uplot', 're2', 're2/vendor/re2', 're2/vendor/abseil-cpp'];

/** @param inputs paths of bundled files, relative to the package. */
export function licenceText(inputs, root) {
  const packages = inputs.flatMap((input) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []);
  const names = [...new Set([...packages, ...OTHERS])].sort();
  const texts = names.map((name) => {
    const folder = path.join(root, 'node_modules', name);
    const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice)/i.test(file));
    const manifest = path.join(folder, 'package.json');
    const { version = '', license = '' } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')) : {};
    if (files.length === 0 && license === '') throw new Error(`${name} has no licence`);
    const head = `${name} ${version}${license === '' ? '' : ` (${license})`}`.trim();
    return [
      head,
      '='.repeat(head.length),
      ...files.map((file) => readFileSync(path.join(folder, file), 'utf8').trim()),
    ].join('\n\n');
  });
  return `${texts.join('\n\n\n')}\n`;
}
