import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { localAddress } from '../../../src/base/local-address.ts';

function address(family: 'IPv4' | 'IPv6', ip: string, fields: { internal?: boolean; scopeid?: number } = {}) {
  const common = { address: ip, netmask: '', mac: '', cidr: null, internal: false };
  return family === 'IPv4'
    ? { ...common, family, ...fields, scopeid: undefined as never }
    : { ...common, family, scopeid: 0, ...fields };
}

const LO = [address('IPv4', '127.0.0.1', { internal: true }), address('IPv6', '::1', { internal: true })];

describe('the address of this machine', () => {
  it('is the first of the family that others can reach', () => {
    const eth0 = [
      address('IPv6', 'fe80::1', { scopeid: 2 }),
      address('IPv4', '192.0.2.7'),
      address('IPv4', '192.0.2.8'),
      address('IPv6', '2001:db8::7'),
    ];
    assert.equal(
      localAddress('v4', () => ({ lo: LO, eth0 })),
      '192.0.2.7',
    );
    assert.equal(
      localAddress('v6', () => ({ lo: LO, eth0 })),
      '2001:db8::7',
    );
  });

  it('is one of its link before none', () => {
    assert.equal(
      localAddress('v6', () => ({ eth0: [address('IPv6', 'fe80::1', { scopeid: 2 })] })),
      'fe80::1',
    );
  });

  it('is that of loopback without a network', () => {
    assert.equal(
      localAddress('v4', () => ({ lo: LO, gone: undefined })),
      '127.0.0.1',
    );
    assert.equal(
      localAddress('v6', () => ({ lo: LO })),
      '::1',
    );
  });
});
