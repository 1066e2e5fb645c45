// A client of HTTP/2 as restart traffic needs it: it keeps to what a GOAWAY says, and knows when it was cut off.

import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RestartPlace } from './restart-traffic.ts';

/** Long answers come as quickly as over HTTP/1. */
const WINDOW_OCTETS = 1 << 20;
/** Of the GOAWAY that only announces another. */
const ANY_STREAM = 2 ** 31 - 1;

export class RestartHttp2Client {
  readonly #session: ClientHttp2Session;
  /** What the last GOAWAY says. */
  #lastStream = ANY_STREAM;

  /** @returns once both sides have said what they take. */
  static async open(place: RestartPlace): Promise<RestartHttp2Client> {
    const { secure } = place;
    const createConnection = () =>
      secure === undefined ? connect(place) : connectTls({ ...place, ...secure, ALPNProtocols: ['h2'] });
    const settings = { initialWindowSize: WINDOW_OCTETS };
    const session = connectHttp2('http://a.example', { createConnection, settings });
    session.once('connect', () => session.setLocalWindowSize(2 * WINDOW_OCTETS));
    // Comes with the streams that it breaks off, or before there are any.
    session.on('error', () => {});
    await once(session, 'remoteSettings');
    return new RestartHttp2Client(session);
  }

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
    session.on('goaway', (_code, lastStream) => {
      this.#lastStream = lastStream ?? ANY_STREAM;
    });
  }

  /** Requests may begin: no GOAWAY has come. */
  get takesMore(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /**
   * @returns the octets of the answer; null for a request that has never left: where it is begun in the turn in which a GOAWAY is
   * read, Node's client refuses it by itself. @throws Error for an answer that is not 200, and for one that is cut or refused.
   */
  async get(path: string): Promise<number | null> {
    const stream = this.#session.request({ ':path': path });
    let octets = 0;
    let status: unknown;
    stream.on('response', (headers) => {
      status = headers[':status'];
    });
    stream.on('data', (bytes: Buffer) => {
      octets += bytes.length;
    });
    // What it is about, its code says.
    stream.on('error', () => {});
    await new Promise<void>((resolve) => stream.once('close', resolve));
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && octets === 0 && status === undefined) {
      // A GOAWAY that has refused it is told behind it.
      await new Promise(setImmediate);
      if (this.#lastStream === ANY_STREAM && this.#session.closed) return null;
    }
    if (stream.rstCode !== 0) throw new Error(`reset with ${stream.rstCode} after ${octets} octets`);
    if (status !== 200) throw new Error(`status ${status}`);
    return octets;
  }

  close(): void {
    this.#session.close();
  }
}
