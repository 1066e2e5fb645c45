import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { idIn, sessionIdOf } from '../../../src/tls/session-id.ts';

/** One element of DER, with its length in as many bytes as it takes. */
function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const long = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...long]), content]);
}

function integer(...bytes: readonly number[]): Buffer {
  return element(0x02, Buffer.from(bytes));
}

/** A session as OpenSSL writes it: version, protocol, cipher, identifier, and much that is not looked at. */
function session(id: Uint8Array, rest: Uint8Array): Buffer {
  const parts = [
    integer(1),
    integer(3, 3),
    element(0x04, Buffer.from([0xc0, 0x2b])),
    element(0x04, Buffer.from(id)),
    Buffer.from(rest),
  ];
  return element(0x30, Buffer.concat(parts));
}

test('the identifier of a session is found, whatever follows it and however long the session is', () => {
  const sizes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.uint8Array({ minLength: 130, maxLength: 200, size: 'max' }),
    fc.uint8Array({ minLength: 300, maxLength: 600, size: 'max' }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 32 }), sizes, (id, rest) => {
      assert.equal(idIn(session(id, rest)), Buffer.from(id).toString('hex'));
    }),
  );
});

test('what is no session, or is cut off before the end of the identifier, has none', () => {
  const whole = session(Buffer.alloc(32, 7), Buffer.alloc(0));
  for (let length = 0; length < whole.length; length++) assert.equal(idIn(whole.subarray(0, length)), '', `${length}`);
  assert.equal(idIn(session(Buffer.alloc(33, 7), Buffer.alloc(0))), '', 'longer than identifiers are');
  const wrapped = Buffer.concat([Buffer.from('\0nodejs'), whole]);
  assert.equal(idIn(wrapped), '');
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => /^([0-9a-f]{2}){0,32}$/.test(idIn(Buffer.from(bytes)))),
  );
});

test('what stands in place of the parts of a session is none', () => {
  const [version, protocol] = [integer(1), integer(3, 3)];
  const cipher = element(0x04, Buffer.from([0xc0, 0x2b]));
  for (const parts of [
    [],
    [version],
    [version, protocol],
    [version, protocol, cipher],
    [version, version, version, cipher],
  ]) {
    assert.equal(idIn(element(0x30, Buffer.concat(parts))), '', `${parts.length} parts`);
  }
});

test('a socket is asked for its session unless it speaks TLS 1.3, if it can tell one', () => {
  const own = session(Buffer.alloc(32, 7), Buffer.alloc(0));
  const idOf = (version: string, handle: object | null): string =>
    sessionIdOf({ getProtocol: () => version, _handle: handle } as unknown as TLSSocket);
  assert.equal(idOf('TLSv1.2', { getSession: () => own }), '07'.repeat(32));
  assert.equal(idOf('TLSv1.2', { getSession: () => undefined }), '');
  assert.equal(idOf('TLSv1.2', {}), '');
  assert.equal(idOf('TLSv1.2', null), '');
  assert.equal(idOf('TLSv1.3', { getSession: () => assert.fail('asked') }), '');
});
