// An end of a connection as formats write it.

import { isIP } from 'node:net';
import type { Endpoint } from './facts.ts';

/** `1.2.3.4:80`, `[::1]:80`, `1.2.3.4:0` where the port alone is not known, a pipe's path; undefined when nothing is. */
export function endpointText({ ip, port }: Endpoint): string | undefined {
  if (ip === '') return undefined;
  if (port === 0 && isIP(ip) === 0) return ip;
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
