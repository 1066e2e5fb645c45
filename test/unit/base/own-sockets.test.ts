// Sockets that begin with system calls: what Node takes over is bound and has its options, and nothing is left of one that
// has failed.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, it } from 'node:test';
import {
  beginConnection,
  type ConnectionOrigin,
  checkSystemCalls,
  needsSystemCalls,
  openSocket,
  type SocketSource,
} from '../../../src/base/own-sockets.ts';
import { SystemCalls } from '../../../src/base/system-calls.ts';
import { socketOption } from '../../support/socket-option.ts';

const calls = SystemCalls.open()!;
const IP_TTL = { level: 0, name: 2, value: 7 };
const SO_RCVBUF = { level: 1, name: 8, value: 4096 };
const IP_FREEBIND = { level: 0, name: 15, value: 1 };
const IPV6_UNICAST_HOPS = { level: 41, name: 16, value: 9 };
const PLAIN: SocketSource = { address: undefined, beforeBind: [], afterBind: [] };
/** Of nobody. */
const STRANGE = { kind: 'ip', ip: '192.0.2.7', port: 0 } as const;

const at = (ip: string): NonNullable<SocketSource['address']> => ({ kind: 'ip', ip, port: 0 });
const descriptorCount = (): number => readdirSync('/proc/self/fd').length;

function both(source: Partial<SocketSource>): ConnectionOrigin {
  const whole = { ...PLAIN, ...source };
  return { sourceAddress: undefined, sourcesByFamily: { v4: whole, v6: whole } };
}

describe('a connection that begins with options', () => {
  for (const { ip, source, option } of [
    { ip: '127.0.0.1', source: '127.0.0.9', option: IP_TTL },
    { ip: '::1', source: '::1', option: IPV6_UNICAST_HOPS },
  ]) {
    it(`has them, and its address, when Node has connected it to ${ip}`, async (t) => {
      const server = createServer().listen(0, ip);
      await once(server, 'listening');
      t.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      const begun = beginConnection(
        ip,
        both({ address: at(source), beforeBind: [option], afterBind: [SO_RCVBUF] }),
        calls,
      );
      assert.ok('fd' in begun);
      const socket = connect({ host: ip, port, ...begun });
      const [accepted] = await once(server, 'connection');
      await once(socket, 'connect');
      assert.equal(accepted.remoteAddress, source);
      assert.equal(socketOption(begun.fd, option.level, option.name), option.value);
      // Linux doubles it.
      assert.equal(socketOption(begun.fd, SO_RCVBUF.level, SO_RCVBUF.name), 2 * SO_RCVBUF.value);
      socket.write('question');
      const [bytes] = await once(accepted, 'data');
      assert.equal(String(bytes), 'question');
      accepted.destroy();
      socket.destroy();
      await once(socket, 'close');
    });
  }

  it('takes bytes as well as numbers', () => {
    const value = Buffer.alloc(4);
    value.writeInt32LE(5);
    const source = { ...PLAIN, beforeBind: [{ ...IP_TTL, value: value.toString('hex') }] };
    const descriptor = openSocket(calls, 'v4', source);
    assert.equal(socketOption(descriptor, IP_TTL.level, IP_TTL.name), 5);
    calls.close(descriptor);
  });

  it('sets what has to be set before it is bound before that', () => {
    const freely = { ...PLAIN, address: STRANGE, beforeBind: [IP_FREEBIND] };
    calls.close(openSocket(calls, 'v4', freely));
    const tooLate = { ...PLAIN, address: STRANGE, afterBind: [IP_FREEBIND] };
    assert.throws(() => openSocket(calls, 'v4', tooLate), { code: 'EADDRNOTAVAIL', syscall: 'bind' });
  });

  for (const [what, source, expected] of [
    ['an option', { beforeBind: [{ level: 6, name: 9999, value: 1 }] }, { code: 'ENOPROTOOPT', syscall: 'setsockopt' }],
    ['its address', { address: STRANGE, beforeBind: [IP_TTL] }, { code: 'EADDRNOTAVAIL', syscall: 'bind' }],
    ['an address of the other family', { address: at('::1'), beforeBind: [IP_TTL] }, { syscall: 'bind' }],
  ] as const) {
    it(`fails with ${what}, and leaves no descriptor`, () => {
      const before = descriptorCount();
      for (let n = 0; n < 3; n++) assert.throws(() => beginConnection('127.0.0.1', both(source), calls), expected);
      assert.equal(descriptorCount(), before);
    });
  }

  it('needs system calls, and nothing else does', () => {
    const withOption = both({ beforeBind: [IP_TTL] });
    assert.ok(needsSystemCalls(withOption));
    assert.ok(needsSystemCalls(both({ afterBind: [IP_TTL] })));
    assert.ok(!needsSystemCalls(both({ address: at('127.0.0.9') })));
    assert.ok(!needsSystemCalls({ sourceAddress: at('127.0.0.9') }));
    assert.throws(() => beginConnection('127.0.0.1', withOption, undefined), { code: 'WEIR_SOCKET_OPTIONS' });
    assert.throws(
      () => checkSystemCalls('cluster web', undefined),
      /^WeirError: cluster web has socket options, which need/,
    );
  });
});

describe('a connection without options', () => {
  it('is left to Node', () => {
    assert.deepEqual(beginConnection('127.0.0.1', { sourceAddress: undefined }, undefined), {});
    const expected = { localAddress: '127.0.0.9', localPort: 0 };
    assert.deepEqual(beginConnection('127.0.0.1', { sourceAddress: at('127.0.0.9') }, undefined), expected);
  });

  it('comes from the address of its family', () => {
    const sourcesByFamily = { v4: { ...PLAIN, address: at('127.0.0.9') }, v6: { ...PLAIN, address: at('::1') } };
    const origin = { sourceAddress: undefined, sourcesByFamily };
    assert.deepEqual(beginConnection('127.0.0.1', origin, undefined), { localAddress: '127.0.0.9', localPort: 0 });
    assert.deepEqual(beginConnection('::1', origin, undefined), { localAddress: '::1', localPort: 0 });
  });
});
