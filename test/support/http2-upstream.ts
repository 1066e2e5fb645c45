// An HTTP/2 server of Node's own, and a proxy in front of it whose cluster speaks HTTP/2.

import { once } from 'node:events';
import http2, { type Http2Server, type ServerHttp2Session, type ServerHttp2Stream, type Settings } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { Http2Settings, HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { closeAtEnd } from './close-at-end.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback, routeTo } from './data-plane.ts';
import { type Frame, frame, readFrames } from './http2-session.ts';
import { WireUpstream } from './wire.ts';

export type OnStream = (stream: ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

export class Http2Upstream {
  readonly server: Http2Server;
  /** In the order in which they came. */
  readonly sessions: ServerHttp2Session[] = [];
  readonly streams: ServerHttp2Stream[] = [];

  static async start(t: TestContext, onStream: OnStream, settings: Settings = {}): Promise<Http2Upstream> {
    const upstream = new Http2Upstream(onStream, settings);
    upstream.server.listen(0, '127.0.0.1');
    await once(upstream.server, 'listening');
    const forget = closeAtEnd(() => upstream.close());
    t.after(() => {
      upstream.close();
      forget();
    });
    return upstream;
  }

  private constructor(onStream: OnStream, settings: Settings) {
    this.server = http2.createServer({ settings });
    this.server.on('session', (session) => {
      this.sessions.push(session);
      session.on('error', () => {});
    });
    this.server.on('stream', (stream: ServerHttp2Stream, headers) => {
      this.streams.push(stream);
      stream.on('error', () => {});
      onStream(stream, headers);
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    for (const session of this.sessions) session.destroy();
    this.server.close();
  }
}

/** Sends back what comes. */
export const ECHO: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.pipe(stream);
};

/** What a request came with, when all of it is there. */
export function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const parts: Buffer[] = [];
  return new Promise((resolve, reject) => {
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => resolve(Buffer.concat(parts)));
    stream.on('error', reject);
  });
}

export interface Http2ProxyOptions {
  readonly http2?: Partial<Http2Settings>;
  readonly cluster?: ClusterOverrides;
  readonly manager?: Partial<HttpConnectionManagerSettings>;
}

export interface Http2Proxy {
  readonly proxy: DataPlaneFixture;
  /** Of its listener. */
  readonly port: number;
}

/** A proxy whose cluster `web` has one host, there. */
export async function http2Proxy(
  t: TestContext,
  upstreamPort: number,
  { http2: settings, cluster, manager }: Http2ProxyOptions = {},
): Promise<Http2Proxy> {
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstreamPort)], {
    http2: { settings: { ...DEFAULT_HTTP2_SETTINGS, ...settings }, use: 'always' },
    ...cluster,
  });
  const port = await proxy.http([routeTo('web')], manager);
  t.after(() => proxy.close());
  return { proxy, port };
}

/** An upstream by frames: says what a test has it say, once for each frame that comes. */
export class FrameUpstream {
  /** Of all its connections, in the order in which they came. */
  readonly frames: Frame[] = [];
  readonly #wire: WireUpstream;

  /** @param answer what a frame brings about, perhaps nothing. @param settings payload of its own. */
  static async start(
    t: TestContext,
    answer: (frame: Frame, connection: number) => Buffer | null,
    settings: readonly number[] = [],
  ): Promise<FrameUpstream> {
    const frames: Frame[] = [];
    const wire = await WireUpstream.start((socket, index) => {
      let received = Buffer.alloc(0);
      let at = PREFACE.length;
      socket.write(frame(FrameType.SETTINGS, 0, 0, settings));
      socket.on('end', () => socket.end());
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        while (received.length >= at + 9 && received.length >= at + 9 + received.readUIntBE(at, 3)) {
          const end = at + 9 + received.readUIntBE(at, 3);
          const [next] = readFrames(received.subarray(at, end));
          at = end;
          frames.push(next!);
          const said = answer(next!, index);
          if (said !== null) socket.write(said);
        }
      });
    });
    t.after(() => wire.close());
    return new FrameUpstream(wire, frames);
  }

  private constructor(wire: WireUpstream, frames: Frame[]) {
    this.#wire = wire;
    this.frames = frames;
  }

  get port(): number {
    return this.#wire.port;
  }

  get sockets(): readonly Socket[] {
    return this.#wire.sockets;
  }

  of(type: number): Frame[] {
    return this.frames.filter((each) => each.type === type);
  }
}
