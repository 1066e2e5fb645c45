// Why a request got no answer from its upstream. The texts appear in reply bodies and response code details,
// as the reference spells them.

import { tlsFailureOf } from '../../../tls/failure.ts';

export type UpstreamFailure =
  | 'overflow'
  | 'local connection failure'
  | 'remote connection failure'
  | 'connection timeout'
  | 'connection termination'
  | 'local reset'
  | 'remote reset'
  | 'remote refused stream reset'
  | 'protocol error';

/** Why a pool gave no connection: beside the failures of one, that circuit breakers leave no place for another pool. */
export type PoolFailure = UpstreamFailure | 'no pool';

const LOCAL_CAUSES: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EINVAL',
  'EAFNOSUPPORT',
]);
/** Calls of which the other end knows nothing. */
const LOCAL_CALLS: ReadonlySet<string> = new Set(['socket', 'setsockopt', 'bind']);

/** Whether this machine or the other end refused. */
export function connectFailure(error: NodeJS.ErrnoException | null): UpstreamFailure {
  const { code = '', syscall = '' } = error ?? {};
  return LOCAL_CAUSES.has(code) || LOCAL_CALLS.has(syscall) ? 'local connection failure' : 'remote connection failure';
}

/** True when the configured source address could not be used. */
export function isBindFailure(error: NodeJS.ErrnoException | null): boolean {
  return error?.syscall === 'bind';
}

/** What the transport says of the failure, with the system's error number; empty when it says nothing. */
export function transportDetail(error: NodeJS.ErrnoException | null): string {
  const tls = tlsFailureOf(error);
  if (tls !== '') return tls;
  return error?.errno === undefined ? '' : `delayed connect error: ${Math.abs(error.errno)}`;
}
