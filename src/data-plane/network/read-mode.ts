// Finds out at start-up whether accepted sockets can be read the lean way under this Node release: bytes arrive,
// a stop holds, a re-arm delivers the rest, and the end of the stream is told after the last byte. Once for sockets that
// allocate for their reads, and once for those that read into shared memory.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { SYSTEM_CLOCK } from '../../base/clock.ts';
import {
  ACCEPTED_SOCKET_OPTIONS,
  attachAccepted,
  type ReadMode,
  resumeAccepted,
  type SocketOwner,
} from './socket-events.ts';

/** Of a Node that keeps bytes back. Long, because a worker reads the slower way for good after it, and a busy start is slow. */
const SELF_TEST_LIMIT_MS = 30_000;
const FIRST = 'first';
const SECOND = 'second';
/** Holds either of them. */
const SHARED_BYTES = 64;

/** Plays the owner of the accepted end: stops after the first bytes, and has the rest sent only then. */
class Probe implements SocketOwner {
  #received = '';
  #stopped = false;
  readonly #socket: Socket;
  readonly #sendRest: () => void;
  readonly #verdict: (passed: boolean) => void;

  constructor(socket: Socket, sendRest: () => void, verdict: (passed: boolean) => void) {
    this.#socket = socket;
    this.#sendRest = sendRest;
    this.#verdict = verdict;
  }

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.#stopped) this.#verdict(false);
    this.#received += chunk.toString('latin1', 0, length);
    if (this.#received !== FIRST) return true;
    this.#stopped = true;
    this.#sendRest();
    // Two turns in which bytes that came through in spite of the stop would be seen.
    setImmediate(() => setImmediate(() => this.#rearm()));
    return false;
  }

  onEnd(): void {
    this.#verdict(
      this.#received === FIRST + SECOND && this.#socket.write('x', 'latin1') && this.#socket.writableLength === 0,
    );
  }

  onDrain(): void {}

  onClose(): void {
    this.#verdict(false);
  }

  /** The close that follows says it. */
  onFault(): void {}

  #rearm(): void {
    this.#stopped = false;
    resumeAccepted(this.#socket, 'lean');
  }
}

/** The fastest way of reading that works here. Never rejects: whatever goes wrong means `events`. */
export async function chooseReadMode(): Promise<ReadMode> {
  let server: Server | undefined;
  const sockets: Socket[] = [];
  try {
    return await new Promise<ReadMode>((resolve) => {
      const cancelLimit = SYSTEM_CLOCK.after(SELF_TEST_LIMIT_MS, () => resolve('events'));
      const memories = [null, Buffer.allocUnsafeSlow(SHARED_BYTES)];
      const verdict = (passed: boolean): void => {
        if (passed && memories.length > 0) {
          probe();
          return;
        }
        cancelLimit();
        resolve(passed ? 'lean' : 'events');
      };
      const probe = (): void => {
        const memory = memories.shift()!;
        const client = connect((server!.address() as { port: number }).port, '127.0.0.1');
        client.on('error', () => verdict(false));
        client.write(FIRST);
        sockets.push(client);
        server!.once('connection', (socket) => {
          sockets.push(socket);
          attachAccepted(socket, new Probe(socket, () => client.end(SECOND), verdict), 'lean', memory);
        });
      };
      server = createServer(ACCEPTED_SOCKET_OPTIONS);
      server.on('error', () => verdict(false));
      server.listen(0, '127.0.0.1', probe);
    });
  } catch {
    return 'events';
  } finally {
    for (const socket of sockets) socket.destroy();
    server?.close();
  }
}
