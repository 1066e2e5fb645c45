// What makes two tables differ, or never ends, is an error of the connection (RFC 7541 sections 2.3.3, 4.2, 5, 6).

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isCompressionError } from '../../../src/wasm/http2.ts';
import { BUILDS, LIMITS, TestHeads } from '../../support/http2-heads.ts';
import { BROKEN_BLOCKS, SOUND_BLOCKS } from './block-cases.ts';

for (const build of BUILDS) {
  describe(`errors of compression, ${build}`, () => {
    const { heads } = new TestHeads(build);
    const decode = (bytes: readonly number[]): number => {
      const decoder = heads.createDecoder(4096);
      const result = heads.decodeRequest(decoder, Buffer.from(bytes), 0, bytes.length, LIMITS, 1);
      heads.release(decoder);
      return result;
    };
    for (const [what, bytes] of BROKEN_BLOCKS) it(what, () => assert.ok(isCompressionError(decode(bytes))));
    for (const [what, bytes] of SOUND_BLOCKS) it(`none: ${what}`, () => assert.ok(decode(bytes) > 0));
  });
}
