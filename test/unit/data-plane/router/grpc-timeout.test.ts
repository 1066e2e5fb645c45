// What a gRPC request says of its time: read, bounded by the route, and written for the upstream.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  grpcStreamDurationMs,
  grpcTimeoutMs,
  namesGrpcTimeout,
  writeGrpcTimeout,
} from '../../../../src/data-plane/router/grpc-timeout.ts';
import { requestHead, writtenLines } from '../../../support/heads.ts';

const UNBOUNDED = { maxMs: 0, offsetMs: 0 };

function read(text: string, settings = UNBOUNDED): number {
  return grpcTimeoutMs(requestHead('POST /', `grpc-timeout: ${text}`), settings);
}

function written(ms: number, ...lines: readonly string[]): string[] {
  writeGrpcTimeout(requestHead('POST /', ...lines), ms);
  return writtenLines().slice(2);
}

describe('the timeout of a gRPC request', () => {
  for (const [text, ms] of [
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['4S', 4000],
    ['250m', 250],
    ['1u', 1],
    ['2500u', 3],
    ['1n', 1],
    ['1000001n', 2],
    ['12345678m', 12_345_678],
    [' 5m ', 5],
    // Nothing of these is one.
    ['123456789m', 0],
    ['0m', 0],
    ['5', 0],
    ['m', 0],
    ['5s', 0],
    ['5 m', 0],
    ['-5m', 0],
    ['x5m', 0],
    ['5mm', 0],
    ['', 0],
  ] as const) {
    test(`of ${JSON.stringify(text)} is ${ms} ms`, () => {
      assert.equal(read(text), ms);
    });
  }

  test('is none where it is not there', () => {
    assert.equal(grpcTimeoutMs(requestHead('POST /'), UNBOUNDED), 0);
    assert.equal(grpcTimeoutMs(requestHead('POST /'), { maxMs: 700, offsetMs: 0 }), 700);
  });

  test('is at most what the route allows', () => {
    assert.deepEqual(
      ['699m', '700m', '701m', '0m'].map((text) => read(text, { maxMs: 700, offsetMs: 0 })),
      [699, 700, 700, 700],
    );
  });

  test('is shortened by the offset, as long as anything is left', () => {
    assert.deepEqual(
      ['99m', '100m', '101m', '500m'].map((text) => read(text, { maxMs: 0, offsetMs: 100 })),
      [99, 100, 1, 400],
    );
    assert.equal(read('500m', { maxMs: 300, offsetMs: 100 }), 300);
    assert.equal(read('500m', { maxMs: 450, offsetMs: 100 }), 400);
  });
});

test('the stream of a gRPC request lasts what it names, up to a bound, without the offset, and ends at once where nothing is left', () => {
  const cases: readonly [string, number, number, number][] = [
    ['500m', 0, 0, 500],
    ['500m', 400, 0, 400],
    ['500m', 0, 100, 400],
    // The bound counts first, other than with responses.
    ['500m', 450, 100, 350],
    ['99m', 0, 100, 1],
    ['100m', 0, 100, 1],
    ['0m', 0, 0, 1],
    ['0m', 700, 0, 1],
  ];
  for (const [text, maxMs, offsetMs, ms] of cases) {
    const head = requestHead('POST /', `grpc-timeout: ${text}`);
    assert.equal(grpcStreamDurationMs(head, { maxMs, offsetMs }), ms, `${text}, ${maxMs} at most, less ${offsetMs}`);
  }
});

test('a gRPC request names a time only in the form that there is for it', () => {
  const lines = ['grpc-timeout: 5m', 'grpc-timeout: 0m', 'grpc-timeout: 5', 'grpc-timeout: ', 'a: 5m'];
  assert.deepEqual(
    lines.map((line) => namesGrpcTimeout(requestHead('POST /', line))),
    [true, true, false, false, false],
  );
});

describe('what an upstream is told of it', () => {
  test('takes the place of what the client has said', () => {
    assert.deepEqual(written(250), ['grpc-timeout: 250m']);
    assert.deepEqual(written(250, 'grpc-timeout: 1S', 'a: 1'), ['a: 1', 'grpc-timeout: 250m']);
  });

  test('has no more digits than there may be', () => {
    assert.deepEqual(written(99_999_999), ['grpc-timeout: 99999999m']);
    assert.deepEqual(written(100_000_000), ['grpc-timeout: 100000S']);
    assert.deepEqual(written(100_000_999), ['grpc-timeout: 100000S']);
    assert.deepEqual(written(1e15), ['grpc-timeout: 99999999S']);
  });

  test('is read as the same by the next proxy, to a second at least', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99_999_999_000 }), (ms) => {
        const [line] = written(ms);
        const other = read(line!.slice('grpc-timeout: '.length));
        assert.ok(other === ms || (ms > 99_999_999 && other <= ms && other > ms - 1000));
      }),
    );
  });
});
