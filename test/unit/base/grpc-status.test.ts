// Status codes of gRPC as texts, as names and as statuses of HTTP.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  GrpcStatus,
  grpcMessage,
  grpcStatusName,
  grpcStatusOfHttp,
  httpStatusOfGrpc,
  INVALID_GRPC_STATUS,
  readGrpcStatus,
} from '../../../src/base/grpc-status.ts';

describe('a status of gRPC', () => {
  test('stands for one of HTTP', () => {
    const codes = Object.values(GrpcStatus).map(httpStatusOfGrpc);
    assert.deepEqual(codes, [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401]);
    assert.deepEqual([17, INVALID_GRPC_STATUS].map(httpStatusOfGrpc), [500, 500]);
  });

  test('is what a client makes of an HTTP status', () => {
    const statuses = [400, 401, 403, 404, 429, 502, 503, 504, 200, 302, 413, 500];
    assert.deepEqual(statuses.map(grpcStatusOfHttp), [13, 16, 7, 12, 14, 14, 14, 14, 2, 2, 2, 2]);
  });

  test('is read from digits alone', () => {
    assert.deepEqual(['0', '16', '4711', '007'].map(readGrpcStatus), [0, 16, 4711, 7]);
    for (const text of ['', ' ', '-1', '1.0', '0x1', '1e3', '1, 2', 'OK', '1234567890']) {
      assert.equal(readGrpcStatus(text), INVALID_GRPC_STATUS, text);
    }
  });

  test('has a name in two styles, or is its number', () => {
    const names = [0, 1, 8, 14, 17, -1].map((status) => [
      grpcStatusName(status, 'camel'),
      grpcStatusName(status, 'snake'),
    ]);
    assert.deepEqual(names, [
      ['OK', 'OK'],
      ['Canceled', 'CANCELLED'],
      ['ResourceExhausted', 'RESOURCE_EXHAUSTED'],
      ['Unavailable', 'UNAVAILABLE'],
      ['17', '17'],
      ['-1', '-1'],
    ]);
  });
});

describe('a message of gRPC', () => {
  test('keeps what is printable and encodes the rest', () => {
    assert.equal(grpcMessage('no healthy upstream'), 'no healthy upstream');
    assert.equal(grpcMessage('100%\r\n\u00e9~\x7f'), '100%25%0D%0A%C3%A9~%7F');
  });

  test('of any text can stand in a header and be read again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        const written = grpcMessage(text);
        assert.match(written, /^[ -~]*$/);
        assert.equal(decodeURIComponent(written), text);
      }),
    );
  });

  test('is cut between two characters when it is long', () => {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const text = before + '\u{1f600}'.repeat(2000);
      const read = decodeURIComponent(grpcMessage(text));
      assert.ok(text.startsWith(read));
      assert.ok(Buffer.byteLength(read) > 4092 && Buffer.byteLength(read) <= 4096);
    }
  });
});
