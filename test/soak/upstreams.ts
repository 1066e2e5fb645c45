// The upstreams of the soak: processes that are killed and started again while traffic runs, on ports that stay.

import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Program, startProgram } from '../support/child-process.ts';
import { ReservedPort } from '../support/reserved-port.ts';

const SERVER = path.join(import.meta.dirname, 'upstream-server.ts');

interface Upstream {
  readonly httpPort: number;
  readonly tcpPort: number;
  process: Program | null;
}

export class Upstreams {
  readonly #members: readonly Upstream[];
  /** A failure is excused for so long after the upstream is back. */
  readonly #excuseMs: number;
  #lastDisturbedMs = Number.NEGATIVE_INFINITY;
  #restarts = 0;

  private constructor(members: readonly Upstream[], excuseMs: number) {
    this.#members = members;
    this.#excuseMs = excuseMs;
  }

  static async start(count: number, excuseMs: number): Promise<Upstreams> {
    const ports = await reservedPorts(2 * count);
    const members = Array.from({ length: count }, (_, index) => {
      return { httpPort: ports[2 * index]!, tcpPort: ports[2 * index + 1]!, process: null };
    });
    const upstreams = new Upstreams(members, excuseMs);
    await upstreams.startAll();
    return upstreams;
  }

  get httpPorts(): readonly number[] {
    return this.#members.map(({ httpPort }) => httpPort);
  }

  get tcpPorts(): readonly number[] {
    return this.#members.map(({ tcpPort }) => tcpPort);
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Whether one of them was gone at any time since then, or not long before. */
  wereDisturbedSince(startMs: number): boolean {
    const isOneGone = this.#members.some(({ process }) => process === null);
    return isOneGone || this.#lastDisturbedMs + this.#excuseMs >= startMs;
  }

  async startAll(): Promise<void> {
    await Promise.all(this.#members.map(start));
    this.#lastDisturbedMs = performance.now();
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#members.map((member) => stop(member, 'SIGKILL')));
  }

  /** Kills one after the other, now and then all together, and starts them again. */
  async churn(isOver: () => boolean, pauseMs: number): Promise<void> {
    for (let round = 1; ; round += 1) {
      for (let waited = 0; waited < pauseMs && !isOver(); waited += 100) await delay(100);
      if (isOver()) return;
      const victims = round % 5 === 0 ? this.#members : [this.#members[round % this.#members.length]!];
      await Promise.all(victims.map((member) => stop(member, round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')));
      await delay(500);
      await Promise.all(victims.map(start));
      this.#lastDisturbedMs = performance.now();
      this.#restarts += victims.length;
    }
  }
}

async function start(member: Upstream): Promise<void> {
  const args = [SERVER, String(member.httpPort), String(member.tcpPort)];
  const child = startProgram(process.execPath, [...process.execArgv, ...args]);
  child.stderr.on('data', (text: string) => process.stderr.write(text));
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`an upstream ended with ${code}`))),
  ]);
  member.process = child;
}

async function stop(member: Upstream, signal: NodeJS.Signals): Promise<void> {
  const { process: child } = member;
  if (child === null) return;
  member.process = null;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** Held until this process ends, also while nobody listens on them. */
async function reservedPorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, () => ReservedPort.take()));
  return held.map(({ port }) => port);
}
