// One way to ask a host how it is. A probe belongs to one host and may keep a connection from check to check. It does
// not watch the time: its owner does. Main thread.
//
//   IDLE ──check──► RUNNING ──result told──► IDLE
//                      └──abort──► IDLE, nothing told

import { connect, Socket } from 'node:net';
import { type Address, systemPath } from '../../../base/address.ts';
import { beginConnection, type ConnectionOrigin } from '../../../base/own-sockets.ts';
import type { SystemCalls } from '../../../base/system-calls.ts';
import type { ProbeSecurity } from './probe-tls.ts';

export type ProbeResult =
  | { readonly kind: 'passed'; readonly isDegraded: boolean; readonly detail: string }
  /** The host has answered, and not as it should. */
  | {
      readonly kind: 'wrong';
      readonly isRetriable: boolean;
      readonly isImmediate: boolean;
      readonly detail: string;
    }
  /** The connection failed, or what came over it was no answer. */
  | { readonly kind: 'broken'; readonly detail: string };

export interface ProbeTarget {
  readonly address: Address;
  /** Of HTTP requests. */
  readonly authority: string;
}

export interface Probe {
  /** @param onResult called once, never before this has returned, unless the check is aborted. */
  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void;
  /** Ends the check under way and its connection. Idempotent. */
  abort(): void;
}

/** Where the connections of probes come from. */
export interface ProbeOrigin extends ConnectionOrigin {
  /** For sockets with options of their own. */
  readonly systemCalls: SystemCalls | undefined;
  /** What each connection begins with. */
  readonly preamble?: Buffer;
  /** How those to the host are secured now; undefined where they are plain. */
  readonly security?: () => ProbeSecurity | undefined;
}

/** @param origin undefined leaves it to the system. @returns a socket that is to fail in a moment, or connects. */
export function connectTo(address: Address, origin: ProbeOrigin | undefined): Socket {
  if (address.kind === 'pipe') return connect({ path: systemPath(address.path) });
  const { ip, port } = address;
  if (origin === undefined) return connect({ host: ip, port });
  try {
    return connect({ host: ip, port, ...beginConnection(ip, origin, origin.systemCalls) });
  } catch (error) {
    return new Socket().destroy(error as Error);
  }
}

export function passed(detail: string, isDegraded = false): ProbeResult {
  return { kind: 'passed', isDegraded, detail };
}

export function wrong(
  detail: string,
  { isRetriable = false, isImmediate = false }: { readonly isRetriable?: boolean; readonly isImmediate?: boolean } = {},
): ProbeResult {
  return { kind: 'wrong', isRetriable, isImmediate, detail };
}

export function broken(detail: string): ProbeResult {
  return { kind: 'broken', detail };
}

/** What an operator recognizes of a failed connection. */
export function faultOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
