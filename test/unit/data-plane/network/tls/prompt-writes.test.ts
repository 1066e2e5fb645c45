// What is written to a TLS socket of the proxy, on either side: all of it arrives, in order and whole, memory that is the writer's again may change at
// once, and the end comes last. Real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { SecureVersion } from 'node:tls';
import fc from 'fast-check';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { eventually } from '../../../../support/eventually.ts';
import { securedPair } from '../../../../support/secured-pair.ts';

const KB = 1024;
/** More than the kernel takes of a connection that nobody reads. */
const BULK_BYTES = 16 * KB * KB;
/** Of a record (RFC 8446 section 5.1). */
const ALERT = 21;
const APPLICATION_DATA = 23;
const PREFIX_BYTES = 5;
const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3'];

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

/** What arrives, and whether that was all. */
class Received {
  readonly #chunks: Buffer[] = [];
  length = 0;
  isEnded = false;

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.length += chunk.length;
    });
    socket.on('end', () => {
      this.isEnded = true;
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.bytes.toString('latin1');
  }
}

/** Bytes that differ from place to place. */
function body(length: number, first = 0): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, index) => (first + index * 7) % 251));
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

function eventsOf(socket: Socket): string[] {
  const events: string[] = [];
  for (const event of ['drain', 'finish', 'close']) socket.on(event, () => events.push(event));
  return events;
}

interface Handle {
  readonly writeQueueSize: number;
  readonly bytesWritten: number;
  readStop(): void;
  readStart(): void;
}

function handleOf(socket: Socket): Handle {
  return (socket as unknown as { readonly _handle: Handle })._handle;
}

/** How much Node is given in each write from now on. */
function sizesOfWrites(socket: Socket): number[] {
  const sizes: number[] = [];
  const handle = handleOf(socket) as unknown as Record<string, (request: unknown, written: unknown) => unknown>;
  const lengthOf = (written: unknown): number => (written as string | Buffer).length ?? 0;
  for (const name of ['writeBuffer', 'writeLatin1String', 'writev']) {
    const node = handle[name]!;
    handle[name] = function (request, written, ...rest: unknown[]) {
      const parts = name === 'writev' ? (written as unknown[]).filter((_, index) => index % 2 === 0) : [written];
      sizes.push(parts.reduce<number>((sum, part) => sum + lengthOf(part), 0));
      return Reflect.apply(node, this, [request, written, ...rest]);
    };
  }
  return sizes;
}

/** The kinds of the records that a side has sent. */
function recordsIn(bytes: Buffer): number[] {
  const kinds: number[] = [];
  for (let at = 0; at < bytes.length; at += PREFIX_BYTES + bytes.readUInt16BE(at + 3)) kinds.push(bytes[at]!);
  return kinds;
}

const SIDES = [
  { nearConnects: false, what: 'a client' },
  { nearConnects: true, what: 'an upstream' },
];

for (const [version, { nearConnects, what }] of VERSIONS.flatMap((each) =>
  SIDES.map((side) => [each, side] as const),
)) {
  const versions = { minVersion: version, maxVersion: version, nearConnects };

  describe(`to ${what} over ${version}`, () => {
    test('a write is done in the call, and nobody is told of it later', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      const events = eventsOf(near);
      await turns(20);
      for (const [index, piece] of ['text', body(10_000), Buffer.from('end')].entries()) {
        assert.equal(near.write(piece as string, 'latin1'), true, `write ${index}`);
        assert.equal(near.writableLength, 0);
        await turns(3);
      }
      await eventually(() => received.length === 10_007, 'the bytes');
      assert.equal(received.text, `text${body(10_000).toString('latin1')}end`);
      assert.deepEqual(events, []);
    });

    test('pieces that are gathered leave in one record, in the call', async (t) => {
      const wire: Buffer[] = [];
      const { near, far } = await securedPair(t, certificate, { ...versions, tap: (bytes) => wire.push(bytes) });
      const received = new Received(far);
      near.write('.');
      await eventually(() => received.length === 1, 'what ends the handshake');
      await turns(3);
      wire.length = 0;
      near.cork();
      near.write('head ', 'latin1');
      near.write(Buffer.from('body '));
      near.write('tail', 'latin1');
      near.uncork();
      assert.equal(near.writableLength, 0);
      await eventually(() => received.length === 15, 'the pieces');
      assert.equal(received.text, '.head body tail');
      assert.deepEqual(recordsIn(Buffer.concat(wire)), [APPLICATION_DATA]);
    });

    test('what follows within the turn waits until Node has told of what went before', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      const events = eventsOf(near);
      await turns(20);
      assert.equal(near.write('one '), true);
      assert.equal(near.write('two '), false);
      assert.equal(near.write(Buffer.from('three ')), false);
      assert.equal(near.writableLength, 10);
      await once(near, 'drain');
      assert.equal(near.writableLength, 0);
      near.write('four');
      await eventually(() => received.length === 18, 'the rest');
      assert.equal(received.text, 'one two three four');
      assert.deepEqual(events, ['drain']);
    });

    test('the end comes behind what was written in its turn', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      await turns(20);
      assert.equal(near.write('all'), true);
      near.end();
      await once(near, 'finish');
      await eventually(() => received.isEnded, 'the end');
      assert.equal(received.text, 'all');
      far.end();
      near.resume();
      await once(near, 'close');
    });

    test('the end comes behind what waits', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      await turns(20);
      near.write('one ');
      near.write('two ');
      let isCalled = false;
      near.end('three', () => {
        isCalled = true;
      });
      await eventually(() => received.isEnded, 'the end');
      assert.equal(received.text, 'one two three');
      assert.ok(isCalled);
    });

    test('what the kernel does not take waits, in memory that is not the writer’s until then', async (t) => {
      const { near, far, nearRaw } = await securedPair(t, certificate, versions);
      await turns(20);
      far.pause();
      const written: Buffer[] = [];
      let bytes = body(8 * KB);
      for (;;) {
        written.push(Buffer.from(bytes));
        const isTaken = near.write(bytes);
        assert.equal(isTaken, handleOf(nearRaw).writeQueueSize === 0);
        if (!isTaken) break;
        bytes.fill(0);
        bytes = body(8 * KB, written.length);
        await turns(3);
        assert.ok(written.length * 8 * KB < BULK_BYTES, 'nothing waits');
      }
      assert.ok(near.writableLength > 0);
      const received = new Received(far);
      far.resume();
      await once(near, 'drain');
      assert.equal(near.writableLength, 0);
      near.end();
      await eventually(() => received.isEnded, 'the end');
      assert.ok(received.bytes.equals(Buffer.concat(written)));
    });

    test('more than may be written at once waits, and goes on piece by piece', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      const sizes = sizesOfWrites(near);
      await turns(20);
      assert.equal(near.write(body(600 * KB)), false);
      assert.equal(near.writableLength, 600 * KB);
      await once(near, 'drain');
      assert.equal(near.writableLength, 0);
      near.cork();
      near.write('head ', 'latin1');
      near.write(body(240 * KB));
      near.write('middle ', 'latin1');
      near.write(body(60 * KB));
      near.write('tail', 'latin1');
      near.uncork();
      await once(near, 'drain');
      near.write('t'.repeat(300 * KB), 'latin1');
      await once(near, 'drain');
      near.end();
      await eventually(() => received.isEnded, 'all of it');
      const gathered = ['head ', body(240 * KB), 'middle ', body(60 * KB), 'tail', 't'.repeat(300 * KB)];
      const expected = [body(600 * KB), ...gathered.map((part) => Buffer.from(part as string))];
      assert.ok(received.bytes.equals(Buffer.concat(expected)));
      assert.ok(
        sizes.every((size) => size < 272 * KB),
        `${sizes}`,
      );
      // As many as it takes, and no more.
      assert.equal(sizes.length, 3 + 2 + 2);
    });

    test('what waits when the socket is destroyed is not written, and whoever waits hears of it', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      await turns(20);
      const told: string[] = [];
      const tell = (error?: Error | null): void => void told.push(error ? 'failed' : 'done');
      near.write('one', tell);
      near.write('two', tell);
      near.end('three', tell);
      near.destroy();
      await once(near, 'close');
      await eventually(() => received.isEnded || far.destroyed, 'the end');
      await turns(3);
      assert.deepEqual(told, ['done', 'failed', 'failed']);
      assert.equal(received.text, 'one');
    });

    test('a peer that resets the connection ends what waits', async (t) => {
      const { near, farRaw, far } = await securedPair(t, certificate, versions);
      await turns(20);
      far.pause();
      while (near.write(body(64 * KB))) await turns(2);
      near.end();
      const failed = once(near, 'error');
      farRaw.resetAndDestroy();
      const [error] = (await failed) as [NodeJS.ErrnoException];
      assert.match(error.code!, /^(ECONNRESET|EPIPE)$/);
      await eventually(() => near.destroyed, 'the close');
    });

    test('what is written when the handshake is just done arrives', async (t) => {
      const taken: boolean[] = [];
      const { far } = await securedPair(t, certificate, {
        ...versions,
        onSecure: (near) => {
          taken.push(near.write('at once '));
          near.write('and then', 'latin1');
        },
      });
      const received = new Received(far);
      await eventually(() => received.length === 16, 'both');
      assert.equal(received.text, 'at once and then');
      // What the handshake sends last is still on its way, or not even made.
      assert.deepEqual(taken, [false]);
    });

    test('where Node does not say what has left, a write is done when Node tells of it', async (t) => {
      const { near, far } = await securedPair(t, certificate, versions);
      const received = new Received(far);
      await turns(20);
      Object.defineProperty(handleOf(near), 'writeQueueSize', { value: undefined });
      assert.equal(near.write('one '), false);
      await once(near, 'drain');
      assert.equal(near.write('two'), false);
      near.end();
      await eventually(() => received.isEnded, 'the end');
      assert.equal(received.text, 'one two');
    });

    test('whatever is written in whatever order arrives in that order, and once', async () => {
      const step = fc.oneof(
        fc.record({ kind: fc.constant('text' as const), length: fc.integer({ min: 0, max: 3000 }) }),
        fc.record({ kind: fc.constant('bytes' as const), length: fc.integer({ min: 0, max: 200_000 }) }),
        fc.record({ kind: fc.constantFrom('cork', 'uncork', 'turn', 'pause', 'resume', 'drain') }),
      );
      const ends: { after: (end: () => void) => void; run: () => void } = (() => {
        const all: (() => void)[] = [];
        return { after: (end) => void all.push(end), run: () => all.splice(0).forEach((end) => void end()) };
      })();
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const { near, far } = await securedPair(ends as unknown as TestContext, certificate, versions);
          const received = new Received(far);
          const expected: Buffer[] = [];
          for (const one of steps) {
            if (one.kind === 'text') {
              const text = body((one as { length: number }).length, expected.length);
              expected.push(text);
              near.write(text.toString('latin1'), 'latin1');
            } else if (one.kind === 'bytes') {
              const bytes = body((one as { length: number }).length, expected.length);
              expected.push(Buffer.from(bytes));
              if (near.write(bytes)) bytes.fill(0);
            } else if (one.kind === 'cork') near.cork();
            else if (one.kind === 'uncork') near.uncork();
            else if (one.kind === 'pause') far.pause();
            else if (one.kind === 'resume') far.resume();
            else if (one.kind === 'turn') await turns(1);
            else if (near.writableNeedDrain && near.writableCorked === 0 && !far.isPaused()) await once(near, 'drain');
          }
          near.end();
          far.resume();
          await eventually(() => received.isEnded, 'the end');
          assert.ok(received.bytes.equals(Buffer.concat(expected)));
          ends.run();
        }),
        { numRuns: 30 },
      );
    });
  });
}

test('the alert of the end is the last record, also behind what was written in its turn', async (t) => {
  const wire: Buffer[] = [];
  const { near, far } = await securedPair(t, certificate, {
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.2',
    tap: (bytes) => wire.push(bytes),
  });
  const received = new Received(far);
  await turns(20);
  near.write('x');
  near.end();
  await eventually(() => received.isEnded, 'the end');
  assert.deepEqual(recordsIn(Buffer.concat(wire)).slice(-2), [APPLICATION_DATA, ALERT]);
});

test('a client that changes its keys meanwhile gets all', async (t) => {
  const { near, far } = await securedPair(t, certificate, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' });
  const received = new Received(far);
  await turns(20);
  let isRenegotiated = false;
  far.renegotiate({ rejectUnauthorized: false }, (error) => {
    assert.equal(error, null);
    isRenegotiated = true;
  });
  const written: Buffer[] = [];
  for (let round = 0; !isRenegotiated || round < 50; round++) {
    const bytes = body(5000, round);
    written.push(Buffer.from(bytes));
    if (near.write(bytes)) bytes.fill(0);
    await turns(1);
  }
  near.end();
  await eventually(() => received.isEnded, 'the end');
  assert.ok(received.bytes.equals(Buffer.concat(written)));
});

test('what is written while a client changes its keys and does not go on waits for it', async (t) => {
  const { near, far, nearRaw } = await securedPair(t, certificate, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' });
  const received = new Received(far);
  await turns(20);
  handleOf(far).readStop();
  const { bytesWritten } = handleOf(nearRaw);
  far.renegotiate({ rejectUnauthorized: false }, () => {});
  await eventually(() => handleOf(nearRaw).bytesWritten > bytesWritten, 'the answer to the first message');
  await turns(20);
  assert.equal(near.write('late'), false);
  assert.equal(near.writableLength, 4);
  handleOf(far).readStart();
  await once(near, 'drain');
  await eventually(() => received.text === 'late', 'the bytes');
});
