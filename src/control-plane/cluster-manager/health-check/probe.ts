// One way to ask a host how it is. A probe belongs to one host and may keep a connection from check to check. It does
// not watch the time: its owner does. Main thread.
//
//   IDLE ──check──► RUNNING ──result told──► IDLE
//                      └──abort──► IDLE, nothing told

import { connect, type Socket } from 'node:net';
import { type Address, type IpAddress, systemPath } from '../../../base/address.ts';

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

/** @param source address that connections come from; undefined leaves it to the system. */
export function connectTo(address: Address, source: IpAddress | undefined): Socket {
  if (address.kind === 'pipe') return connect({ path: systemPath(address.path) });
  const from = source === undefined ? {} : { localAddress: source.ip, localPort: source.port };
  return connect({ host: address.ip, port: address.port, ...from });
}

export function passed(detail: string, isDegraded = false): ProbeResult {
  return { kind: 'passed', isDegraded, detail };
}

export function broken(detail: string): ProbeResult {
  return { kind: 'broken', detail };
}

/** What an operator recognizes of a failed connection. */
export function faultOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
