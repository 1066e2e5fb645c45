// What upstreams are told of where requests come from where a connection manager asks for more than the rest: the scheme by
// order or by port, x-forwarded-port, and the name of the service that they come from.

import type { ForwardingSettings, HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HEADER_ID, PreparedLines, type RequestHead } from '../../wasm/http1.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { headerText } from './header-text.ts';
import type { ProxyHeaders } from './proxy-headers.ts';

const PORT = 'x-forwarded-port';
const USER_AGENT = HEADER_ID['user-agent'];
const SERVICE_CLUSTER = HEADER_ID['x-proxy-downstream-service-cluster'];
const SERVICE_NODE = HEADER_ID['x-proxy-downstream-service-node'];

/** The connection, as far as it says what upstreams are told. */
type Downstream = Pick<DownstreamConnection, 'tls' | 'localAddress' | 'localPort' | 'originalDestination'>;

export class ForwardingEdits {
  /** The scheme is no matter of the connection, nor of whoever has sent the request. */
  readonly overwritesScheme: boolean;
  readonly #settings: ForwardingSettings;
  /** Null where requests are not named after this service. */
  readonly #userAgent: PreparedLines | null;
  readonly #service: PreparedLines | null;

  /** @returns null where there is nothing to say. */
  static of({ forwarding }: HttpConnectionManagerSettings, names: ProxyHeaders): ForwardingEdits | null {
    const { serviceName, appendsPort, scheme, schemePorts } = forwarding;
    const isSilent = serviceName === null && !appendsPort && scheme === null && schemePorts === null;
    return isSilent ? null : new ForwardingEdits(forwarding, names);
  }

  private constructor(settings: ForwardingSettings, names: ProxyHeaders) {
    const cluster = headerText(settings.serviceName?.cluster ?? '');
    const node = headerText(settings.serviceName?.node ?? '');
    const lines = cluster === '' ? [] : [`${names.downstreamServiceCluster}: ${cluster}`];
    if (node !== '') lines.push(`${names.downstreamServiceNode}: ${node}`);
    this.overwritesScheme = settings.scheme !== null;
    this.#settings = settings;
    this.#userAgent = cluster === '' ? null : new PreparedLines([`user-agent: ${cluster}`]);
    this.#service = lines.length === 0 ? null : new PreparedLines(lines);
  }

  /** Whether upstreams are told of HTTPS. */
  isHttps({ tls, originalDestination }: Downstream): boolean {
    const { scheme, schemePorts } = this.#settings;
    if (scheme !== null) return scheme === 'https';
    if (schemePorts !== null && originalDestination !== null) {
      if (schemePorts.https.includes(originalDestination.port)) return true;
      if (schemePorts.http.includes(originalDestination.port)) return false;
    }
    return tls !== null;
  }

  /** @param isBelieved what the hop before has said of the client's port stays. */
  apply(head: RequestHead, isBelieved: boolean, { localAddress, localPort }: Downstream): void {
    if (this.#settings.appendsPort && localAddress !== '' && !(isBelieved && head.hasField(PORT))) {
      head.removeField(PORT);
      head.append(PORT, `${localPort}`);
    }
    if (this.#service !== null) {
      head.dropKnown(SERVICE_CLUSTER);
      head.dropKnown(SERVICE_NODE);
      head.appendPrepared(this.#service);
    }
    if (this.#userAgent !== null && !head.header(USER_AGENT)) {
      head.dropKnown(USER_AGENT);
      head.appendPrepared(this.#userAgent);
    }
  }
}
