// What tells requests of gRPC from others.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isGrpc } from '../../../../src/data-plane/http/grpc-request.ts';
import { requestHead } from '../../../support/heads.ts';

describe('a gRPC request', () => {
  for (const [type, is] of [
    ['application/grpc', true],
    ['application/grpc+proto', true],
    ['application/grpc-web', false],
    ['application/grpc; charset=x', false],
    ['xapplication/grpc', false],
    ['application/json', false],
  ] as const) {
    test(`is ${is ? '' : 'not '}told by its type ${type}`, () => {
      assert.equal(isGrpc(requestHead('POST /', `content-type: ${type}`)), is);
    });
  }

  test('has a type', () => {
    assert.ok(!isGrpc(requestHead('POST /')));
  });
});
