// Which listener owns an address: the one that has it, else the one that has the port of all addresses.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { IpAddress } from '../../../../src/base/address.ts';
import { ListenersByAddress } from '../../../../src/data-plane/listener/listeners-by-address.ts';

const at = (ip: string, fields: Partial<IpAddress> = {}): IpAddress => ({ kind: 'ip', ip, port: 0, ...fields });

describe('the owner of an address', () => {
  it('has the very address and port, else any address of the family with the port', () => {
    const listeners = new ListenersByAddress<string>();
    listeners.add('exact', [at('10.0.0.1'), at('fd00::1')], [80, 81]);
    listeners.add('any v4', [at('0.0.0.0')], [80]);
    listeners.add('any v6', [at('::')], [81]);
    const owner = (ip: string, port: number) => listeners.ownerOf({ ip, port });
    assert.equal(owner('10.0.0.1', 80), 'exact');
    assert.equal(owner('10.0.0.2', 80), 'any v4');
    assert.equal(owner('10.0.0.1', 81), undefined);
    assert.equal(owner('fd00::1', 81), 'exact');
    assert.equal(owner('fd00::2', 81), 'any v6');
    assert.equal(owner('fd00::1', 80), undefined);
  });

  it('has all IPv4 addresses, too, where it listens on IPv6 for them', () => {
    const listeners = new ListenersByAddress<string>();
    listeners.add('both', [at('::', { acceptsIpv4: true })], [80]);
    assert.equal(listeners.ownerOf({ ip: '10.0.0.1', port: 80 }), 'both');
    assert.equal(listeners.ownerOf({ ip: 'fd00::1', port: 80 }), 'both');
    // No IPv4 address comes to a single one.
    listeners.add('one', [at('fd00::1', { acceptsIpv4: true })], [81]);
    assert.equal(listeners.ownerOf({ ip: '10.0.0.1', port: 81 }), undefined);
  });

  it('is found by no pipe, and by nothing once it has gone; a successor stays', () => {
    const listeners = new ListenersByAddress<string>();
    listeners.add('old', [at('10.0.0.1'), { kind: 'pipe', path: '/a', mode: 0 }, at('10.0.0.2')], [80, 0, 80]);
    listeners.add('new', [at('10.0.0.1')], [80]);
    listeners.remove('old');
    assert.equal(listeners.ownerOf({ ip: '10.0.0.1', port: 80 }), 'new');
    assert.equal(listeners.ownerOf({ ip: '10.0.0.2', port: 80 }), undefined);
  });
});
