// Lines over one TCP connection to a host of a cluster. While there is none, or it takes nothing, lines wait up to a bound, beyond
// which they are dropped and counted; a connection that has taken nothing for long is given up for another. Main thread.
//
//   IDLE ──flush, pause over──► CONNECTING ──► OPEN ──lost, stalled──► IDLE, after a pause that grows

import type { Socket } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import { JitteredBackoff } from '../../../base/backoff.ts';
import { SYSTEM_RANDOM } from '../../../base/random.ts';
import type { ClusterHost, StatSinkContext } from '../../../control-plane/index.ts';
import { STATSD_TCP_STATS } from '../../../stats/index.ts';
import type { LineTransport } from './line-sink.ts';

/** As loggers know this file. */
const FILE = 'src/extensions/stat_sinks/lines/tcp-lines.ts';

/** As much as the peers hold: a flush of 100,000 stats is 6 MB. */
const MOST_QUEUED_BYTES = 16 * 1024 * 1024;
/** Given to the socket at a time. */
const CHUNK_BYTES = 64 * 1024;
/** A receiver that takes nothing for this long is as good as gone. */
const STALLED_AFTER_MS = 15_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export type TcpLinesContext = Pick<StatSinkContext, 'clock' | 'counts' | 'faults' | 'hostOf' | 'log' | 'stats'>;

/** Some lines that wait for their connection. */
interface Chunk {
  readonly text: string;
  readonly lines: number;
}

export class TcpLines implements LineTransport {
  readonly #cluster: string;
  readonly #context: TcpLinesContext;
  readonly #overflow;
  readonly #backoff = new JitteredBackoff(SYSTEM_RANDOM, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  #connection: Connection | undefined;
  /** By the monotonic clock. */
  #nextTryMs = 0;
  #text = '';
  #lines = 0;
  /** Until a connection is open. */
  #waiting: Chunk[] = [];
  #waitingBytes = 0;
  #hasOverflown = false;

  constructor(cluster: string, context: TcpLinesContext) {
    this.#cluster = cluster;
    this.#context = context;
    this.#overflow = context.stats.scope('statsd.').allocate(STATSD_TCP_STATS);
  }

  begin(): void {
    this.#hasOverflown = false;
    this.#connection?.checkProgress();
    if (this.#connection === undefined && this.#context.clock.monotonicMs() >= this.#nextTryMs) this.#connect();
  }

  send(line: string): void {
    this.#text += `${line}\n`;
    this.#lines += 1;
    if (this.#text.length >= CHUNK_BYTES) this.#passOn();
  }

  end(): void {
    if (this.#lines > 0) this.#passOn();
    this.#context.counts.set('queued_bytes', this.#queuedBytes);
  }

  close(): Promise<void> {
    this.#nextTryMs = Number.POSITIVE_INFINITY;
    if (this.#connection !== undefined) return this.#connection.close();
    this.#drop(this.#waiting);
    this.#waiting = [];
    return Promise.resolve();
  }

  get #queuedBytes(): number {
    return this.#waitingBytes + (this.#connection?.queuedBytes ?? 0);
  }

  #passOn(): void {
    const chunk = { text: this.#text, lines: this.#lines };
    this.#text = '';
    this.#lines = 0;
    if (this.#queuedBytes + chunk.text.length > MOST_QUEUED_BYTES) {
      this.#drop([chunk]);
      if (!this.#hasOverflown) this.#overflow.add('cx_overflow');
      this.#hasOverflown = true;
    } else if (this.#connection?.isOpen) this.#connection.write(chunk);
    else {
      this.#waiting.push(chunk);
      this.#waitingBytes += chunk.text.length;
    }
  }

  #connect(): void {
    const { hostOf, log, clock, counts, faults } = this.#context;
    const host = hostOf(this.#cluster);
    if (host === undefined) {
      this.#lost(`cluster ${this.#cluster} has no host`);
      return;
    }
    log.ofFile(FILE).debug(`a stats sink connects to ${formatAddress(host.address)}`);
    this.#connection = new Connection(host, {
      clock,
      counts,
      faults,
      onOpen: () => {
        this.#backoff.reset();
        const waiting = this.#waiting;
        this.#waiting = [];
        this.#waitingBytes = 0;
        for (const chunk of waiting) this.#connection!.write(chunk);
      },
      onLost: (reason) => this.#lost(reason),
    });
  }

  #lost(reason: string): void {
    const { clock, counts, log } = this.#context;
    this.#connection = undefined;
    counts.add('send_failures');
    log.ofFile(FILE).debug(`a stats sink has no connection: ${reason}`);
    this.#nextTryMs = Math.max(this.#nextTryMs, clock.monotonicMs() + this.#backoff.nextMs());
  }

  #drop(chunks: readonly Chunk[]): void {
    for (const { lines } of chunks) this.#context.counts.add('metrics_dropped', lines);
  }
}

/** Where faults are, as the log says it. */
const CONNECTION = 'the connection of a stats sink';

interface ConnectionOptions extends Pick<StatSinkContext, 'clock' | 'counts' | 'faults'> {
  readonly onOpen: () => void;
  /** Called once, unless it is closed. */
  readonly onLost: (reason: string) => void;
}

/** One connection from its beginning to its end, counted by its cluster. */
class Connection {
  isOpen = false;
  readonly #host: ClusterHost;
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  readonly #callOff: () => void;
  #reason = 'ended by the receiver';
  #isGivenUp = false;
  /** What the system had taken when that was last more than before. */
  #takenBytes = 0;
  #progressMs: number;

  constructor(host: ClusterHost, options: ConnectionOptions) {
    this.#host = host;
    this.#options = options;
    const { stats, settings } = host.cluster;
    const { clock, faults } = options;
    this.#progressMs = clock.monotonicMs();
    stats.add('upstream_cx_total');
    stats.add('upstream_cx_active');
    this.#socket = host.connect();
    this.#socket.unref();
    this.#callOff = clock.after(settings.connectTimeoutMs, () => {
      stats.add('upstream_cx_connect_timeout');
      this.giveUp('it takes too long');
    });
    const onConnect = (): void => {
      this.isOpen = true;
      this.#callOff();
      options.onOpen();
    };
    const onError = ({ message }: Error): void => {
      this.#reason = message;
    };
    this.#socket.on('connect', faults.handler(CONNECTION, onConnect));
    this.#socket.on('error', faults.handler(CONNECTION, onError));
    // Nothing that a receiver says is of interest, but its end is.
    this.#socket.resume();
    this.#socket.on('close', faults.handler(CONNECTION, this.#ended.bind(this)));
  }

  get queuedBytes(): number {
    return this.#socket.writableLength;
  }

  write({ text, lines }: Chunk): void {
    const { counts, faults } = this.#options;
    const onTaken = (error?: Error | null): void => {
      counts.add(error ? 'metrics_dropped' : 'metrics_sent', lines);
      if (!error) this.#host.cluster.stats.add('upstream_cx_tx_bytes_total', Buffer.byteLength(text));
    };
    this.#socket.write(text, faults.handler(CONNECTION, onTaken));
  }

  /** Gives it up when it has had something to take for long, and has taken nothing. */
  checkProgress(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (takenBytes > this.#takenBytes || this.#socket.writableLength === 0) {
      this.#takenBytes = takenBytes;
      this.#progressMs = nowMs;
    } else if (nowMs - this.#progressMs >= STALLED_AFTER_MS) this.giveUp('the receiver takes nothing');
  }

  giveUp(reason: string): void {
    this.#reason = reason;
    this.#isGivenUp = true;
    this.#socket.destroy();
  }

  /** Resolves when all that was written has been taken. */
  async close(): Promise<void> {
    this.#isGivenUp = true;
    const { faults } = this.#options;
    const closed = Promise.withResolvers<void>();
    this.#socket.once(
      'close',
      faults.handler(CONNECTION, () => closed.resolve()),
    );
    this.#socket.end(faults.handler(CONNECTION, () => this.#socket.destroy()));
    await closed.promise;
  }

  #ended(): void {
    const { stats } = this.#host.cluster;
    this.#callOff();
    stats.add('upstream_cx_active', -1);
    if (this.isOpen) {
      stats.add('upstream_cx_destroy');
      stats.add(this.#isGivenUp ? 'upstream_cx_destroy_local' : 'upstream_cx_destroy_remote');
    } else stats.add('upstream_cx_connect_fail');
    this.#options.onLost(this.#reason);
  }
}
