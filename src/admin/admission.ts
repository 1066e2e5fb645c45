// Who may ask for what: the paths of allow_paths, the names by which the interface may be reached, methods, the read-only
// switch and other sites. Looks at a request before its endpoint does.

import type { IncomingHttpHeaders } from 'node:http';
import type { Address } from '../base/address.ts';
import type { Logger } from '../log/index.ts';
import { crossSiteRefusal, foreignNameRefusal } from './cross-site.ts';
import { type AdminResponse, textResponse } from './response.ts';

export interface AdmissionRules {
  /** Of paths without their query; all when undefined. */
  readonly allowsPath?: ((path: string) => boolean) | undefined;
  /** Nothing that changes the server is done. */
  readonly isReadOnly?: boolean;
  /** Names of this interface beyond those of this machine. */
  readonly names?: readonly string[];
}

export interface AdmittedRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** What stands in an absolute target, which counts for mutations, whatever the header says (RFC 9112 section 3.2.2). */
  readonly targetHost: string | undefined;
}

export class Admission {
  readonly #rules: AdmissionRules;
  readonly #names: readonly string[];
  readonly #log: Logger;

  constructor(rules: AdmissionRules, log: Logger) {
    this.#rules = rules;
    this.#names = (rules.names ?? []).map((name) => name.toLowerCase());
    this.#log = log;
  }

  /** @returns the answer to a request for what is not to be seen, whether or not there is such a path. */
  refuse({ path, headers }: AdmittedRequest, bound: Address): AdminResponse | undefined {
    const { allowsPath } = this.#rules;
    if (allowsPath !== undefined && !allowsPath(path)) {
      this.#log.info(`admin path "${path}" is not among allow_paths`);
      return textResponse(`request to path ${path} not allowed`, 403);
    }
    // Only the header: no browser sends an absolute target to what it does not take for its proxy.
    return this.#forbid(path, foreignNameRefusal(headers.host, { bound, names: this.#names }));
  }

  /** @returns the answer to a mutation that is not done. */
  refuseMutation({ path, method, headers, targetHost }: AdmittedRequest, bound: Address): AdminResponse | undefined {
    if (method !== 'POST') {
      this.#log.error(`admin path "${path}" mutates state, method=${method} rather than POST`);
      return textResponse(`Method ${method} not allowed, POST required.`, 400);
    }
    if (this.#rules.isReadOnly) return this.#forbid(path, 'the admin interface is read-only');
    const site = headers['sec-fetch-site'];
    const fetchSite = Array.isArray(site) ? site[0] : site;
    const origin = { host: targetHost ?? headers.host, origin: headers.origin, fetchSite };
    return this.#forbid(path, crossSiteRefusal(origin, { bound, names: this.#names }));
  }

  #forbid(path: string, reason: string | undefined): AdminResponse | undefined {
    if (reason === undefined) return undefined;
    this.#log.warning(`admin path "${path}" refused: ${reason}`);
    return textResponse(`${reason}\n`, 403);
  }
}
