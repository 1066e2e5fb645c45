// A connection to an upstream whose TLS handshake waits for its turn: what the server sees meanwhile, and how it ends. Real
// sockets, and a queue that a test moves on.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { createServer } from 'node:tls';
import type { PacedHandshake } from '../../../../../src/data-plane/network/tls/handshake-pacing.ts';
import { NO_ALPN } from '../../../../../src/data-plane/upstream/opening.ts';
import { SecuredSocket, type SecuredSocketOwner } from '../../../../../src/data-plane/upstream/tls/secured-socket.ts';
import { UpstreamTls } from '../../../../../src/data-plane/upstream/tls/upstream-tls.ts';
import type { WorkerContext } from '../../../../../src/data-plane/worker-context.ts';
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

/** Lets nobody begin before a test does. */
class Queue {
  readonly waiting = new Map<PacedHandshake, boolean>();

  ask(handshake: PacedHandshake, isOfUpstream = false): boolean {
    this.waiting.set(handshake, isOfUpstream);
    return false;
  }

  leave(handshake: PacedHandshake): void {
    this.waiting.delete(handshake);
  }

  /** @returns the one whose turn it was. */
  begin(): PacedHandshake {
    const [next] = this.waiting.keys();
    this.waiting.delete(next!);
    next!.begin();
    return next!;
  }
}

interface Bench {
  readonly queue: Queue;
  readonly events: string[];
  readonly secured: SecuredSocket;
  /** Where the server has it. */
  readonly far: Socket;
}

/** A connection that is there, and whose handshake waits. */
async function waiting(t: TestContext, server: Server): Promise<Bench> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const accepting = once(server, 'connection');
  const { port } = server.address() as AddressInfo;
  const queue = new Queue();
  const events: string[] = [];
  const owner: SecuredSocketOwner = {
    onSecured: (socket) => {
      events.push('secured');
      t.after(() => socket.destroy());
    },
    onFailed: (error) => void events.push(`failed ${error?.code ?? ''}`.trim()),
    onFault: (error) => void events.push(`fault ${error}`),
  };
  const real = new UpstreamWorkers(1, () => {}).contexts[0]!;
  const context = Object.create(real, { handshakes: { value: queue } }) as WorkerContext;
  const tls = new UpstreamTls(context, upstreamTls(), { tls: 0, factory: 0 }, 'cluster.web.');
  const begin = tls.begin.bind(tls);
  tls.begin = (...args) => {
    events.push('begun');
    return begin(...args);
  };
  const opening = { preamble: null, tls, sentName: '', verifiedName: '', hostname: '' };
  const address = { kind: 'ip', ip: '127.0.0.1', port } as const;
  const secured = new SecuredSocket(context, address, {} as never, tls, opening, NO_ALPN, owner);
  const [far] = (await accepting) as [Socket];
  far.on('error', () => {});
  server.close();
  t.after(() => {
    secured.destroy();
    far.destroy();
  });
  await eventually(() => queue.waiting.size === 1, 'a handshake that waits');
  assert.deepEqual([...queue.waiting.values()], [true]);
  return { queue, events, secured, far };
}

function tlsServer(): Server {
  return createServer({ cert: certificate.certificate, key: certificate.key });
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

test('says nothing before its turn, and shakes hands then', async (t) => {
  const { queue, events, far } = await waiting(t, tlsServer());
  await turns(20);
  assert.equal(far.bytesRead, 0);
  queue.begin();
  await eventually(() => events.length > 1, 'the handshake');
  assert.deepEqual(events, ['begun', 'secured']);
  assert.equal(queue.waiting.size, 0);
});

test('leaves the queue when nobody wants it any more, and does not begin', async (t) => {
  const { queue, events, secured, far } = await waiting(t, createPlainServer());
  const ended = once(far, 'close');
  const [handshake] = queue.waiting.keys();
  secured.destroy();
  assert.equal(queue.waiting.size, 0);
  handshake!.begin();
  far.resume();
  await ended;
  assert.equal(far.bytesRead, 0);
  assert.deepEqual(events, []);
});

for (const [what, leave] of [
  ['ended', (far: Socket) => far.end()],
  ['reset', (far: Socket) => far.resetAndDestroy()],
] as const) {
  test(`fails in its turn when the server has ${what} it meanwhile`, async (t) => {
    const { queue, events, far } = await waiting(t, createPlainServer());
    leave(far);
    await turns(20);
    assert.deepEqual([events, queue.waiting.size], [[], 1]);
    queue.begin();
    await eventually(() => events.length > 1, 'the end');
    assert.match(events[1]!, /^failed/);
    assert.equal(events.length, 2);
  });
}

test('fails in its turn when the server has said something else than TLS meanwhile', async (t) => {
  const { queue, events, far } = await waiting(t, createPlainServer());
  far.write('220 mail.test ESMTP\r\n');
  await turns(20);
  queue.begin();
  await eventually(() => events.length > 1, 'the end');
  assert.match(events[1]!, /^failed ERR_SSL/);
});
