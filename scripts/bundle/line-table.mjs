// The table that tells which line of our source a place in a bundle comes from. A source map tells it too, but must be
// parsed and decoded as a whole, tens of milliseconds for a bundle; this is read as it is. Packages are left out.
//
//   JSON { scripts, files, logging }: the files of the bundle, the sources, and those sources of all bundles that write log
//   lines, relative to the package; spaces up to a multiple of four bytes, the last of which is a line feed
//   then little-endian i32 in fives, in order of the first three: script, line and column in it, file, line in the source
//
// Lines and columns count from 1, as V8 reports them. The reader is src/log/line-table.ts. There is one table for all
// files of a bundle, because a thread reads it when it starts: later there may be no descriptor to read it with.

import path from 'node:path';

const DIGITS = new Map([...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].map((c, i) => [c, i]));

/** The numbers of one segment of a source map: base 64 digits of five bits, lowest first, the lowest bit the sign. */
function decodeSegment(segment) {
  const numbers = [];
  let value = 0;
  let shift = 0;
  for (const character of segment) {
    const digit = DIGITS.get(character);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

/** Every place where a mapping begins: [line, column, source, source line], from 0. */
function* mappings(text) {
  let source = 0;
  let sourceLine = 0;
  for (const [line, segments] of text.split(';').entries()) {
    let column = 0;
    for (const segment of segments === '' ? [] : segments.split(',')) {
      const [columnStep, sourceStep = 0, lineStep = 0] = decodeSegment(segment);
      column += columnStep;
      source += sourceStep;
      sourceLine += lineStep;
      yield [line, column, source, sourceLine];
    }
  }
}

/**
 * @param logging sources of all bundles that write log lines
 * @param bundle  of one kind of thread: the path of each script and its source map, parsed
 * @param root    folder of the package
 */
export function lineTable(bundle, root, logging = []) {
  const relative = (file) => path.relative(root, file).replaceAll(path.sep, '/');
  const files = [];
  const rows = [];
  for (const [script, { file: scriptFile, map }] of bundle.entries()) {
    const folder = path.dirname(scriptFile);
    const sources = map.sources.map((source) => relative(path.resolve(folder, source)));
    const firstFile = files.length;
    files.push(...sources);
    let [lastSource, lastLine] = [-1, -1];
    for (const [line, column, source, sourceLine] of mappings(map.mappings)) {
      // Inside of a package the last row of ours goes on, which does no harm: no package calls our log.
      const isOurs = !sources[source].includes('node_modules/');
      if (!isOurs || (source === lastSource && sourceLine === lastLine)) continue;
      rows.push(script, line + 1, column + 1, firstFile + source, sourceLine + 1);
      [lastSource, lastLine] = [source, sourceLine];
    }
  }
  const table = Buffer.alloc(rows.length * 4);
  for (const [index, value] of rows.entries()) table.writeInt32LE(value, index * 4);
  const names = Buffer.from(JSON.stringify({ scripts: bundle.map(({ file }) => relative(file)), files, logging }));
  const padding = ' '.repeat(3 - (names.length % 4));
  return Buffer.concat([names, Buffer.from(`${padding}\n`), table]);
}
