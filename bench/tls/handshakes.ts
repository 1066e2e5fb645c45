// Handshakes with one contender, by a client that is a process of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pinned } from '../proxy/pinned-process.ts';

/** `full` and `resumed` connections are closed when they are secured; `request` is full, and closed with its answer. */
export type HandshakeKind = 'full' | 'resumed' | 'request';

/** What the client says. */
export interface Handshakes {
  readonly count: number;
  readonly seconds: number;
  /** Version and cipher; several where they were not always the same. */
  readonly agreed: string;
}

/** Servers may be able to more, which costs more; so nobody is asked for it. */
export const CURVE = 'X25519';

const CLIENT = path.join(import.meta.dirname, 'client.ts');

/** @throws Error when a connection failed. */
export async function runHandshakes(
  cores: string,
  port: number,
  kind: HandshakeKind,
  connections: number,
  seconds: number,
): Promise<Handshakes> {
  const [program, ...args] = pinned(cores, [
    process.execPath,
    CLIENT,
    ...[port, kind, connections, seconds].map(String),
  ]);
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`handshakes of kind ${kind} failed`);
  return JSON.parse(said) as Handshakes;
}
