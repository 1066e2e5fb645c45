// The domains of a route configuration: written correctly, and each claimed by one virtual host only.

import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { VirtualHost } from './messages.ts';

/** One table per route configuration. Host names compare without regard to case. */
export class DomainTable {
  /** Domain → the virtual host that claimed it first. */
  readonly #claims = new Map<string, VirtualHost>();
  readonly #faults: FaultSink;

  constructor(faults: FaultSink) {
    this.#faults = faults;
  }

  /** @returns the domains in lower case; those with a fault are left out. */
  claim(virtualHost: VirtualHost, at: string): readonly string[] {
    const accepted: string[] = [];
    for (const [index, written] of virtualHost.domains.entries()) {
      const domain = written.toLowerCase();
      const problem = syntaxProblem(domain) ?? this.#conflict(domain, virtualHost);
      if (problem !== undefined) {
        this.#faults.error(`${at}.domains[${index}]`, `${quote(written)} ${problem}`);
        continue;
      }
      this.#claims.set(domain, virtualHost);
      accepted.push(domain);
    }
    return accepted;
  }

  #conflict(domain: string, virtualHost: VirtualHost): string | undefined {
    const claim = this.#claims.get(domain);
    if (claim === undefined) return undefined;
    if (claim === virtualHost) return 'is listed twice';
    return `is already a domain of virtual host ${quote(claim.name)}`;
  }
}

/** A wildcard may stand at one end: `*.example.com`, `*-dev.example.com`, `example.*`, or alone. */
function syntaxProblem(domain: string): string | undefined {
  if (domain === '') return 'is empty; "*" matches every host';
  const wildcards = domain.split('*').length - 1;
  if (wildcards === 0 || domain === '*') return undefined;
  if (wildcards > 1) return 'has more than one wildcard';
  if (!domain.startsWith('*') && !domain.endsWith('*')) return 'has a wildcard that is not at one end';
  return undefined;
}
