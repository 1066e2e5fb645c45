// What comes over TLS, from clients and upstreams, gets to the owner of the socket: whole, in order, not beyond a stop, and the end
// last. Past the Readable, into memory that is borrowed or the owner's, and by events. Real sockets.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import fc from 'fast-check';
import {
  attachAccepted,
  attachSecured,
  type ReadMode,
  resumeAccepted,
  resumeUpstream,
  type UpstreamSocketOwner,
} from '../../../../../src/data-plane/network/socket-events.ts';
import { securedReadsOf } from '../../../../../src/data-plane/network/tls/secured-reads.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { eventually } from '../../../../support/eventually.ts';
import { type SecuredPair, securedPair } from '../../../../support/secured-pair.ts';

const KB = 1024;
const RECORD_BYTES = 16 * KB;

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

/** Notes what it is told. */
class Owner implements UpstreamSocketOwner {
  readonly events: string[] = [];
  readonly chunks: Buffer[] = [];
  /** What chunks held when they came. */
  readonly copies: Buffer[] = [];
  /** How many more deliveries are welcome. */
  welcome = Number.POSITIVE_INFINITY;
  fault: Error | null = null;
  /** Of an upstream's. */
  readonly memory = Buffer.alloc(64 * KB);

  get bytes(): Buffer {
    return Buffer.concat(this.copies);
  }

  get text(): string {
    return this.bytes.toString('latin1');
  }

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.fault !== null) throw this.fault;
    assert.ok(this.welcome > 0 || this.events.includes('end'), 'bytes in spite of a stop');
    this.chunks.push(chunk.subarray(0, length));
    this.copies.push(Buffer.copyBytesFrom(chunk, 0, length));
    this.events.push('bytes');
    this.welcome -= 1;
    return this.welcome > 0;
  }

  onEnd(): void {
    this.events.push('end');
  }

  onDrain(): void {}

  onClose(error: NodeJS.ErrnoException | null): void {
    this.events.push(`close ${error?.code ?? ''}`.trim());
  }

  onConnect(): void {}

  onSendFailed(): void {}

  readBuffer(): Buffer {
    return this.memory;
  }

  onFault(error: unknown): void {
    this.events.push(`fault: ${(error as Error).message}`);
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

interface Way {
  readonly name: string;
  readonly mode: ReadMode;
  readonly nearConnects: boolean;
  attach(socket: TLSSocket, owner: Owner): void;
  resume(socket: Socket): void;
}

const borrowed = Buffer.alloc(64 * KB);

function ofClient(name: string, mode: ReadMode, memory: Buffer | null): Way {
  return {
    name,
    mode,
    nearConnects: false,
    attach: (socket, owner) =>
      assert.equal(attachAccepted(socket, owner, mode, memory), memory !== null && mode === 'lean'),
    resume: (socket) => resumeAccepted(socket, mode),
  };
}

function ofUpstream(name: string, mode: ReadMode): Way {
  return {
    name,
    mode,
    nearConnects: true,
    attach: (socket, owner) => attachSecured(socket, owner, mode),
    resume: resumeUpstream,
  };
}

const WAYS: readonly Way[] = [
  ofClient('into borrowed memory', 'lean', borrowed),
  ofClient('into memory of its own', 'lean', null),
  ofClient('by events', 'events', null),
  ofUpstream('from an upstream', 'lean'),
  ofUpstream('from an upstream by events', 'events'),
];

for (const { name, mode, nearConnects, attach, resume } of WAYS) {
  async function attached(t: Pick<TestContext, 'after'>): Promise<SecuredPair & { readonly owner: Owner }> {
    const owner = new Owner();
    const pair = await securedPair(t, certificate, { nearConnects, onSecure: (near) => attach(near, owner) });
    return { ...pair, owner };
  }

  describe(`a TLS socket that is read ${name}`, () => {
    test('delivers each record, and the end behind the last one', async (t) => {
      const { near, far, owner } = await attached(t);
      for (const piece of ['one ', 'two ', 'three']) far.write(piece);
      far.end();
      await eventually(() => owner.events.includes('end'), 'the end');
      assert.equal(owner.text, 'one two three');
      assert.equal(owner.events.at(-1), 'end');
      assert.equal(securedReadsOf(near) !== null, mode === 'lean');
      near.end();
      await eventually(() => owner.events.at(-1) === 'close', 'the close');
      assert.equal(owner.events.filter((event) => event === 'end').length, 1);
    });

    test('delivers what comes together with the last word of the handshake', async (t) => {
      const owner = new Owner();
      const { far } = await securedPair(t, certificate, {
        nearConnects,
        onSecure: (near) => attach(near, owner),
        early: 'early',
      });
      far.end(' and late');
      await eventually(() => owner.events.includes('end'), 'the end');
      assert.equal(owner.text, 'early and late');
    });

    test('keeps what comes behind a stop in the same read, and the end, until reading goes on', async (t) => {
      const { near, far, owner } = await attached(t);
      owner.welcome = 1;
      for (const piece of ['one ', 'two ', 'three ']) far.write(piece);
      await eventually(() => owner.events.length > 0, 'the first');
      far.end('four');
      await turns(20);
      assert.deepEqual(owner.events, ['bytes']);
      owner.welcome = Number.POSITIVE_INFINITY;
      resume(near);
      resume(near);
      assert.equal(owner.text, 'one ');
      await eventually(() => owner.events.includes('end'), 'the end');
      resume(near);
      await turns(5);
      assert.equal(owner.text, 'one two three four');
      assert.equal(owner.events.filter((event) => event === 'end').length, 1);
    });

    test('stops again behind what was kept', async (t) => {
      const { near, far, owner } = await attached(t);
      owner.welcome = 1;
      // Two records in one read of the kernel, and one in another.
      far.write(`${'1'.repeat(RECORD_BYTES)}2`);
      await eventually(() => owner.events.length > 0, 'the first');
      await turns(5);
      owner.welcome = 1;
      // Whoever says it twice says it once.
      resume(near);
      resume(near);
      await eventually(() => owner.bytes.length === RECORD_BYTES + 1, 'the second');
      far.end('3');
      await turns(20);
      assert.deepEqual(owner.events, ['bytes', 'bytes']);
      owner.welcome = 1;
      resume(near);
      await eventually(() => owner.bytes.length === RECORD_BYTES + 2, 'the third');
      await turns(20);
      resume(near);
      await eventually(() => owner.events.includes('end'), 'the end');
      assert.deepEqual(owner.events, ['bytes', 'bytes', 'bytes', 'end']);
    });

    test('holds the peer up while it is stopped', async (t) => {
      const { near, far, owner } = await attached(t);
      owner.welcome = 1;
      const bytes = Buffer.alloc(32 * KB * KB, 'x');
      far.write(bytes);
      await eventually(() => owner.events.length > 0, 'the first');
      await turns(200);
      assert.ok(far.writableLength > 0, 'all of it was taken');
      owner.welcome = Number.POSITIVE_INFINITY;
      resume(near);
      far.end();
      await eventually(() => owner.events.includes('end'), 'the end');
      assert.equal(owner.bytes.length, bytes.length);
    });

    if (!nearConnects) {
      test('may change hands, also while it is stopped', async (t) => {
        const { near, far, owner } = await attached(t);
        owner.welcome = 1;
        far.write('one ');
        far.write('two ');
        await eventually(() => owner.events.length > 0, 'the first');
        await turns(5);
        const next = new Owner();
        attach(near, next);
        resume(near);
        far.end('three');
        await eventually(() => next.events.includes('end'), 'the end');
        assert.equal(owner.text, 'one ');
        assert.equal(next.text, 'two three');
      });
    }

    test('is broken off where its owner throws, and nothing more is delivered', async (t) => {
      const { far, owner } = await attached(t);
      owner.fault = new Error('deliberate');
      far.write('one');
      far.write('two');
      await eventually(() => owner.events.some((event) => event.startsWith('close')), 'the close');
      assert.deepEqual(owner.events, ['fault: deliberate', 'close']);
    });

    test('delivers nothing once it is destroyed', async (t) => {
      const { near, far, owner } = await attached(t);
      owner.welcome = 1;
      far.write('one ');
      far.end('two');
      await eventually(() => owner.events.length > 0, 'the first');
      owner.welcome = Number.POSITIVE_INFINITY;
      resume(near);
      near.destroy();
      await eventually(() => owner.events.includes('close'), 'the close');
      await turns(5);
      // Node's own events may bring what was read before.
      if (mode === 'lean') assert.deepEqual(owner.events, ['bytes', 'close']);
      assert.equal(owner.events.at(-1), 'close');
    });

    test('says what has broken the connection, also while it is stopped', async (t) => {
      const { near, far, farRaw, owner } = await attached(t);
      owner.welcome = 1;
      far.write('one');
      await eventually(() => owner.events.length > 0, 'the first');
      farRaw.resetAndDestroy();
      await turns(5);
      resume(near);
      await eventually(() => owner.events.includes('close ECONNRESET'), 'the close');
    });

    test('delivers all, in order, whenever it is stopped', async () => {
      const ends: (() => void)[] = [];
      const scope = { after: (end: () => void) => void ends.push(end) } as unknown as TestContext;
      const records = fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 12 });
      const stops = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(records, stops, async (lengths, welcomes) => {
          const { near, far, owner } = await attached(scope);
          const left = [...welcomes];
          owner.welcome = left.shift() ?? Number.POSITIVE_INFINITY;
          const sent = lengths.map((length, at) =>
            Buffer.from(Uint8Array.from({ length }, (_, index) => (at + index * 7) % 251)),
          );
          for (const bytes of sent) far.write(bytes);
          far.end();
          await eventually(() => {
            if (owner.welcome <= 0) {
              owner.welcome = left.shift() ?? Number.POSITIVE_INFINITY;
              resume(near);
            }
            return owner.events.includes('end');
          }, 'the end');
          assert.ok(owner.bytes.equals(Buffer.concat(sent)));
          assert.equal(owner.events.at(-1), 'end');
          for (const end of ends.splice(0)) end();
        }),
        { numRuns: 30 },
      );
    });
  });
}

test('what is borrowed lies in the memory that was brought, what is kept is nobody else’s', async (t) => {
  for (const memory of [borrowed, null]) {
    const owner = new Owner();
    const { far } = await securedPair(t, certificate, {
      onSecure: (near) => void attachAccepted(near, owner, 'lean', memory),
    });
    for (const piece of ['first', 'other']) {
      far.write(piece);
      await eventually(() => owner.text.endsWith(piece), piece);
    }
    const lying = owner.chunks.map((chunk) => chunk.toString('latin1'));
    assert.deepEqual(lying, memory === null ? ['first', 'other'] : ['other', 'other']);
  }
});

test('an owner that keeps bytes gets them as its own behind one that has borrowed them', async (t) => {
  const [first, second] = [new Owner(), new Owner()];
  const { near, far } = await securedPair(t, certificate, {
    onSecure: (socket) => void attachAccepted(socket, first, 'lean', borrowed),
  });
  far.write('first');
  await eventually(() => first.text === 'first', 'the first');
  assert.equal(attachAccepted(near, second, 'lean'), false);
  for (const piece of ['other', 'third']) {
    far.write(piece);
    await eventually(() => second.text.endsWith(piece), piece);
  }
  assert.deepEqual(second.chunks.map(String), ['other', 'third']);
});

test('memory of an upstream’s owner that it has stopped at stays as it is until reading goes on', async (t) => {
  const owner = new Owner();
  const { near, far } = await securedPair(t, certificate, {
    nearConnects: true,
    onSecure: (socket) => attachSecured(socket, owner, 'lean'),
  });
  owner.welcome = 1;
  // Each a record; all of them in one read of the kernel.
  far.cork();
  far.write('1'.repeat(RECORD_BYTES));
  far.write('2'.repeat(RECORD_BYTES));
  far.write('3');
  far.uncork();
  await eventually(() => owner.events.length > 0, 'the first');
  await turns(20);
  assert.equal(owner.chunks[0]!.buffer, owner.memory.buffer);
  assert.ok(owner.chunks[0]!.equals(owner.copies[0]!));
  owner.welcome = Number.POSITIVE_INFINITY;
  resumeUpstream(near);
  await eventually(() => owner.bytes.length === 2 * RECORD_BYTES + 1, 'all');
  far.write('4');
  await eventually(() => owner.text.endsWith('4'), 'the last');
  far.write('5');
  await eventually(() => owner.text.endsWith('5'), 'the very last');
  assert.equal(owner.chunks.at(-1)!.buffer, owner.memory.buffer);
});

test('where bytes wait in the Readable already, the rest comes that way, too', async (t) => {
  const { near, far } = await securedPair(t, certificate);
  far.write('early');
  await eventually(() => near.readableLength === 5, 'the bytes');
  const owner = new Owner();
  assert.equal(attachAccepted(near, owner, 'lean', borrowed), false);
  far.write(' late');
  await eventually(() => owner.text === 'early late', 'all');
});
