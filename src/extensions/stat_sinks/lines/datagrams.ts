// Lines as datagrams, over UDP or to a unix socket: one each, or as many as fit, with a line feed between. Nothing is
// waited for: what the system does not take at once, beyond a bound, is dropped and counted. Main thread.

import { JitteredBackoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import { WeirError } from '../../../base/errors.ts';
import { SYSTEM_RANDOM } from '../../../base/random.ts';
import { SystemCalls } from '../../../base/system-calls.ts';
import type { StatSinkContext, StatSinkCounts } from '../../../control-plane/index.ts';
import type { LineTransport } from './line-sink.ts';
import { UdpSocket } from './udp-datagrams.ts';
import { UnixDatagramSocket } from './unix-datagrams.ts';

/** As loggers know this file. */
const FILE = 'src/extensions/stat_sinks/lines/datagrams.ts';

export type DatagramTarget =
  | { readonly kind: 'udp'; readonly ip: string; readonly port: number }
  | { readonly kind: 'pipe'; readonly path: string };

export interface DatagramOptions extends Pick<StatSinkContext, 'clock' | 'counts' | 'faults' | 'log'> {
  /** Of a datagram, unless a single line is longer; 0 sends each line in one of its own. */
  readonly maxBytes: number;
}

/** What sends single datagrams. */
export interface DatagramSocket {
  /** @returns false when it was not taken, and will not be. */
  send(datagram: string, lines: number): boolean;
  /** What has been taken is to go now. */
  flush?(): void;
  readonly queuedBytes: number;
  close(): Promise<void>;
}

/** The first pause after a socket could not be had; the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export class Datagrams implements LineTransport {
  readonly #target: DatagramTarget;
  readonly #maxBytes: number;
  readonly #counts: StatSinkCounts;
  readonly #options: DatagramOptions;
  readonly #clock: Clock;
  /** Undefined where the system has none of them, which unix sockets need: Node has no datagrams for those. */
  readonly #systemCalls: SystemCalls | undefined;
  readonly #backoff = new JitteredBackoff(SYSTEM_RANDOM, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  #socket: DatagramSocket | undefined;
  /** By the monotonic clock. */
  #nextTryMs = 0;
  #packed = '';
  #packedBytes = 0;
  #packedLines = 0;

  constructor(target: DatagramTarget, options: DatagramOptions) {
    this.#target = target;
    this.#options = options;
    this.#maxBytes = options.maxBytes;
    this.#counts = options.counts;
    this.#clock = options.clock;
    this.#systemCalls = SystemCalls.open();
    if (target.kind === 'pipe' && this.#systemCalls === undefined) {
      throw new WeirError('WEIR_STAT_SINK', `${target.path}: this system has no datagrams over unix sockets`);
    }
  }

  begin(): void {
    if (this.#socket === undefined && this.#clock.monotonicMs() >= this.#nextTryMs) this.#open();
  }

  send(line: string): void {
    if (this.#maxBytes === 0) {
      this.#sendNow(line, 1);
      return;
    }
    const bytes = Buffer.byteLength(line);
    if (this.#packedLines > 0 && this.#packedBytes + 1 + bytes > this.#maxBytes) this.#sendPacked();
    this.#packed = this.#packedLines === 0 ? line : `${this.#packed}\n${line}`;
    this.#packedBytes += this.#packedLines === 0 ? bytes : bytes + 1;
    this.#packedLines += 1;
  }

  end(): void {
    if (this.#packedLines > 0) this.#sendPacked();
    this.#socket?.flush?.();
    this.#counts.set('queued_bytes', this.#socket?.queuedBytes ?? 0);
  }

  async close(): Promise<void> {
    await this.#socket?.close();
    this.#socket = undefined;
  }

  #sendPacked(): void {
    this.#sendNow(this.#packed, this.#packedLines);
    this.#packed = '';
    this.#packedBytes = 0;
    this.#packedLines = 0;
  }

  #sendNow(datagram: string, lines: number): void {
    const isTaken = this.#socket?.send(datagram, lines) ?? false;
    if (!isTaken) this.#counts.add('metrics_dropped', lines);
  }

  #open(): void {
    const { counts, faults, log } = this.#options;
    const onLost = (reason: string): void => {
      counts.add('send_failures');
      log.ofFile(FILE).debug(`a stats sink has lost its socket: ${reason}`);
      this.#socket = undefined;
      this.#nextTryMs = this.#clock.monotonicMs() + this.#backoff.nextMs();
    };
    const onSent = (): void => this.#backoff.reset();
    this.#socket =
      this.#target.kind === 'udp'
        ? UdpSocket.open(this.#target, this.#systemCalls, { counts, faults, onLost, onSent })
        : UnixDatagramSocket.open(this.#target.path, this.#systemCalls!, { counts, onLost, onSent });
  }
}
