// JSON answers, read as the messages that they are by a reader of protobuf's own JSON.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import protojson from 'protobufjs/ext/protojson.js';
import { protoSchema } from '../../../src/config/proto/root.ts';
import { startAdmin } from './fixture.ts';

const MESSAGES = [
  ['/certs', 'Certificates'],
  ['/clusters?format=json', 'Clusters'],
  ['/config_dump?include_eds', 'ConfigDump'],
  ['/init_dump', 'UnreadyTargetsDumps'],
  ['/listeners?format=json', 'Listeners'],
  ['/memory', 'Memory'],
  ['/server_info', 'ServerInfo'],
] as const;

/** Without members that say the default, of which the answers print some and the reader none. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, compact(inner)] as const);
  return Object.fromEntries(entries.filter(([, inner]) => !isDefault(inner)).sort());
}

/** Names of enums that the answers print, though they are the first. */
const FIRST_NAMES: readonly unknown[] = ['LIVE', 'v4', 'Serve', 'Gradual'];

function isDefault(value: unknown): boolean {
  if (FIRST_NAMES.includes(value)) return true;
  return (
    value === '' || value === 0 || value === '0' || value === false || (Array.isArray(value) && value.length === 0)
  );
}

/** Names as the answers have them, and numbers of times without zeros at their ends. */
function asAnswered(json: unknown): unknown {
  const text = JSON.stringify(json).replace(/"([a-zA-Z0-9]+)":/g, (_, name: string) => {
    return `"${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}":`;
  });
  return compact(JSON.parse(text.replaceAll('googleapis.com/proxy.', 'googleapis.com/envoy.')));
}

describe('an answer is the message that it should be:', () => {
  for (const [path, name] of MESSAGES) {
    it(`${path} is ${name}`, async () => {
      await using server = await startAdmin();
      const text = await (await fetch(server.url + path)).text();
      const type = protoSchema().messageType(`proxy.admin.v3.${name}`);
      const own = text.replaceAll('googleapis.com/envoy.', 'googleapis.com/proxy.');
      const message = protojson.fromJsonString(type, own);
      assert.deepEqual(compact(asAnswered(protojson.toJson(type, message))), compact(asAnswered(JSON.parse(text))));
    });
  }

  it('and a query of 100 KB is answered like any other', async () => {
    await using server = await startAdmin();
    const long = 'x'.repeat(100_000);
    const asked = [
      [`/config_dump?mask=${long}`, 400],
      [`/config_dump?resource=${long}`, 404],
      [`/config_dump?name_regex=${long}`, 200],
      [`/config_dump?name_regex=(${long}`, 400],
      [`/config_dump?mask=${'version_info,'.repeat(7_500)}`, 200],
      [`/config_dump?mask=${'bootstrap.'.repeat(10_000)}`, 400],
      [`/init_dump?mask=${long}`, 200],
    ] as const;
    for (const [path, status] of asked) {
      const response = await fetch(server.url + path);
      await response.text();
      assert.equal(response.status, status, path.slice(0, 40));
    }
  });
});
