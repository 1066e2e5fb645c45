// An end of a connection as formats write it.

import type { Endpoint } from './facts.ts';

/** `1.2.3.4:80`, `[::1]:80`, a pipe's path; undefined when it is not known. */
export function endpointText({ ip, port }: Endpoint): string | undefined {
  if (ip === '') return undefined;
  if (port === 0) return ip;
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
