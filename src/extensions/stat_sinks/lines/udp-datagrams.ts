// Datagrams over UDP, many with one system call where there are such calls: with one each, a hundred thousand lines would keep
// main busy for a second. What the system does not take at once waits in Node, within a bound. Main thread.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { familyOf } from '../../../base/address-families.ts';
import type { DatagramBatch } from '../../../base/datagram-batch.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { SystemCalls } from '../../../base/system-calls.ts';
import type { StatSinkCounts } from '../../../control-plane/index.ts';
import type { DatagramSocket } from './datagrams.ts';

/** Datagrams that the system has not taken: 8 MiB are a flush of 100,000 stats. */
const MOST_QUEUED_BYTES = 8 * 1024 * 1024;

const EAGAIN = 11;
const ENOBUFS = 105;
const ECONNREFUSED = 111;

export interface UdpOptions {
  readonly counts: StatSinkCounts;
  readonly faults: FaultBoundary;
  /** There is no socket, or not any more. */
  readonly onLost: (reason: string) => void;
  /** A connected socket is there. */
  readonly onSent: () => void;
}

/** The descriptor of the socket, and datagrams that wait for the next call. */
interface Batching {
  readonly calls: SystemCalls;
  readonly descriptor: number;
  readonly batch: DatagramBatch;
}

interface Datagram {
  readonly text: string;
  readonly lines: number;
}

/** Where faults are, as the log says it. */
const SOCKET = 'the socket of a stats sink';

/** Connected, so that the system tells of a port that nobody listens to. */
export class UdpSocket implements DatagramSocket {
  readonly #socket: Socket;
  readonly #counts: StatSinkCounts;
  readonly #batching: Batching | undefined;
  readonly #onSent: (error: Error | null) => void;
  /** Those in the batch. */
  #batched: Datagram[] = [];
  #isConnected = false;
  #isClosed = false;
  /** What came before it was connected, which takes a turn of the event loop. */
  #early: Datagram[] = [];
  #earlyBytes = 0;

  /** @returns undefined when no socket could be had; `onLost` has been called then. */
  static open(
    target: { readonly ip: string; readonly port: number },
    calls: SystemCalls | undefined,
    options: UdpOptions,
  ): UdpSocket | undefined {
    if (calls === undefined) return new UdpSocket(target, undefined, options);
    const descriptor = calls.openUdpSocket(familyOf(target.ip));
    if (descriptor >= 0) return new UdpSocket(target, { calls, descriptor, batch: calls.newDatagramBatch() }, options);
    options.onLost(`error ${-descriptor}`);
    return undefined;
  }

  private constructor(
    { ip, port }: { readonly ip: string; readonly port: number },
    batching: Batching | undefined,
    { counts, faults, onLost, onSent }: UdpOptions,
  ) {
    this.#counts = counts;
    this.#onSent = faults.handler(SOCKET, (error: Error | null) => {
      if (error !== null) counts.add('send_failures');
    });
    this.#batching = batching;
    this.#socket = createSocket(familyOf(ip) === 'v4' ? 'udp4' : 'udp6');
    this.#socket.unref();
    const onError = (error: Error): void => {
      // Whoever listened has gone, and may come back; the socket stays as good as it was.
      if (this.#isConnected) {
        counts.add('send_failures');
        return;
      }
      this.#dropEarly();
      this.#end();
      onLost(error.message);
    };
    const onConnect = (): void => {
      this.#connected();
      onSent();
    };
    this.#socket.on('error', faults.handler(SOCKET, onError));
    // Given to `connect`, it would be told of failures, too.
    this.#socket.on('connect', faults.handler(SOCKET, onConnect));
    // Node owns the descriptor from here on.
    if (batching !== undefined) this.#socket.bind({ fd: batching.descriptor });
    this.#socket.connect(port, ip);
  }

  get queuedBytes(): number {
    return this.#isConnected && !this.#isClosed ? this.#socket.getSendQueueSize() : this.#earlyBytes;
  }

  send(text: string, lines: number): boolean {
    if (this.#isClosed || this.queuedBytes > MOST_QUEUED_BYTES) return false;
    if (this.#isConnected) this.#send({ text, lines });
    else {
      this.#early.push({ text, lines });
      this.#earlyBytes += text.length;
    }
    return true;
  }

  flush(): void {
    if (this.#batched.length === 0) return;
    const { calls, descriptor, batch } = this.#batching!;
    const batched = this.#batched;
    this.#batched = [];
    let sent = 0;
    let wasRefused = false;
    while (sent < batched.length) {
      const result = calls.sendMany(descriptor, batch, sent);
      if (result > 0) {
        for (const { lines } of batched.slice(sent, sent + result)) this.#counts.add('metrics_sent', lines);
        sent += result;
      } else if (result === -EAGAIN || result === -ENOBUFS) break;
      else {
        this.#counts.add('send_failures');
        // That was about a datagram before these; what cannot be sent at all is passed over.
        if (result === -ECONNREFUSED && !wasRefused) wasRefused = true;
        else {
          this.#counts.add('metrics_dropped', batched[sent]!.lines);
          sent += 1;
        }
      }
    }
    batch.clear();
    for (const datagram of batched.slice(sent)) this.#sendByNode(datagram);
  }

  async close(): Promise<void> {
    // A failure to connect has been told of by then.
    if (!this.#isConnected && !this.#isClosed) await once(this.#socket, 'connect').catch(() => {});
    this.flush();
    for (let size = -1; !this.#isClosed && this.queuedBytes > 0 && this.queuedBytes !== size; ) {
      size = this.queuedBytes;
      await nextTurn();
    }
    this.#end();
  }

  #send(datagram: Datagram): void {
    if (this.#addToBatch(datagram)) this.#batched.push(datagram);
    else this.#sendByNode(datagram);
  }

  /** @returns false when it has to go by Node: others wait there, or it is longer than any batch. */
  #addToBatch({ text }: Datagram): boolean {
    if (this.#batching === undefined || this.queuedBytes > 0) return false;
    const { batch } = this.#batching;
    if (batch.add(text)) return true;
    this.flush();
    return this.queuedBytes === 0 && batch.add(text);
  }

  /** Now, or when the system takes it. */
  #sendByNode({ text, lines }: Datagram): void {
    this.#socket.send(text, this.#onSent);
    this.#counts.add('metrics_sent', lines);
  }

  #connected(): void {
    this.#isConnected = true;
    for (const datagram of this.#early) this.#send(datagram);
    this.#early = [];
    this.#earlyBytes = 0;
    // The flush that brought them may be over.
    this.flush();
  }

  #dropEarly(): void {
    for (const { lines } of this.#early) this.#counts.add('metrics_dropped', lines);
    this.#early = [];
    this.#earlyBytes = 0;
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }
}
