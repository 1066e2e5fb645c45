// The sockets of hot restart: what they are called, and how one is bound. Three processes at most have names at a time, so
// that a fourth cannot be started while the first is still there.
//
//   <socket path>_parent_<base id * 10 + epoch mod 3>   where a successor connects
//   <socket path>_child_<base id * 10 + epoch mod 3>    where this process gets descriptors from its parent

import { chmodSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { MAX_PIPE_PATH_BYTES, systemPath } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { removeStaleSocket } from '../../base/stale-socket.ts';

export type Role = 'parent' | 'child';

export interface EpochPlace {
  readonly socketPath: string;
  /** Of a socket outside of the abstract namespace. */
  readonly socketMode: number;
  readonly baseId: number;
  readonly epoch: number;
}

const PROCESSES_AT_A_TIME = 3;

export function socketName(role: Role, { socketPath, baseId, epoch }: EpochPlace): string {
  return `${socketPath}_${role}_${baseId * 10 + (epoch % PROCESSES_AT_A_TIME)}`;
}

export function isAbstract(name: string): boolean {
  return name.startsWith('@');
}

/** @returns a server that listens at the name of a parent. @throws WeirError WEIR_HOT_RESTART when somebody else does, WEIR_SOCKET_PATH. */
export async function listenAsParent(place: EpochPlace): Promise<Server> {
  const name = socketName('parent', place);
  checkLength(place, name);
  if (!isAbstract(name) && !(await isAnswered(name))) await removeStaleSocket(name);
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // Before anything else runs on this thread: nobody who must not shall connect in between.
      server.listen(systemPath(name), () => {
        if (!isAbstract(name)) chmodSync(name, place.socketMode);
        resolve();
      });
    });
  } catch (error) {
    server.close();
    throw bindError('parent', place, (error as NodeJS.ErrnoException).errno ?? 0, error);
  }
  // Accepting may fail for want of descriptors; it goes on.
  server.on('error', () => {});
  return server.unref();
}

function checkLength({ socketPath }: EpochPlace, name: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes <= MAX_PIPE_PATH_BYTES) return;
  const ending = name.slice(socketPath.length);
  const most = MAX_PIPE_PATH_BYTES - ending.length;
  const text = `socket-path '${socketPath}' is too long: it may have ${most} bytes, which are ${MAX_PIPE_PATH_BYTES} with '${ending}' behind it, and has ${bytes - ending.length}`;
  throw new WeirError('WEIR_SOCKET_PATH', text);
}

/** @param errno of the system, below 0. */
export function bindError(role: Role, place: EpochPlace, errno: number, cause?: unknown): WeirError {
  const { baseId, epoch } = place;
  const id = epoch % PROCESSES_AT_A_TIME;
  const text =
    errno === -constants.errno.EADDRINUSE
      ? `unable to bind domain socket with base_id=${baseId}, id=${id}, errno=${-errno} (see --base-id option)`
      : `unable to bind domain socket ${socketName(role, place)}: ${getSystemErrorName(errno)}${folderHint(errno)} (see --socket-path option)`;
  return new WeirError('WEIR_HOT_RESTART', text, { cause });
}

/** Node says EACCES of a missing folder, too. */
function folderHint(errno: number): string {
  const { EACCES, ENOENT } = constants.errno;
  return errno === -EACCES || errno === -ENOENT ? '; its folder has to be there and writable' : '';
}

/** Whether the process of that place is gone, or goes within the time: one that dies closes its sockets one after the other. */
export function isLeft(place: EpochPlace, clock: Clock, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(systemPath(socketName('parent', place)));
    const cancel = clock.after(limitMs, () => {
      resolve(false);
      socket.destroy();
    });
    // A living process accepts the connection, and waits for a question.
    socket.on('error', () => {});
    socket.on('close', () => {
      cancel();
      resolve(true);
    });
  });
}

/** @param code of the error that connecting to a name has met. */
export function isNobodyThere(code: string | undefined): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT';
}

/** Whether a process listens there; the socket of one that was killed lies about. */
function isAnswered(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(systemPath(name));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(!isNobodyThere(code)));
  });
}
