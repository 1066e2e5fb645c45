// Lines as datagrams, over UDP or to a unix socket: one each, or as many as fit, with a line feed between. Nothing is
// waited for: what the system does not take at once, beyond a bound, is dropped and counted. Main thread.

import { createSocket, type Socket } from 'node:dgram';
import { familyOf } from '../../../base/address-families.ts';
import { JitteredBackoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import { WeirError } from '../../../base/errors.ts';
import { SYSTEM_RANDOM } from '../../../base/random.ts';
import { SystemCalls } from '../../../base/system-calls.ts';
import type { StatSinkContext, StatSinkCounts } from '../../../control-plane/index.ts';
import type { LineTransport } from './line-sink.ts';
import { UnixDatagramSocket } from './unix-datagrams.ts';

export type DatagramTarget =
  | { readonly kind: 'udp'; readonly ip: string; readonly port: number }
  | { readonly kind: 'pipe'; readonly path: string };

export interface DatagramOptions extends Pick<StatSinkContext, 'clock' | 'counts' | 'log'> {
  /** Of a datagram, unless a single line is longer; 0 sends each line in one of its own. */
  readonly maxBytes: number;
}

/** What sends single datagrams. */
export interface DatagramSocket {
  /** @returns false when it was not taken, and will not be. */
  send(datagram: string, lines: number): boolean;
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
  /** For unix sockets, which Node has no datagrams for. */
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
    this.#systemCalls = target.kind === 'pipe' ? SystemCalls.open() : undefined;
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
    const { counts, log } = this.#options;
    const onLost = (reason: string): void => {
      counts.add('send_failures');
      log.debug(`a stats sink has lost its socket: ${reason}`);
      this.#socket = undefined;
      this.#nextTryMs = this.#clock.monotonicMs() + this.#backoff.nextMs();
    };
    const onSent = (): void => this.#backoff.reset();
    this.#socket =
      this.#target.kind === 'udp'
        ? new UdpSocket(this.#target, counts, onLost)
        : UnixDatagramSocket.open(this.#target.path, this.#systemCalls!, { counts, onLost, onSent });
  }
}

/** Datagrams that the system has not taken: 8 MiB are a flush of 100,000 stats. */
const MOST_QUEUED_BYTES = 8 * 1024 * 1024;
/** Connected, so that the system tells of a port that nobody listens to. */
class UdpSocket implements DatagramSocket {
  readonly #socket: Socket;
  readonly #counts: StatSinkCounts;
  #isConnected = false;
  #isClosed = false;
  /** What came before the connection, which takes a turn of the event loop. */
  #early: (readonly [datagram: string, lines: number])[] = [];
  #earlyBytes = 0;

  constructor(
    { ip, port }: { readonly ip: string; readonly port: number },
    counts: StatSinkCounts,
    onLost: (reason: string) => void,
  ) {
    this.#counts = counts;
    this.#socket = createSocket(familyOf(ip) === 'v4' ? 'udp4' : 'udp6');
    this.#socket.unref();
    this.#socket.on('error', (error) => {
      // Whoever listened has gone, and may come back; the socket stays as good as it was.
      if (this.#isConnected) {
        counts.add('send_failures');
        return;
      }
      this.#dropEarly();
      this.#end();
      onLost(error.message);
    });
    // Given to `connect`, it would be told of failures, too.
    this.#socket.on('connect', () => this.#connected());
    this.#socket.connect(port, ip);
  }

  get queuedBytes(): number {
    return this.#isConnected && !this.#isClosed ? this.#socket.getSendQueueSize() : this.#earlyBytes;
  }

  send(datagram: string, lines: number): boolean {
    if (this.#isClosed || this.queuedBytes > MOST_QUEUED_BYTES) return false;
    if (this.#isConnected) this.#send(datagram, lines);
    else {
      this.#early.push([datagram, lines]);
      this.#earlyBytes += datagram.length;
    }
    return true;
  }

  async close(): Promise<void> {
    if (!this.#isConnected && !this.#isClosed) await new Promise((resolve) => this.#socket.once('connect', resolve));
    for (let size = -1; !this.#isClosed && this.queuedBytes > 0 && this.queuedBytes !== size; ) {
      size = this.queuedBytes;
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#end();
  }

  #connected(): void {
    this.#isConnected = true;
    for (const [datagram, lines] of this.#early) this.#send(datagram, lines);
    this.#early = [];
    this.#earlyBytes = 0;
  }

  #send(datagram: string, lines: number): void {
    this.#socket.send(datagram, this.#onSent);
    this.#counts.add('metrics_sent', lines);
  }

  readonly #onSent = (error: Error | null): void => {
    if (error !== null) this.#counts.add('send_failures');
  };

  #dropEarly(): void {
    for (const [, lines] of this.#early) this.#counts.add('metrics_dropped', lines);
    this.#early = [];
    this.#earlyBytes = 0;
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }
}
