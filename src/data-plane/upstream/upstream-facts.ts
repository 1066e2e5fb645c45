// The upstream end of a stream or connection as formats ask about it.

import type { Endpoint, UpstreamFacts } from '../format/facts.ts';
import type { Host } from './host.ts';

const UNKNOWN: Endpoint = { ip: '', port: 0 };

export class UpstreamEnd implements UpstreamFacts {
  readonly remote: Endpoint;
  readonly hostname: string;
  readonly protocol: string;
  local: Endpoint = UNKNOWN;

  constructor({ address, hostname }: Host, protocol: string) {
    this.remote = address.kind === 'pipe' ? { ip: address.path, port: 0 } : address;
    this.hostname = hostname;
    this.protocol = protocol;
  }

  /** Which end of ours the bytes go through, once there is a connection. */
  noteLocal(endpoint: Endpoint): void {
    this.local = endpoint;
  }
}
