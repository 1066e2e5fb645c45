import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { describe, it } from 'node:test';
import { BUILDS, TestHeads } from '../../support/http2-heads.ts';

describe('the head of a response that came by HTTP/2', () => {
  for (const build of BUILDS) {
    it(`has the reason phrase that HTTP/1 has for its status, or none (${build})`, () => {
      const heads = new TestHeads(build);
      for (let status = 200; status < 1000; status += 1) {
        const read = heads.response([
          [':status', String(status)],
          ['a', 'b'],
        ]);
        const reason = heads.codec.response.reason();
        assert.deepEqual([read, reason], [[String(status), 'a: b'], STATUS_CODES[status] ?? '']);
      }
    });
  }
});
