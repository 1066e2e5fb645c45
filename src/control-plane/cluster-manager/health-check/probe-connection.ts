// The connection of a probe: made when a check needs one, kept for the next if the probe allows, and replaced once when
// a kept one turns out to have been closed meanwhile. What a host may send in one check is bounded. Main thread.

import type { Socket } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { ProbeOrigin, ProbeTarget } from './probe.ts';
import { ProbeSocket } from './probe-socket.ts';

/** Of one check. No answer is as long, and main has other things to do than to read one without end. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export function answerTooLong(maxBytes: number): string {
  return `no end of the answer within ${maxBytes} bytes`;
}

const WHERE = 'the connection of a health check';

/** What a probe hears of its connection while a check runs. */
export interface ConnectionListener {
  /** Ready for the first bytes of a check. */
  onOpen(socket: Socket): void;
  onBytes(bytes: Buffer): void;
  /** The connection is gone: the peer has ended the stream, or it has failed or said too much; `reason` says how. */
  onLost(reason: string | undefined): void;
}

export class ProbeConnection {
  readonly #origin: ProbeOrigin | undefined;
  readonly #protocols: readonly string[];
  readonly #faults: FaultBoundary;
  readonly #listener: ConnectionListener;
  readonly #maxAnswerBytes: number;
  #connection: ProbeSocket | undefined;
  /** Undefined while it is being made. */
  #socket: Socket | undefined;
  #target: ProbeTarget | undefined;
  #label: string | undefined;
  #isBusy = false;
  /** Bytes that the host may still send in this check. */
  #allowance = 0;
  /** An earlier check has used it, and nothing has come back in this one. */
  #isUntried = false;

  /**
   * @param protocols what is spoken over it, for ALPN.
   * @param faults where those of handlers end: a check that has met one runs out of its time.
   */
  constructor(
    origin: ProbeOrigin | undefined,
    protocols: readonly string[],
    faults: FaultBoundary,
    listener: ConnectionListener,
    maxAnswerBytes = MAX_ANSWER_BYTES,
  ) {
    this.#maxAnswerBytes = maxAnswerBytes;
    this.#faults = faults;
    this.#origin = origin;
    this.#protocols = protocols;
    this.#listener = listener;
  }

  /** Brings a connection to the target, which may be a kept one. */
  open(target: ProbeTarget): void {
    const label = formatAddress(target.address);
    if (label !== this.#label) this.close();
    this.#label = label;
    this.#target = target;
    this.#isBusy = true;
    this.#allowance = this.#maxAnswerBytes;
    const kept = this.#socket;
    this.#isUntried = kept !== undefined;
    if (kept === undefined) this.#connect();
    else this.#listener.onOpen(kept);
  }

  /** The check is done; the connection waits for the next one. */
  keep(): void {
    this.#isBusy = false;
  }

  /** Idempotent. */
  close(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#socket = undefined;
  }

  #connect(): void {
    const onOpen = (socket: Socket): void => {
      this.#socket = socket;
      const onData = (bytes: Buffer): void => this.#onData(bytes);
      socket.on('data', this.#faults.handler(WHERE, onData));
      this.#listener.onOpen(socket);
    };
    const onLost = (reason: string | undefined): void => this.#onLost(reason);
    this.#connection = new ProbeSocket(this.#target!, this.#origin, this.#protocols, this.#faults, { onOpen, onLost });
  }

  /** Only what is open now has bytes to tell of: a former socket has been destroyed. */
  #onData(bytes: Buffer): void {
    this.#isUntried = false;
    // Between checks nothing may come: whatever it is, it answers no question.
    if (!this.#isBusy) {
      this.close();
      return;
    }
    this.#allowance -= bytes.length;
    if (this.#allowance < 0) {
      this.close();
      this.#listener.onLost(answerTooLong(this.#maxAnswerBytes));
    } else this.#listener.onBytes(bytes);
  }

  #onLost(reason: string | undefined): void {
    this.#connection = undefined;
    this.#socket = undefined;
    if (!this.#isBusy) return;
    if (this.#isUntried) {
      this.#isUntried = false;
      this.#connect();
      return;
    }
    this.#listener.onLost(reason);
  }
}
