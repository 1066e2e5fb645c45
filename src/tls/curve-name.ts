// What statistics call the group of a key exchange. OpenSSL has names of its own for it, and another one in handshakes that resume
// a session of TLS 1.2; dashboards know those of the standards (RFC 8446 section 4.2.7, FIPS 186).

import type { TLSSocket } from 'node:tls';

const NAMES = new Map([
  ['prime256v1', 'P-256'],
  ['secp256r1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
  ['x25519', 'X25519'],
  ['x448', 'X448'],
]);

/** Undefined for a handshake without one. */
export function curveOf(socket: TLSSocket): string | undefined {
  const { name } = socket.getEphemeralKeyInfo() as { name?: string };
  return name === undefined ? undefined : (NAMES.get(name) ?? name);
}
