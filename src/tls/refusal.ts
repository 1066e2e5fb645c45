// How it is told that a peer is refused whose handshake went well: to statistics, and to people.

import type { JudgedPeer } from './client-tls.ts';
import type { PeerFault } from './peer-verifier.ts';

type Refusal = NonNullable<PeerFault>;

/** Names in `ssl.*`. */
export const REFUSAL_STATS = {
  untrusted: 'fail_verify_error',
  hash: 'fail_verify_cert_hash',
  name: 'fail_verify_san',
} as const satisfies Readonly<Record<Refusal, string>>;

const TEXTS: Readonly<Record<Refusal, string>> = {
  untrusted: 'certificate verify failed',
  hash: 'certificate verify failed: no hash fits',
  name: 'certificate verify failed: no subject alternative name fits',
};

/** @param reason OpenSSL's word for what is wrong with the chain; empty for nothing. */
export function refusalText(fault: Refusal, { reason }: Pick<JudgedPeer, 'reason'>): string {
  return fault === 'untrusted' && reason !== '' ? `${TEXTS[fault]}: ${reason}` : TEXTS[fault];
}
