// The table that tells which line of our source a place in a bundle comes from. A source map tells it too, but must be
// parsed and decoded as a whole, tens of milliseconds for a bundle; this is read as it is. Packages are left out.
//
//   JSON array of source files, relative to the package, and a line feed
//   then little-endian i32 in fours, in order of the first two: line and column in the bundle, file, line in the source
//
// Lines and columns count from 1, as V8 reports them. The reader is src/log/line-table.ts.

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
 * @param map     source map, parsed
 * @param folder  that its sources are relative to
 * @param root    folder of the package
 */
export function lineTable(map, folder, root) {
  const files = map.sources.map((source) =>
    path.relative(root, path.resolve(folder, source)).replaceAll(path.sep, '/'),
  );
  const rows = [];
  let [lastFile, lastLine] = [-1, -1];
  for (const [line, column, source, sourceLine] of mappings(map.mappings)) {
    // Inside of a package the last row of ours goes on, which does no harm: no package calls our log.
    if (files[source].includes('node_modules/') || (source === lastFile && sourceLine === lastLine)) continue;
    rows.push(line + 1, column + 1, source, sourceLine + 1);
    [lastFile, lastLine] = [source, sourceLine];
  }
  const table = Buffer.alloc(rows.length * 4);
  for (const [index, value] of rows.entries()) table.writeInt32LE(value, index * 4);
  return Buffer.concat([Buffer.from(`${JSON.stringify(files)}\n`), table]);
}
