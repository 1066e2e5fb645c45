// Datagrams to a unix socket, by system calls of our own: Node has none. A call takes a datagram at once or not at all, so that
// there is no queue but the receiver's. Main thread.

import { systemPath } from '../../../base/address.ts';
import type { SystemCalls } from '../../../base/system-calls.ts';
import type { StatSinkCounts } from '../../../control-plane/index.ts';
import type { DatagramSocket } from './datagrams.ts';

/** The receiver has as many as it holds. */
const EAGAIN = 11;
const ENOBUFS = 105;
const EMSGSIZE = 90;

export interface UnixDatagramOptions {
  readonly counts: StatSinkCounts;
  /** Nobody is at the path, or not any more; the socket is of no use now. */
  readonly onLost: (reason: string) => void;
  /** A receiver has taken a datagram. */
  readonly onSent: () => void;
}

export class UnixDatagramSocket implements DatagramSocket {
  /** The receiver's, and it has been taken. */
  readonly queuedBytes = 0;
  readonly #systemCalls: SystemCalls;
  readonly #options: UnixDatagramOptions;
  /** Below 0 once it is closed. */
  #descriptor: number;

  /** @returns undefined when nobody is at the path; `onLost` has been called then. */
  static open(path: string, systemCalls: SystemCalls, options: UnixDatagramOptions): UnixDatagramSocket | undefined {
    const descriptor = systemCalls.openDatagramSocket(systemPath(path));
    if (descriptor >= 0) return new UnixDatagramSocket(descriptor, systemCalls, options);
    options.onLost(`${path}: error ${-descriptor}`);
    return undefined;
  }

  private constructor(descriptor: number, systemCalls: SystemCalls, options: UnixDatagramOptions) {
    this.#descriptor = descriptor;
    this.#systemCalls = systemCalls;
    this.#options = options;
  }

  send(datagram: string, lines: number): boolean {
    if (this.#descriptor < 0) return false;
    const { counts, onLost, onSent } = this.#options;
    const sent = this.#systemCalls.sendNow(this.#descriptor, Buffer.from(datagram));
    if (sent >= 0) {
      counts.add('metrics_sent', lines);
      onSent();
      return true;
    }
    if (sent === -EMSGSIZE) counts.add('send_failures');
    else if (sent !== -EAGAIN && sent !== -ENOBUFS) {
      this.#end();
      onLost(`error ${-sent}`);
    }
    return false;
  }

  close(): Promise<void> {
    this.#end();
    return Promise.resolve();
  }

  #end(): void {
    if (this.#descriptor >= 0) this.#systemCalls.close(this.#descriptor);
    this.#descriptor = -1;
  }
}
