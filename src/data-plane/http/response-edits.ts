// What a response's head becomes on its way to the client. Hop-by-hop fields are dropped by the parser already. The
// order is the reference's: what the router knows, what the route asks for, what the connection manager insists on.

import type { HttpConnectionManagerSettings, ServerHeaderTransformation } from '../../snapshot/index.ts';
import { HEADER_ID, PreparedLines, type ResponseHead } from '../../wasm/http1.ts';
import { ProperCase } from './proper-case.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import { ProxyStatus } from './proxy-status.ts';

const SERVICE_TIME = HEADER_ID['x-proxy-upstream-service-time'];

/** Lines that are the same for every response of a connection manager. */
export class ResponseLines {
  readonly server: PreparedLines;
  readonly via: PreparedLines | null;
  /** What every local reply gets beside its own: Server, where it is not the upstream's affair, and Via. */
  readonly local: string;
  readonly close = new PreparedLines(['connection: close']);
  readonly keepAlive = new PreparedLines(['connection: keep-alive']);
  readonly chunked = new PreparedLines(['transfer-encoding: chunked']);
  readonly names: ProxyHeaders;
  /** Null where faults are not told in Proxy-Status. */
  readonly proxyStatus: ProxyStatus | null;
  /** What HTTP/1 clients get their heads in; null for as they are. */
  readonly properCase: ProperCase | null;
  readonly #viaText: string;
  readonly #serverHeader: ServerHeaderTransformation;

  constructor(settings: HttpConnectionManagerSettings, names: ProxyHeaders) {
    this.names = names;
    this.properCase = settings.http1?.hasProperCase ? new ProperCase() : null;
    this.proxyStatus = settings.proxyStatus === undefined ? null : new ProxyStatus(settings.proxyStatus);
    this.server = new PreparedLines([`server: ${settings.serverName}`]);
    this.via = settings.via === '' ? null : new PreparedLines([`via: ${settings.via}`]);
    this.local = (settings.serverHeader === 'pass-through' ? '' : this.server.text) + (this.via?.text ?? '');
    this.#viaText = settings.via;
    this.#serverHeader = settings.serverHeader;
  }

  /**
   * The last edits of a response that passes through.
   * @param isEdited a route has changed fields: what was received is no longer what there is.
   */
  apply(head: ResponseHead, date: string, isEdited: boolean): void {
    this.#applyServer(head, isEdited);
    const hasDate = isEdited ? head.hasKnownField(HEADER_ID.date, 'date') : head.has(HEADER_ID.date);
    if (!hasDate) head.append('date', date);
    this.applyVia(head);
  }

  /** All that interim responses get. */
  applyVia(head: ResponseHead): void {
    if (this.via === null) return;
    const before = head.header(HEADER_ID.via);
    if (before === undefined) {
      head.appendPrepared(this.via);
      return;
    }
    head.dropKnown(HEADER_ID.via);
    head.append('via', `${before}, ${this.#viaText}`);
  }

  #applyServer(head: ResponseHead, isEdited: boolean): void {
    const isThere = isEdited ? head.hasKnownField(HEADER_ID.server, 'server') : head.has(HEADER_ID.server);
    if (this.#serverHeader === 'overwrite') {
      if (isThere && isEdited) head.removeField('server');
      else if (isThere) head.dropKnown(HEADER_ID.server);
    } else if (isThere || this.#serverHeader === 'pass-through') return;
    head.appendPrepared(this.server);
  }
}

/** @param serviceMs from the complete request to this head, whole milliseconds. */
export function applyServiceTime(head: ResponseHead, names: ProxyHeaders, serviceMs: number): void {
  if (head.has(SERVICE_TIME)) head.dropKnown(SERVICE_TIME);
  head.append(names.upstreamServiceTime, serviceMs.toString());
}
