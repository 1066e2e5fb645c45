// GET /certs: the TLS certificates in use.

import { endpoint } from '../endpoint.ts';

export const CERTS = endpoint({ path: '/certs', help: 'TLS certificates that are loaded' });
