// The connection of two processes in a hot restart, from either end. Only processes of one user talk to each other: a socket
// in the abstract namespace has no file mode that would keep others away.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { descriptorOf } from '../../base/descriptor-budget.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { FrameReader, frameOf } from './frames.ts';

export interface PeerEvents {
  readonly onMessage: (message: { readonly type: string; readonly id: number }) => void;
  /** Once: the other process has ended, or has said what makes no sense. */
  readonly onGone: () => void;
}

export class Peer {
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #events: PeerEvents;

  constructor(socket: Socket, events: PeerEvents) {
    this.#socket = socket;
    this.#events = events;
    // What has gone wrong with it ends it, and that is enough to know.
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.once('close', () => events.onGone());
    // The end of either process must not wait for the other.
    socket.unref();
  }

  get isThere(): boolean {
    return !this.#socket.destroyed;
  }

  /** Resolves when the next message may be sent: a slow reader slows the sender down. Never rejects. */
  async send(message: object): Promise<void> {
    if (!this.#socket.writable || this.#socket.write(frameOf(message))) return;
    await Promise.race([once(this.#socket, 'drain'), once(this.#socket, 'close')]).catch(() => {});
  }

  /** What has been sent arrives before the end does. */
  end(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#socket.destroyed) resolve();
      else this.#socket.once('close', () => resolve()).end(() => this.#socket.destroy());
    });
  }

  #receive(bytes: Buffer): void {
    try {
      for (const message of this.#reader.read(bytes)) {
        if (!isMessage(message)) throw new Error('not a message');
        this.#events.onMessage(message);
      }
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }
}

/** Whether a process of the same user, or of root, is at the other end. */
export function isTrusted(socket: Socket, calls: SystemCalls): boolean {
  const user = calls.peerUser(descriptorOf(socket));
  return user === 0 || user === process.getuid!();
}

function isMessage(value: unknown): value is { readonly type: string; readonly id: number } {
  if (typeof value !== 'object' || value === null) return false;
  const { type, id } = value as { readonly type?: unknown; readonly id?: unknown };
  return typeof type === 'string' && typeof id === 'number';
}
