// Both ends of a real connection of which one is not read.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { descriptorOf } from '../../src/base/descriptor-budget.ts';
import { type PeerState, SystemCalls } from '../../src/base/system-calls.ts';

export interface UnreadPair {
  /** Accepted, and not read. */
  readonly accepted: Socket;
  readonly descriptor: number;
  readonly peer: Socket;
}

export const systemCalls = SystemCalls.open()!;

export async function unreadPair(t: TestContext): Promise<UnreadPair> {
  const server: Server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const peer = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [accepted] = (await accepting) as [Socket];
  accepted.on('error', () => {});
  t.after(() => {
    accepted.destroy();
    peer.destroy();
    server.close();
  });
  return { accepted, descriptor: descriptorOf(accepted), peer };
}

/** What the system says of the other end now. */
export function peerStateOf(descriptor: number): PeerState {
  const states = new Uint8Array(1);
  if (!systemCalls.peerStates([descriptor], states)) throw new Error('the system does not say');
  return states[0] as PeerState;
}
