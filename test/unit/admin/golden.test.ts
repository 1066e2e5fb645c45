// Whole responses of the admin interface. Each folder of test/golden/admin holds a request and the response to it;
// UPDATE_GOLDEN=1 writes the responses anew, for a person to read the difference.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { startAdmin } from './fixture.ts';

const FOLDER = path.join(PACKAGE_ROOT, 'test', 'golden', 'admin');

/** Headers that every response or its framing has anew. */
const VOLATILE = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length']);

describe('the admin interface answers as recorded:', () => {
  for (const name of readdirSync(FOLDER)) {
    it(name, async () => {
      await using server = await startAdmin();
      const actual = await exchange(server.url, readFileSync(path.join(FOLDER, name, 'request.txt'), 'utf8'));
      const file = path.join(FOLDER, name, 'response.txt');
      if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, actual);
      assert.ok(existsSync(file), `${file} is missing: run with UPDATE_GOLDEN=1`);
      assert.equal(actual, readFileSync(file, 'utf8'));
    });
  }
});

/** @param input request line, headers, an empty line and the body. */
async function exchange(url: string, input: string): Promise<string> {
  const [head = '', body = ''] = input.split('\n\n');
  const [line = '', ...headerLines] = head.trim().split('\n');
  const [method = '', target = ''] = line.split(' ');
  const headers = Object.fromEntries(headerLines.map((header) => header.split(': ') as [string, string]));
  const sent = request(url + target, { method, headers, agent: false });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const received = Object.entries(response.headers).filter(([name]) => !VOLATILE.has(name));
  const lines = received.sort().map(([name, value]) => `${name}: ${String(value)}\n`);
  return `${response.statusCode} ${response.statusMessage}\n${lines.join('')}\n${await text(response)}`;
}
