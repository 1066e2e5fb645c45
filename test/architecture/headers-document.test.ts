// docs/headers.md is of use only as long as it lists the headers that there are.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ProxyHeaders } from '../../src/data-plane/http/proxy-headers.ts';
import { HEADER_ID, PreparedLines } from '../../src/wasm/http1.ts';

const DOCUMENT = new URL('../../docs/headers.md', import.meta.url);

function written(): string[] {
  return Object.values(new ProxyHeaders()).map((name: string | PreparedLines) =>
    name instanceof PreparedLines ? name.text.slice(0, name.text.indexOf(':')) : name,
  );
}

test('the document of headers lists all that are understood or written, and no others', () => {
  const understood = Object.keys(HEADER_ID).filter((name) => name.startsWith('x-proxy-'));
  const listed = readFileSync(DOCUMENT, 'utf8').match(/`x-proxy-[a-z0-9-]*[a-z0-9]`/g)!;
  assert.deepEqual(
    [...new Set(listed.map((name) => name.slice(1, -1)))].toSorted(),
    [...new Set([...understood, ...written()])].toSorted(),
  );
});
