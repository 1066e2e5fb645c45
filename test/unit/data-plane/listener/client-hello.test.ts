import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import fc from 'fast-check';
import {
  CLIENT_HELLO,
  ClientHelloReader,
  INCOMPLETE,
  MALFORMED,
  NOT_TLS,
  TOO_LARGE,
} from '../../../../src/data-plane/listener/listener-filter/client-hello.ts';
import {
  clientHello,
  extension,
  helloMessage,
  inRecords,
  lengthed,
  protocolsExtension,
  RFC_8448,
  record,
  serverNameExtension,
} from '../../../support/client-hello.ts';

const MAX = 16 * 1024;
const reader = new ClientHelloReader();
const offersReader = new ClientHelloReader(true);

interface Reading {
  readonly name: string;
  readonly protocols: readonly string[];
  readonly length: number;
}

function read(bytes: Buffer, start = 0, end = bytes.length, max = MAX): Reading | number {
  const state = reader.read(bytes, start, end, max);
  if (state !== CLIENT_HELLO) return state;
  return { name: reader.serverName, protocols: reader.applicationProtocols, length: reader.length };
}

/** Whole, behind other bytes and before more; every beginning of it is incomplete, and nothing else. */
function assertRead(hello: Buffer, expected: Reading): void {
  const padded = Buffer.concat([Buffer.from('xx'), hello, Buffer.from('more')]);
  assert.deepEqual(read(padded, 2), expected);
  for (let end = 1; end < hello.length; end += 1) assert.equal(read(hello, 0, end), INCOMPLETE, `${end} bytes`);
}

/** What a client of this Node sends first. */
async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ...options });
  client.on('error', () => {});
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}

describe('a client hello', () => {
  it('is read as RFC 8448 has it', () => {
    assert.equal(RFC_8448.length, 201);
    assertRead(RFC_8448, { name: 'server', protocols: [], length: 201 });
  });

  it('of real clients is read, of each version', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] };
      const hello = await helloOf({ ...options, servername: 'www.Example.com' });
      assertRead(hello, { name: 'www.example.com', protocols: ['h2', 'http/1.1'], length: hello.length });
      const bare = await helloOf({ minVersion: version, maxVersion: version });
      assertRead(bare, { name: '', protocols: [], length: bare.length });
    }
  });

  it('tells what the client offers, to those who look at that', () => {
    assert.equal(offersReader.read(RFC_8448, 0, RFC_8448.length, MAX), CLIENT_HELLO);
    const { offers } = offersReader;
    assert.deepEqual(offers.ciphers, [0x1301, 0x1303, 0x1302]);
    assert.deepEqual(offers.groups.slice(0, 4), [0x001d, 0x0017, 0x0018, 0x0019]);
    assert.deepEqual(offers.signatureAlgorithms.slice(0, 2), [0x0403, 0x0503]);
    assert.deepEqual(offers.versions, [0x0304]);
    assert.ok(!offers.asksForStatus);
    const cut = record(
      helloMessage({ extensions: [extension(5, Buffer.alloc(5)), extension(10, Buffer.from([0, 9, 0]))] }),
    );
    assert.equal(offersReader.read(cut, 0, cut.length, MAX), CLIENT_HELLO);
    assert.deepEqual(offersReader.offers.groups, []);
    assert.ok(offersReader.offers.asksForStatus);
  });

  it('may have no extensions at all, or none that matter', () => {
    for (const parts of [{}, { session: 0 }, { extensions: [extension(0x0a0a, Buffer.alloc(0))] }]) {
      const hello = clientHello(parts);
      assertRead(hello, { name: '', protocols: [], length: hello.length });
    }
  });

  it('says the same in however many records it comes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 40 }),
        fc.stringMatching(/^[a-z0-9.-]{1,255}$/),
        fc.array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 0, max: 300 }),
        (ends, name, protocols, padding) => {
          const extensions = [extension(21, Buffer.alloc(padding))];
          const hello = inRecords(helloMessage({ serverName: name.toUpperCase(), protocols, extensions }), ends);
          assertRead(hello, { name, protocols, length: hello.length });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is none as soon as a further record begins otherwise', () => {
    const first = record(helloMessage().subarray(0, 20));
    for (const [start, state] of [
      [[22], INCOMPLETE],
      [[23], MALFORMED],
      [[22, 3], INCOMPLETE],
      [[22, 2], MALFORMED],
    ] as const) {
      assert.equal(read(Buffer.concat([first, Buffer.from(start)])), state, start.join());
    }
  });

  it('may be followed by more in its last record, which is not its own', () => {
    const message = helloMessage({ serverName: 'a.test' });
    const bytes = record(Buffer.concat([message, Buffer.from('more')]));
    assert.deepEqual(read(bytes), { name: 'a.test', protocols: [], length: 5 + message.length });
  });

  it('is not what begins otherwise, which the first bytes show', () => {
    for (const text of ['GET / HTTP/1.1\r\n', '\x16\x02\x01', '\x80\x2e\x01\x03\x01', '\x17\x03\x03\x00\x01x', '\0']) {
      const bytes = Buffer.from(text, 'latin1');
      assert.equal(read(bytes), NOT_TLS, JSON.stringify(text));
    }
    assert.equal(read(Buffer.from([22])), INCOMPLETE);
  });

  const message = helloMessage({ serverName: 'a.test' });
  const long = Buffer.alloc(256, 'a');
  const broken: readonly (readonly [string, Buffer])[] = [
    ['an empty record', Buffer.concat([record(Buffer.alloc(0)), record(message)])],
    ['an empty record inside', Buffer.concat([record(message.subarray(0, 20)), record(Buffer.alloc(0))])],
    ['another message', record(Buffer.concat([Buffer.from([2]), message.subarray(1)]))],
    ['another record inside', Buffer.concat([record(message.subarray(0, 20)), record(message.subarray(20), 23)])],
    ['another version inside', Buffer.concat([record(message.subarray(0, 20)), Buffer.from([22, 2, 0, 0, 9])])],
    ['a record that is too long', Buffer.from([22, 3, 1, 0x40, 0x01, 1, 0, 0, 50])],
    ['a message that is too short', record(Buffer.from([1, 0, 0, 2, 3, 3]))],
    ['a long session', clientHello({ session: 33 })],
    ['no ciphers', clientHello({ ciphers: 0 })],
    ['half a cipher', clientHello({ ciphers: 3 })],
    ['no compression', clientHello({ compressions: 0 })],
    ['bytes behind the extensions', clientHello({ serverName: 'a.test', tail: Buffer.from([0]) })],
    ['half an extension', clientHello({ extensions: [Buffer.from([0, 23, 0])] })],
    ['an extension beyond the end', clientHello({ extensions: [Buffer.from([0, 23, 0, 1])] })],
    ['an empty server name', clientHello({ serverName: '' })],
    ['a server name with NUL', clientHello({ serverName: 'a.test\0.b.test' })],
    ['a server name with a line feed', clientHello({ serverName: 'a.test\n' })],
    ['a server name with a blank', clientHello({ serverName: 'a .test' })],
    ['a server name beyond ASCII', clientHello({ serverName: 'ä.test' })],
    ['a server name that is too long', clientHello({ serverName: long })],
    ['two server names', clientHello({ extensions: ['a', 'b'].map(serverNameExtension) })],
    ['two names in one list', clientHello({ extensions: [twoNames()] })],
    ['a name of another kind', clientHello({ extensions: [extension(0, lengthed(2, Buffer.from([1, 0, 1, 97])))] })],
    ['a list of names beyond its end', clientHello({ extensions: [extension(0, Buffer.from([0, 9, 0, 0, 1, 97]))] })],
    ['an empty list of names', clientHello({ extensions: [extension(0, Buffer.from([0, 0]))] })],
    ['an empty extension for names', clientHello({ extensions: [extension(0, Buffer.alloc(0))] })],
    ['no protocols', clientHello({ protocols: [] })],
    ['an empty protocol', clientHello({ protocols: ['h2', ''] })],
    ['two lists of protocols', clientHello({ extensions: [['h2'], ['x']].map(protocolsExtension) })],
    ['a protocol beyond its end', clientHello({ extensions: [extension(16, Buffer.from([0, 3, 9, 104, 50]))] })],
    ['a list of protocols beyond its end', clientHello({ extensions: [extension(16, Buffer.from([0, 9, 1, 97]))] })],
  ];

  for (const [what, bytes] of broken) {
    it(`with ${what} is none, however much of it has come`, () => {
      assert.equal(read(bytes), MALFORMED);
      for (let end = 1; end < bytes.length; end += 1)
        assert.ok([INCOMPLETE, MALFORMED].includes(read(bytes, 0, end) as number));
    });
  }

  it('is bounded with all of its records, as soon as it says how long it is', () => {
    const hello = inRecords(helloMessage({ extensions: [extension(21, Buffer.alloc(2000))] }), [500, 1000]);
    const whole = { name: '', protocols: [], length: hello.length };
    assert.deepEqual(read(hello, 0, hello.length, hello.length), whole);
    assert.equal(read(hello, 0, hello.length, hello.length - 1), TOO_LARGE);
    assert.equal(read(hello, 0, 9, 1000), TOO_LARGE);
    const single = clientHello({ serverName: 'a.test' });
    assert.equal(read(single, 0, single.length, single.length - 1), TOO_LARGE);
    assert.equal(read(Buffer.from([22, 3, 1, 0, 200, 1, 0xff, 0xff, 0xff])), TOO_LARGE);
  });

  it('comes in 64 records at most', () => {
    const ends = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
    const most = inRecords(helloMessage({ serverName: 'a.test' }), ends(63));
    assertRead(most, { name: 'a.test', protocols: [], length: most.length });
    assert.equal(read(inRecords(helloMessage({ serverName: 'a.test' }), ends(64))), TOO_LARGE);
  });

  it('of any bytes is one thing, and of no beginning another', () => {
    const extensions = [5, 10, 13, 43].map((type) =>
      extension(type, lengthed(type === 43 ? 1 : 2, Buffer.alloc(4, 3))),
    );
    const base = helloMessage({ serverName: 'a.test', protocols: ['h2'], extensions });
    const mutated = fc
      .array(fc.tuple(fc.nat(base.length + 4), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((changes) => {
        const bytes = record(base);
        for (const [place, value] of changes) bytes[place] = value;
        return bytes;
      });
    const any = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.concat([Buffer.from([22, 3]), bytes]));
    fc.assert(
      fc.property(fc.oneof(mutated, any), (bytes) => {
        const whole = read(bytes);
        // What a client offers beside makes no other message of it.
        const state = offersReader.read(bytes, 0, bytes.length, MAX);
        assert.equal(state, typeof whole === 'number' ? whole : CLIENT_HELLO);
        for (let end = 1; end < bytes.length; end += 7) {
          const early = read(bytes, 0, end);
          if (early !== INCOMPLETE) assert.deepEqual(early, whole);
        }
      }),
      { numRuns: 500 },
    );
  });
});

function twoNames(): Buffer {
  const name = Buffer.concat([Buffer.from([0]), lengthed(2, Buffer.from('a'))]);
  return extension(0, lengthed(2, Buffer.concat([name, name])));
}
