// The identifier of a session, as logs give it: so a connection is found again that goes on with a session of another one.
//
// TLS 1.3 has none on the wire; what OpenSSL puts in its place is known to one side alone, and changes with each ticket. Of older
// protocols it is what the server has said, or the hash of the ticket. A handshake that gives a ticket out has none at the server.
//
// Node tells it as part of what a session is kept as. What it has documented, `getSession`, puts a wrapping of its own around
// that for clients, so its handle is asked. To read it takes 2 us, which handshakes are spared unless a format asks for it. Where a release of Node does otherwise there is no identifier, and a test fails.

import type { TLSSocket } from 'node:tls';
import { derElementAt } from '../base/der.ts';

interface Handle {
  /** OpenSSL's form of a session (DER), or undefined for none. */
  getSession?(): Buffer | undefined;
}

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const OCTETS = 0x04;
/** What comes first in a session: version of the form, version of the protocol, cipher, identifier. */
const FIRST_PARTS = [INTEGER, INTEGER, OCTETS, OCTETS];
/** RFC 5246 section 7.4.1.2. */
const MAX_ID_BYTES = 32;

let areWanted = false;

/** Somebody shows identifiers from now on, perhaps of connections that have ended by then. Of this thread. */
export function wantSessionIds(): void {
  areWanted = true;
}

export function areSessionIdsWanted(): boolean {
  return areWanted;
}

/** Lower-case hex; empty for a session without one. @param socket that has just shaken hands; closed, it tells nothing. */
export function sessionIdOf(socket: TLSSocket): string {
  if (socket.getProtocol() === 'TLSv1.3') return '';
  const handle = (socket as unknown as { readonly _handle: Handle | null })._handle;
  const session = handle?.getSession?.();
  return session === undefined ? '' : idIn(session);
}

/** @param session in DER. @returns empty for what is none. */
export function idIn(session: Buffer): string {
  const sequence = derElementAt(session, 0);
  if (sequence?.tag !== SEQUENCE) return '';
  let at = sequence.start;
  let id = '';
  for (const tag of FIRST_PARTS) {
    const part = derElementAt(session, at, sequence.end);
    // None of these parts is longer.
    if (part?.tag !== tag || part.end - part.start > MAX_ID_BYTES) return '';
    id = session.toString('hex', part.start, part.end);
    at = part.end;
  }
  return id;
}
