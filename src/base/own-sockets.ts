// Sockets that are made by system calls, because Node sets no option before it binds or connects. Node then takes over
// the descriptor. Either thread.

import { getSystemErrorName } from 'node:util';
import { type IpAddress, systemPath } from './address.ts';
import { familyOf, type IpFamily } from './address-families.ts';
import { WeirError } from './errors.ts';
import type { SystemCalls } from './system-calls.ts';

/** An option by the numbers of the system. */
export interface RawSocketOption {
  readonly level: number;
  readonly name: number;
  /** An int, or bytes in hexadecimal. */
  readonly value: number | string;
}

/** How a socket begins. */
export interface SocketSource {
  /** Undefined leaves it to the system. */
  readonly address: IpAddress | undefined;
  /** In this order. */
  readonly beforeBind: readonly RawSocketOption[];
  readonly afterBind: readonly RawSocketOption[];
}

/** How a socket that listens begins; each list in its order. */
export interface ListeningOptions {
  readonly beforeBind: readonly RawSocketOption[];
  readonly afterBind: readonly RawSocketOption[];
  readonly afterListen: readonly RawSocketOption[];
}

/** By the family of the address that is connected to. */
export type SourcesByFamily = Readonly<Record<IpFamily, SocketSource>>;

/** Where connections come from. */
export interface ConnectionOrigin {
  /** Undefined leaves it to the system. */
  readonly sourceAddress: IpAddress | undefined;
  /** Takes the place of `sourceAddress`; absent where that is enough. */
  readonly sourcesByFamily?: SourcesByFamily;
}

/** What net.Socket and its `connect` are told of an origin. */
export type OriginOptions =
  | { readonly localAddress?: string; readonly localPort?: number }
  /** Nothing can be read before it is connected, so it must not be tried. */
  | { readonly fd: number; readonly manualStart: true };

export function needsSystemCalls({ sourcesByFamily: sources }: ConnectionOrigin): boolean {
  return sources !== undefined && (hasOptions(sources.v4) || hasOptions(sources.v6));
}

/** @param what needs the calls. @throws WeirError WEIR_SOCKET_OPTIONS where there are none. */
export function checkSystemCalls(what: string, calls: SystemCalls | undefined): asserts calls is SystemCalls {
  if (calls !== undefined) return;
  const text = `${what} has socket options, which need Linux and a Node with its foreign function interface`;
  throw new WeirError('WEIR_SOCKET_OPTIONS', text);
}

/**
 * Begins a connection to an address; where options are asked for, with a descriptor that the caller owns.
 * @throws a system error that says in `syscall` what has failed.
 */
export function beginConnection(
  ip: string,
  { sourceAddress, sourcesByFamily }: ConnectionOrigin,
  calls: SystemCalls | undefined,
): OriginOptions {
  const family = familyOf(ip);
  const source = sourcesByFamily?.[family];
  const address = source === undefined ? sourceAddress : source.address;
  if (source === undefined || !hasOptions(source)) {
    return address === undefined ? {} : { localAddress: address.ip, localPort: address.port };
  }
  checkSystemCalls('a connection', calls);
  return { fd: openSocket(calls, family, source), manualStart: true };
}

/** @returns the descriptor of a socket that does not wait. @throws as `beginConnection`. */
export function openSocket(calls: SystemCalls, family: IpFamily, source: SocketSource): number {
  const descriptor = calls.openSocket(family);
  if (descriptor < 0) throw systemError('socket', -descriptor);
  try {
    setOptions(calls, descriptor, source.beforeBind);
    if (source.address !== undefined) {
      const { ip, port } = source.address;
      mustWork('bind', calls.bind(descriptor, ip, port));
    }
    setOptions(calls, descriptor, source.afterBind);
  } catch (error) {
    calls.close(descriptor);
    throw error;
  }
  return descriptor;
}

/**
 * @param path a file's, or `@name` for one of Linux' abstract namespace.
 * @returns the descriptor of a unix socket that does not wait; whoever closes it removes the path. @throws as `beginConnection`.
 */
export function bindPath(calls: SystemCalls, path: string): number {
  const descriptor = calls.bindStreamSocket(systemPath(path));
  if (descriptor < 0) throw systemError('bind', -descriptor);
  return descriptor;
}

/** @throws as `beginConnection`. */
export function setOptions(calls: SystemCalls, descriptor: number, options: readonly RawSocketOption[]): void {
  for (const { level, name, value } of options) {
    const bytes = typeof value === 'number' ? intBytes(value) : Buffer.from(value, 'hex');
    mustWork('setsockopt', calls.setOption(descriptor, level, name, bytes), ` of option ${level}/${name}`);
  }
}

function hasOptions({ beforeBind, afterBind }: SocketSource): boolean {
  return beforeBind.length > 0 || afterBind.length > 0;
}

function intBytes(value: number): Buffer {
  const bytes = Buffer.alloc(Int32Array.BYTES_PER_ELEMENT);
  bytes.writeInt32LE(value | 0);
  return bytes;
}

function mustWork(syscall: string, result: number, detail = ''): void {
  if (result < 0) throw systemError(syscall, -result, detail);
}

/** As Node has them. */
function systemError(syscall: string, number: number, detail = ''): NodeJS.ErrnoException {
  const code = getSystemErrorName(-number);
  return Object.assign(new Error(`${syscall} ${code}${detail}`), { code, errno: -number, syscall });
}
