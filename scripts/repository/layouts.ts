// Memory layouts are read by two compilers, so they hold numbers and arithmetic only, and every built module must
// have been compiled from the layout that stands in the tree.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { LAYOUT_UNIT } from '../architecture/rules.ts';
import { readSourceText } from '../architecture/source-text.ts';

/** `export const NAME = <numbers, other names, arithmetic>;` on one line or several. */
const CONSTANT = /^export const [A-Z][A-Z0-9_]* =\s*[\w\s+\-*/()<>&|~.,%]+;$/;
const DATA_SECTION = 11;
/** Modules over one memory have one layout version. */
const LAYOUT_FILES: Readonly<Record<string, string>> = { stats: 'shared-memory', lb: 'shared-memory', http2: 'http1' };
/** Enough for any module's own minimum; nothing is touched. */
const PAGES = 256;

interface Target {
  readonly sharedMemory?: boolean;
}

/** Breaches in the layout sources. */
export async function layoutSourceBreaches(root: string): Promise<string[]> {
  const breaches: string[] = [];
  for (const name of readdirSync(path.join(root, LAYOUT_UNIT))) {
    const file = path.join(root, LAYOUT_UNIT, name);
    const statements = readSourceText(readFileSync(file, 'utf8')).code.split(/(?<=;)/);
    for (const statement of statements.map((part) => part.trim())) {
      if (statement === '' || CONSTANT.test(statement) || statement.startsWith('import ')) continue;
      breaches.push(`${LAYOUT_UNIT}/${name}: more than a number: ${statement.split('\n')[0]}`);
    }
    const constants: Record<string, unknown> = await import(file);
    for (const [constant, value] of Object.entries(constants)) {
      if (!Number.isSafeInteger(value))
        breaches.push(`${LAYOUT_UNIT}/${name}: ${constant} is ${value}, not an integer`);
    }
  }
  return breaches;
}

/** Breaches in the built modules: another layout than the tree's, or static data in a module that shares its memory. */
export async function moduleBreaches(root: string): Promise<string[]> {
  const { targets } = JSON.parse(readFileSync(path.join(root, 'asconfig.json'), 'utf8')) as {
    targets: Record<string, Target>;
  };
  const breaches: string[] = [];
  for (const [name, { sharedMemory = false }] of Object.entries(targets)) {
    const bytes = readFileSync(path.join(root, 'build', 'wasm', `${name}.wasm`));
    if (sharedMemory && sectionsOf(bytes).includes(DATA_SECTION)) {
      breaches.push(`${name}: a module over shared memory holds static data, which every thread would write again`);
    }
    const module = name.split('-')[0]!;
    const layout = LAYOUT_FILES[module] ?? module;
    const { LAYOUT_VERSION } = await import(path.join(root, LAYOUT_UNIT, `${layout}.ts`));
    const built = builtLayoutVersion(bytes, sharedMemory);
    if (built !== LAYOUT_VERSION) breaches.push(`${name}: built for layout ${built}, the tree has ${LAYOUT_VERSION}`);
  }
  return breaches;
}

function builtLayoutVersion(bytes: Uint8Array<ArrayBuffer>, shared: boolean): number {
  const memory = new WebAssembly.Memory(
    shared ? { initial: PAGES, maximum: 65_536, shared } : { initial: PAGES, maximum: PAGES },
  );
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  return (exports.layoutVersion as () => number)();
}

/** Section ids of a binary module, in order: after 8 bytes of header, each is an id and a LEB128 length. */
function sectionsOf(bytes: Uint8Array): number[] {
  const ids: number[] = [];
  let at = 8;
  while (at < bytes.length) {
    ids.push(bytes[at]!);
    let length = 0;
    let shift = 0;
    for (at += 1; ; at += 1, shift += 7) {
      length |= (bytes[at]! & 0x7f) << shift;
      if (bytes[at]! < 0x80) break;
    }
    at += 1 + length;
  }
  return ids;
}
