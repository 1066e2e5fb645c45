// Addresses of peers as headers and rules want them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isInternalAddress, plainAddress } from '../../../../src/data-plane/network/peer-address.ts';

test('private networks and this machine are internal, to their last address', () => {
  const internal = [
    ['10.0.0.0', '10.255.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['127.0.0.1', '127.255.255.255'],
    ['fd00::', 'fdff:ffff::1'],
    ['::1'],
  ].flat();
  const external = [
    ['9.255.255.255', '11.0.0.0'],
    ['172.15.255.255', '172.32.0.0'],
    ['192.167.255.255', '192.169.0.0'],
    ['126.255.255.255', '128.0.0.0'],
    ['fcff::1', 'fe00::1', '::2', '2001:db8::1'],
    ['8.8.8.8', '', 'nonsense'],
  ].flat();
  assert.deepEqual(
    internal.filter((address) => !isInternalAddress(address)),
    [],
  );
  assert.deepEqual(external.filter(isInternalAddress), []);
});

test('an IPv4 address that came through an IPv6 socket is shown as IPv4', () => {
  assert.equal(plainAddress('::ffff:1.2.3.4'), '1.2.3.4');
  for (const address of ['::1', '1.2.3.4', '::ffff:102:304', '64:ff9b::1.2.3.4', '']) {
    assert.equal(plainAddress(address), address);
  }
});
