// What decision trees read of a response and its request.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextHead } from '../../../../src/data-plane/http/text-head.ts';
import { type MatchedResponse, RESPONSE_INPUTS } from '../../../../src/data-plane/matching/response-inputs.ts';
import type { MatchInput } from '../../../../src/snapshot/index.ts';

const REQUEST: Readonly<Record<string, string>> = { ':path': '/a?b=c%20d&e', 'x-a': '1' };
const METADATA = { app: { key: { of: 'it' }, number: 7 } };

const response = {
  head: new TextHead('HTTP/1.1 503 ', 'x-many: 1\r\nX-Many: 2\r\n'),
  status: 503,
  facts: {
    requestHeader: (name: string) => REQUEST[name],
    metadata: (source: string) => (source === 'DYNAMIC' ? METADATA : undefined),
    client: { ip: '10.0.0.1', port: 0 },
    downstream: {
      remote: { ip: '127.0.0.1', port: 7 },
      local: { ip: '127.0.0.1', port: 80 },
      directRemote: { ip: '127.0.0.2', port: 7 },
      requestedServerName: 'a.example',
    },
  },
} as unknown as MatchedResponse;

const read = (input: MatchInput): string | undefined => RESPONSE_INPUTS.text(input)(response);

test('a response has a status, a class of it and headers', () => {
  assert.equal(read({ kind: 'response-status' }), '503');
  assert.equal(read({ kind: 'response-status-class' }), '5xx');
  assert.equal(read({ kind: 'response-header', name: 'x-many' }), '1, 2');
  assert.equal(read({ kind: 'response-header', name: 'x-none' }), undefined);
});

test('its request has headers, a query and what filters have said of it', () => {
  assert.equal(read({ kind: 'request-header', name: 'x-a' }), '1');
  assert.equal(read({ kind: 'query-parameter', name: 'b' }), 'c d');
  assert.equal(read({ kind: 'query-parameter', name: 'none' }), undefined);
  assert.equal(read({ kind: 'dynamic-metadata', namespace: 'app', path: ['key', 'of'] }), 'it');
  assert.equal(read({ kind: 'dynamic-metadata', namespace: 'app', path: ['number'] }), undefined);
  assert.deepEqual(RESPONSE_INPUTS.metadata(response), METADATA);
  assert.equal(read({ kind: 'constant', value: 'ü' }), '\xc3\xbc');
});

test('its client is who the trusted hops say, beside what its connection has', () => {
  assert.equal(read({ kind: 'source-ip' }), '10.0.0.1');
  assert.equal(read({ kind: 'source-type' }), undefined);
  assert.equal(read({ kind: 'direct-source-ip' }), '127.0.0.2');
  assert.equal(read({ kind: 'destination-port' }), '80');
  assert.equal(read({ kind: 'server-name' }), 'a.example');
});
