// Clients that never rest while weirs take over from one another, and know what has failed: one that was refused, reset, cut
// off, or closed without having been told so.

import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { RestartHttp2Client } from './restart-http2.ts';
import { PIECE } from './restart-row.ts';

/** Where a client connects to. */
export type RestartPlace = NetConnectOpts & {
  /** Absent for one that speaks plainly. */
  readonly secure?: ConnectionOptions;
};

export interface TrafficCounts {
  requests: number;
  connections: number;
  /** Bytes of long streams. */
  streamed: number;
  readonly failures: string[];
}

/** Between two of what a client does: they are many, and the weirs need the processors. */
const USUAL_PAUSE_MS = 20;
/** At a time on one connection. */
const STREAMS = 4;

export class RestartTraffic implements AsyncDisposable {
  readonly counts: TrafficCounts = { requests: 0, connections: 0, streamed: 0, failures: [] };
  readonly #pauseMs: number;
  #isStopping = false;
  readonly #running: Promise<void>[] = [];

  /** @param pauseMs of each client between two things that it does; 0 for none. */
  constructor(pauseMs = USUAL_PAUSE_MS) {
    this.#pauseMs = pauseMs;
  }

  /** Requests over one connection until its answer says that it is to close, then over another. */
  keepAlive(place: RestartPlace, clients: number): void {
    this.#run('keep-alive', clients, async () => {
      const connection = await this.#open(place);
      for (let isOpen = true; isOpen && !this.#isStopping; ) {
        const answer = await connection.ask('GET / HTTP/1.1\r\nhost: a\r\n\r\n', '\r\n\r\nok');
        isOpen = !/\r\nconnection: close\r\n/i.test(answer);
        this.counts.requests += 1;
        await this.#pause();
      }
      connection.close();
    });
  }

  /** One request for each connection. */
  fresh(place: RestartPlace, clients: number): void {
    this.#run('fresh', clients, async () => {
      const connection = await this.#open(place);
      await connection.ask('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', '\r\n\r\nok');
      this.counts.requests += 1;
      connection.close();
    });
  }

  /** Some exchanges over each connection. */
  echo(place: RestartPlace, clients: number): void {
    this.#run('echo', clients, async () => {
      const connection = await this.#open(place);
      for (let round = 0; round < 5; round++) await connection.ask(`round ${round}.`, `round ${round}.`);
      connection.close();
    });
  }

  /** Long answers, one after the other. */
  stream(place: RestartPlace, clients: number, mib: number): void {
    this.#run('stream', clients, async () => {
      const connection = await this.#open(place);
      const request = `GET /mib/${mib} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`;
      const bytes = await connection.askForBytes(request);
      if (bytes < mib * PIECE.length) throw new Error(`only ${bytes} bytes of ${mib} MiB`);
      this.counts.requests += 1;
      this.counts.streamed += bytes;
    });
  }

  /** Requests over HTTP/2, several at a time, until the connection takes no more, then over another. */
  http2(place: RestartPlace, clients: number): void {
    this.#run('http2', clients, async () => {
      const client = await this.#openHttp2(place);
      while (client.takesMore && !this.#isStopping) {
        const answers = await Promise.all(Array.from({ length: STREAMS }, () => client.get('/')));
        const taken = answers.filter((octets) => octets !== null);
        this.counts.requests += taken.length;
        if (taken.length < STREAMS) break;
        await this.#pause();
      }
      client.close();
    });
  }

  /** Long answers over HTTP/2, several at a time. */
  http2Stream(place: RestartPlace, clients: number, mib: number): void {
    this.#run('http2 stream', clients, async () => {
      const client = await this.#openHttp2(place);
      const answers = await Promise.all([client.get(`/mib/${mib}`), client.get(`/mib/${mib}`)]);
      for (const octets of answers) {
        if (octets === null) continue;
        if (octets !== mib * PIECE.length) throw new Error(`only ${octets} octets of ${mib} MiB`);
        this.counts.requests += 1;
        this.counts.streamed += octets;
      }
      client.close();
    });
  }

  /** Resolves when what runs has ended. */
  async stop(): Promise<TrafficCounts> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    return this.counts;
  }

  /** A test that fails in between ends, too. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #run(kind: string, clients: number, round: () => Promise<void>): void {
    for (let client = 0; client < clients; client++) this.#running.push(this.#repeat(kind, round));
  }

  async #repeat(kind: string, round: () => Promise<void>): Promise<void> {
    while (!this.#isStopping) {
      try {
        await round();
      } catch (error) {
        this.counts.failures.push(`${kind}: ${String(error)}`);
      }
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    if (this.#pauseMs > 0) await delay(this.#pauseMs);
    // Also a client that never rests leaves room for what comes in.
    else await new Promise(setImmediate);
  }

  async #openHttp2(place: RestartPlace): Promise<RestartHttp2Client> {
    const client = await RestartHttp2Client.open(place);
    this.counts.connections += 1;
    return client;
  }

  async #open(place: RestartPlace): Promise<Connection> {
    const connection = await Connection.open(place);
    this.counts.connections += 1;
    return connection;
  }
}

class Connection {
  readonly #socket: Socket;
  #text = '';
  #bytes = 0;
  #keepsText = true;
  #error: Error | undefined;
  #isEnded = false;
  #wake = (): void => {};

  static open(place: RestartPlace): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const { secure } = place;
      const socket = secure === undefined ? connect(place) : connectTls({ ...place, ...secure });
      socket.once('error', reject);
      socket.once(secure === undefined ? 'connect' : 'secureConnect', () => {
        socket.off('error', reject);
        resolve(new Connection(socket));
      });
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => {
      this.#bytes += bytes.length;
      if (this.#keepsText) this.#text += bytes.toString('latin1');
      this.#wake();
    });
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', () => {
      this.#isEnded = true;
      this.#wake();
    });
  }

  /** @returns what has come up to the end of the answer. */
  async ask(question: string, answerEnd: string): Promise<string> {
    this.#socket.write(question);
    while (!this.#text.includes(answerEnd)) await this.#more();
    const answer = this.#text;
    this.#text = '';
    return answer;
  }

  /** @returns how many have come until the connection ended. */
  async askForBytes(question: string): Promise<number> {
    this.#keepsText = false;
    this.#socket.write(question);
    while (!this.#isEnded) await this.#more(true);
    return this.#bytes;
  }

  close(): void {
    this.#socket.destroy();
  }

  async #more(mayEnd = false): Promise<void> {
    if (this.#error) throw this.#error;
    if (this.#isEnded && !mayEnd) throw new Error(`closed after ${JSON.stringify(this.#text)}`);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    if (this.#error) throw this.#error;
  }
}
