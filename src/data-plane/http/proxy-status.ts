// Proxy-Status (RFC 9209): why this proxy has answered in place of an upstream, or has met a fault on the way to one, in words
// that clients understand whichever proxy it is. Made of the response flags; requests that went well say nothing.
//
//   edge; error=destination_unavailable; details="no_healthy_upstream; UH"

import type { ProxyStatusSettings } from '../../snapshot/index.ts';
import { ResponseFlag, type ResponseFlagName, shortFlags } from '../response-flags.ts';
import type { LocalReply } from './local-reply.ts';

/** A type of RFC 9209 section 2.3 with the status that goes with it there; 0 where that depends. */
type ProxyError = readonly [type: string, status: number];

const UNAVAILABLE: ProxyError = ['destination_unavailable', 503];
const REFUSED: ProxyError = ['connection_refused', 502];
const CONNECT_TIMEOUT: ProxyError = ['connection_timeout', 504];
const TERMINATED: ProxyError = ['connection_terminated', 502];
const LIMIT: ProxyError = ['connection_limit_reached', 503];
const RESPONSE_TIMEOUT: ProxyError = ['http_response_timeout', 504];
const REQUEST_ERROR: ProxyError = ['http_request_error', 0];

/** Of several flags the first here counts. */
const ERRORS: readonly (readonly [flag: ResponseFlagName, error: ProxyError])[] = [
  ['DF', ['dns_error', 502]],
  ['LH', UNAVAILABLE],
  ['UH', UNAVAILABLE],
  ['NC', UNAVAILABLE],
  ['UT', RESPONSE_TIMEOUT],
  ['UPE', ['http_protocol_error', 502]],
  ['LR', CONNECT_TIMEOUT],
  ['UR', TERMINATED],
  ['UF', REFUSED],
  ['UC', TERMINATED],
  ['UO', LIMIT],
  ['NR', ['destination_not_found', 500]],
  ['RL', LIMIT],
  ['RLSE', LIMIT],
  ['UAEX', ['http_request_denied', 403]],
  ['URX', UNAVAILABLE],
  ['SI', RESPONSE_TIMEOUT],
  ['UMSDR', RESPONSE_TIMEOUT],
  ['DT', RESPONSE_TIMEOUT],
  ['IH', REQUEST_ERROR],
  ['DPE', REQUEST_ERROR],
  ['NFCF', ['proxy_configuration_error', 500]],
  ['OM', UNAVAILABLE],
  ['DO', UNAVAILABLE],
];
/** In details, of a connection that could not be had in time: it has the flag of one that was refused. */
const TIMED_OUT = 'connection_timeout';
const TOKEN = /^[A-Za-z*][\w:/!#$%&'*+.^`|~-]*$/;

export class ProxyStatus {
  /** As an item of a list (RFC 8941): a token where it can be one, else a string. */
  readonly #name: string;
  readonly #settings: ProxyStatusSettings;

  constructor(settings: ProxyStatusSettings) {
    this.#settings = settings;
    this.#name = TOKEN.test(settings.name) ? settings.name : quoted(settings.name);
  }

  /**
   * @param flags bits of ResponseFlag. @param details of the response, as access logs have them.
   * @returns empty for a request that has met no fault of these kinds.
   */
  value(flags: number, details: string): string {
    const error = errorOf(flags, details);
    if (error === undefined) return '';
    const { hasDetails, hasFlags } = this.#settings;
    const said = [details, hasFlags ? shortFlags(flags) : ''].filter((part) => part !== '');
    const suffix = hasDetails && said.length > 0 ? `; details=${quoted(said.join('; '))}` : '';
    return `${this.#name}; error=${error[0]}${suffix}`;
  }

  /** A line of a reply's head, or none. */
  line(flags: number, details: string): string {
    const value = this.value(flags, details);
    return value === '' ? '' : `proxy-status: ${value}\r\n`;
  }

  /** The reply under the status that its fault stands for, where replies are to have that. */
  restate(reply: LocalReply, flags: number): LocalReply {
    const status = this.#settings.recommendsStatus ? (errorOf(flags, reply.details)?.[1] ?? 0) : 0;
    return status === 0 || status === reply.status ? reply : { ...reply, status };
  }
}

function errorOf(flags: number, details: string): ProxyError | undefined {
  const error = ERRORS.find(([flag]) => (flags & ResponseFlag[flag]) !== 0)?.[1];
  return error === REFUSED && details.includes(TIMED_OUT) ? CONNECT_TIMEOUT : error;
}

/** What cannot stand in a string becomes a question mark. */
function quoted(text: string): string {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
