// The TLS inspector listener filter: reads what a TLS client announces before it is known who answers, and leaves the
// bytes as they are. A connection that does not begin as TLS does goes on as it is.

import type { ListenerFilterSnapshot, TlsInspectorSettings } from '../../../snapshot/index.ts';
import { TLS_INSPECTOR_STATS } from '../../../stats/index.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { ja3Fingerprint, ja4Fingerprint } from './client-fingerprints.ts';
import { CLIENT_HELLO, ClientHelloReader, INCOMPLETE, MALFORMED, TOO_LARGE } from './client-hello.ts';
import { type ListenerFilter, NEED_MORE, REFUSED } from './filter.ts';

const stats = TLS_INSPECTOR_STATS.index;

export class TlsInspectorFilter implements ListenerFilter {
  readonly readsBytes = true;
  readonly #context: WorkerContext;
  readonly #settings: TlsInspectorSettings;
  readonly #statBase: number;
  readonly #hello: ClientHelloReader;

  constructor(context: WorkerContext, { settings, statBlock }: ListenerFilterSnapshot<TlsInspectorSettings>) {
    this.#context = context;
    this.#settings = settings;
    this.#statBase = context.stats.base(statBlock);
    this.#hello = new ClientHelloReader(settings.makesJa3 || settings.makesJa4);
  }

  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number {
    // Nothing is left behind an earlier filter that has taken all there was.
    if (start === end) return NEED_MORE;
    const { maxClientHelloBytes, refusesMalformed } = this.#settings;
    const found = this.#hello.read(bytes, start, end, maxClientHelloBytes);
    if (found === INCOMPLETE) return NEED_MORE;
    this.#context.stats.record(this.#statBase + stats.bytes_processed, this.#hello.length);
    if (found === CLIENT_HELLO) {
      this.#note(connection);
      return 0;
    }
    if (found === TOO_LARGE) {
      this.#count(stats.client_hello_too_large);
      return REFUSED;
    }
    this.#count(stats.tls_not_found);
    return found === MALFORMED && refusesMalformed ? REFUSED : 0;
  }

  #note(connection: DownstreamConnection): void {
    const { serverName, applicationProtocols } = this.#hello;
    connection.announce('tls', serverName, applicationProtocols);
    const { makesJa3, makesJa4 } = this.#settings;
    if (makesJa3 || makesJa4) {
      const announced = { ...this.#hello.offers, applicationProtocols };
      connection.fingerprints = {
        ja3: makesJa3 ? ja3Fingerprint(announced) : '',
        ja4: makesJa4 ? ja4Fingerprint(announced) : '',
      };
    }
    this.#count(stats.tls_found);
    this.#count(serverName === '' ? stats.sni_not_found : stats.sni_found);
    this.#count(applicationProtocols.length === 0 ? stats.alpn_not_found : stats.alpn_found);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}
