// The connection to an upstream over TLS as its owner has it: reads and writes like any other, without Node's streams in between.
// Real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import type { Address } from '../../../../../src/base/address.ts';
import type { ReadMode } from '../../../../../src/data-plane/network/socket-events.ts';
import { connectToHost, type HostConnectionOwner } from '../../../../../src/data-plane/upstream/host-connection.ts';
import { NO_ALPN } from '../../../../../src/data-plane/upstream/opening.ts';
import { UpstreamTls } from '../../../../../src/data-plane/upstream/tls/upstream-tls.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { eventually } from '../../../../support/eventually.ts';
import { upstreamTls } from '../../../../support/upstream-tls.ts';
import { UpstreamWorkers } from '../../../../support/upstream-workers.ts';

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

class Owner implements HostConnectionOwner {
  readonly memory = Buffer.alloc(1024);
  readonly events: string[] = [];
  /** What was read lay in the owner's own memory. */
  readsIntoMemory = false;
  socket: Socket | null = null;

  readBuffer(): Buffer {
    return this.memory;
  }

  onFurtherAttempt(): void {}

  onChosen(socket: Socket): this {
    this.socket = socket;
    return this;
  }

  onConnect(): void {
    this.events.push('connect');
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.readsIntoMemory = chunk === this.memory;
    this.events.push(chunk.toString('latin1', 0, length));
    return true;
  }

  onEnd(): void {
    this.events.push('end');
  }

  onDrain(): void {
    this.events.push('drain');
  }

  onSendFailed(): void {}

  onClose(error: Error | null): void {
    this.events.push(`close ${error?.message ?? ''}`.trim());
  }

  onFault(error: unknown): void {
    this.events.push(`fault ${error}`);
  }
}

/** Both ends of one, once it is secured. */
async function connected(t: TestContext, mode: ReadMode): Promise<{ owner: Owner; near: Socket; far: TLSSocket }> {
  const server = createServer({ cert: certificate.certificate, key: certificate.key, allowHalfOpen: true });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const accepting = once(server, 'secureConnection');
  const { port } = server.address() as AddressInfo;
  const workers = new UpstreamWorkers(1, () => {});
  const context = workers.contexts[0]!;
  context.readMode = mode;
  const cluster = workers.cluster(1, {});
  const address: Address = { kind: 'ip', ip: '127.0.0.1', port };
  const tls = new UpstreamTls(context, upstreamTls(), { tls: 0, factory: 0 }, 'cluster.web.');
  const opening = { preamble: null, tls, sentName: '', verifiedName: '', hostname: '' };
  const owner = new Owner();
  connectToHost(context, { address, connectOrder: null, cluster }, owner, opening, NO_ALPN);
  const [far] = (await accepting) as [TLSSocket];
  far.on('error', () => {});
  server.close();
  await eventually(() => owner.events.includes('connect'), `the handshake after ${owner.events}`);
  const near = owner.socket!;
  t.after(() => {
    near.destroy();
    far.destroy();
  });
  return { owner, near, far };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

for (const mode of ['lean', 'events'] as const) {
  test(`is read ${mode === 'lean' ? 'into the memory of its owner' : 'by events where Node allows nothing else'}`, async (t) => {
    const { owner, far } = await connected(t, mode);
    far.write('answer');
    await eventually(() => owner.events.includes('answer'), 'the bytes');
    assert.equal(owner.readsIntoMemory, mode === 'lean');
    far.end();
    await eventually(() => owner.events.includes('end'), 'the end');
    assert.deepEqual(owner.events, ['connect', 'answer', 'end']);
  });
}

test('has taken what is written when the kernel has', async (t) => {
  const { owner, near, far } = await connected(t, 'lean');
  await turns(20);
  for (const piece of ['one ', 'two']) {
    assert.equal(near.write(piece, 'latin1'), true);
    assert.equal(near.writableLength, 0);
    await turns(3);
  }
  far.setEncoding('latin1');
  let text = '';
  far.on('data', (more) => {
    text += more;
  });
  await eventually(() => text === 'one two', 'the bytes');
  assert.deepEqual(owner.events, ['connect']);
});
