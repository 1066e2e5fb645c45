// What formats are told of the upstream end: the host that was chosen, then the connection that was taken.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Address } from '../../../../src/base/address.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { UpstreamEnd } from '../../../../src/data-plane/upstream/upstream-facts.ts';

const IP: Address = { kind: 'ip', ip: '10.0.0.1', port: 80 };
const PIPE: Address = { kind: 'pipe', path: '/run/web.sock', mode: 0 };

function endOf(address: Address): UpstreamEnd {
  const metadata = { filterMetadata: new Map() } as unknown as Host['metadata'];
  const host = { address, hostname: 'web.example', metadata } as Host;
  const end = new UpstreamEnd(host);
  assert.equal(end.hostname, 'web.example');
  assert.equal(end.metadata, metadata);
  assert.equal(end.protocol, '');
  return end;
}

const ends = ({ remote, local }: UpstreamEnd) => ({
  remote: [remote.ip, remote.port],
  local: [local.ip, local.port],
});

describe('the upstream end', () => {
  test('is the address of the host as long as there is no connection, which may be the path of a pipe', () => {
    assert.deepEqual(ends(endOf(IP)), { remote: ['10.0.0.1', 80], local: ['', 0] });
    assert.deepEqual(ends(endOf(PIPE)), { remote: ['/run/web.sock', 0], local: ['', 0] });
  });

  test('is both ends of the connection that was taken, whatever the address of the host is by now', () => {
    for (const [remoteAddress, remote] of [
      [{ ...IP, port: 81 }, ['10.0.0.1', 81]],
      [PIPE, ['/run/web.sock', 0]],
    ] as const) {
      const end = endOf(IP);
      end.noteConnection({ localEndpoint: { ip: '10.0.0.9', port: 4711 }, remoteAddress, tls: null });
      assert.deepEqual(ends(end), { remote, local: ['10.0.0.9', 4711] });
      assert.equal(end.protocol, '');
    }
  });

  test('speaks what its connection speaks, which another attempt may change', () => {
    const end = endOf(IP);
    const connection = { localEndpoint: { ip: '10.0.0.9', port: 4711 }, remoteAddress: IP, tls: null };
    for (const protocol of ['HTTP/2', 'HTTP/1.1']) {
      end.noteConnection({ ...connection, protocol });
      assert.equal(end.protocol, protocol);
    }
  });
});
