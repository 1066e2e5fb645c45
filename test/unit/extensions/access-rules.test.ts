import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilterCallbacks, FilterContext } from '../../../src/data-plane/index.ts';
import { compileRule } from '../../../src/extensions/access/rules.ts';
import type { AccessRule } from '../../../src/extensions/access/settings.ts';
import type { RequestHead } from '../../../src/wasm/http1.ts';

/** Whether the rule holds of a request with this path, from a client with this certificate. */
function holds(rule: AccessRule, path: string, tls: object | null): boolean {
  const head = { path: () => path } as RequestHead;
  return compileRule(rule, {} as FilterContext)(head, { connection: { tls } } as unknown as FilterCallbacks);
}

test('a certificate that nobody has verified says nothing of who its client is', () => {
  const peer = { names: { uri: [], dns: ['a.example'] }, subject: 'CN=a' };
  const named: AccessRule = { kind: 'authenticated', name: { kind: 'exact', value: 'a.example', ignoresCase: false } };
  for (const rule of [named, { kind: 'authenticated', name: null } as const]) {
    assert.equal(holds(rule, '/', { peer, isPeerVerified: true }), true);
    assert.equal(holds(rule, '/', { peer, isPeerVerified: false }), false);
    assert.equal(holds(rule, '/', { peer: null, isPeerVerified: true }), false);
  }
});

test('a request without a path has none that fits', () => {
  const rule: AccessRule = { kind: 'path', match: { kind: 'suffix', value: '', ignoresCase: false } };
  assert.deepEqual([holds(rule, '/', null), holds(rule, '', null)], [true, false]);
});
