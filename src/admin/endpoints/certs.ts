// GET /certs: the TLS certificates in use, as an admin.v3.Certificates message whose defaults are printed.

import { type JsonObject, jsonInt64 } from '../../base/json.ts';
import { endpoint } from '../endpoint.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse } from '../response.ts';
import type { CertificateView } from '../views/index.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

export const CERTS = endpoint({
  path: '/certs',
  help: 'TLS certificates that are loaded',
  handle({ server }) {
    const nowMs = server.wallMs();
    const certificates = [...server.certificates()].map(({ authorities, chains }) => ({
      ca_cert: authorities.map((certificate) => certificateJson(certificate, nowMs)),
      cert_chain: chains.map((certificate) => certificateJson(certificate, nowMs)),
    }));
    return jsonResponse(jsonBody({ certificates }));
  },
});

function certificateJson(certificate: CertificateView, nowMs: number): JsonObject {
  const { path, serialNumber, dnsNames, uris, ipAddresses, validFromMs, expiresMs, ocsp } = certificate;
  return {
    path,
    serial_number: serialNumber.toLowerCase(),
    subject_alt_names: [
      ...dnsNames.map((dns) => ({ dns })),
      ...uris.map((uri) => ({ uri })),
      ...ipAddresses.map((address) => ({ ip_address: address })),
    ],
    // Whole days; 0 for one that has expired.
    days_until_expiration: jsonInt64(Math.max(0, Math.floor((expiresMs - nowMs) / DAY_MS))),
    valid_from: timestamp(validFromMs),
    expiration_time: timestamp(expiresMs),
    ...(ocsp === null ? {} : { ocsp_details: ocspJson(ocsp) }),
  };
}

function ocspJson({ validFromMs, expiresMs }: NonNullable<CertificateView['ocsp']>): JsonObject {
  return { valid_from: timestamp(validFromMs), ...(expiresMs === null ? {} : { expiration: timestamp(expiresMs) }) };
}

/** Certificates know whole seconds. */
function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
