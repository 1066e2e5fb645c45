import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forwardedAddress } from '../../../../src/data-plane/network/peer-address.ts';

describe('the address that others are told of a client', () => {
  it("is this machine's own for a client on it", () => {
    for (const loopback of ['127.0.0.1', '127.9.8.7', '::1']) {
      assert.equal(forwardedAddress(loopback, '192.0.2.7'), '192.0.2.7');
    }
  });

  it("is the client's for all others, for a pipe, and where nobody knows this machine's", () => {
    for (const address of ['192.0.2.1', '12.7.0.1', '2001:db8::1', '']) {
      assert.equal(forwardedAddress(address, '192.0.2.7'), address);
    }
    assert.equal(forwardedAddress('127.0.0.1', ''), '127.0.0.1');
  });
});
