// Upstreams whose moods change: they hang, reset, slow down, answer errors, vanish from DNS and come back. All listen on
// one port, each on a loopback address of its own, as DNS names them; in the process of the test.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DnsServer } from '../support/dns-server.ts';
import { answer } from './upstream-answers.ts';

export const CHAOS_NAME = 'chaos.test';
export const HEALTH_PATH = '/health';

type Mood = 'well' | 'slow' | 'hanging' | 'resetting' | 'failing' | 'gone';

const ILL: readonly Mood[] = ['slow', 'hanging', 'resetting', 'failing', 'gone'];
const ERRORS = [500, 502, 503];
const MAX_SLOW_MS = 200;
/** Of all; the others are well. */
const MAX_ILL_SHARE = 0.4;

const below = (limit: number): number => Math.floor(Math.random() * limit);

class ChaosUpstream {
  readonly ip: string;
  mood: Mood = 'well';
  /** Requests that came, but for those of health checks. */
  requests = 0;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(ip: string) {
    this.ip = ip;
  }

  /** @returns the port. */
  async listen(port: number): Promise<number> {
    const server = createServer((request, response) => void this.#serve(request, response));
    server.keepAliveTimeout = 300_000;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.listen(port, this.ip);
    await once(server, 'listening');
    this.#server = server;
    return (server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (this.#server === undefined) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isCheck = request.url === HEALTH_PATH;
    if (!isCheck) this.requests += 1;
    switch (this.mood) {
      case 'hanging':
        // Its connections end when it goes.
        request.resume();
        return;
      case 'resetting':
        request.socket.resetAndDestroy();
        return;
      case 'failing':
        request.resume();
        response.writeHead(ERRORS[below(ERRORS.length)]!, { 'x-soak-id': request.headers['x-soak-id'] ?? 'none' });
        response.end();
        return;
      case 'slow':
        await delay(below(MAX_SLOW_MS));
        break;
    }
    if (isCheck) response.end();
    else await answer(request, response);
  }
}

export class ChaosUpstreams {
  readonly #members: readonly ChaosUpstream[];
  readonly #dns: DnsServer;
  #port = 0;
  #changes = 0;

  private constructor(members: readonly ChaosUpstream[], dns: DnsServer) {
    this.#members = members;
    this.#dns = dns;
  }

  static async start(count: number): Promise<ChaosUpstreams> {
    const members = Array.from({ length: count }, (_, index) => new ChaosUpstream(`127.0.1.${index + 1}`));
    const upstreams = new ChaosUpstreams(members, await DnsServer.start());
    for (const member of members) upstreams.#port = await member.listen(upstreams.#port);
    upstreams.#announce();
    return upstreams;
  }

  get port(): number {
    return this.#port;
  }

  get dnsPort(): number {
    return this.#dns.port;
  }

  get size(): number {
    return this.#members.length;
  }

  /** How often one has changed its mood. */
  get changes(): number {
    return this.#changes;
  }

  /** What came to any of them, but for health checks. */
  get requests(): number {
    return this.#members.reduce((sum, { requests }) => sum + requests, 0);
  }

  /** One after the other falls ill in some way, or becomes well again. */
  async rave(isOver: () => boolean, pauseMs: number): Promise<void> {
    while (!isOver()) {
      const member = this.#members[below(this.#members.length)]!;
      const ill = this.#members.filter(({ mood }) => mood !== 'well').length;
      const mayFallIll = ill < MAX_ILL_SHARE * this.#members.length;
      await this.#change(member, member.mood === 'well' && mayFallIll ? ILL[below(ILL.length)]! : 'well');
      await delay(pauseMs);
    }
  }

  async recover(): Promise<void> {
    for (const member of this.#members) await this.#change(member, 'well');
  }

  /** Nothing listens any more, and no connection is left; DNS goes on. */
  async vanish(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.close()));
  }

  async close(): Promise<void> {
    await this.vanish();
    await this.#dns.close();
  }

  async #change(member: ChaosUpstream, mood: Mood): Promise<void> {
    const wasGone = member.mood === 'gone';
    if (mood === member.mood) return;
    member.mood = mood;
    this.#changes += 1;
    if (mood === 'gone') await member.close();
    if (wasGone) await member.listen(this.#port);
    if (wasGone || mood === 'gone') this.#announce();
  }

  #announce(): void {
    const ips = this.#members.filter(({ mood }) => mood !== 'gone').map(({ ip }) => ip);
    this.#dns.set(CHAOS_NAME, ips, 1);
  }
}
