// The HTTP inspector listener filter: which HTTP a client without TLS speaks, for the choice of the filter chain. The
// bytes stay as they are.

import type { HttpInspectorSettings, ListenerFilterSnapshot } from '../../../snapshot/index.ts';
import { HTTP_INSPECTOR_STATS } from '../../../stats/index.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { type ListenerFilter, NEED_MORE } from './filter.ts';
import { httpVersionOf, NOT_HTTP } from './http-preface.ts';

const stats = HTTP_INSPECTOR_STATS.index;
/** By number of the version, as filter chains name it. */
const PROTOCOLS: readonly (readonly string[])[] = [['http/1.0'], ['http/1.1'], ['h2c']];
const FOUND: readonly number[] = [stats.http10_found, stats.http11_found, stats.http2_found];

export class HttpInspectorFilter implements ListenerFilter {
  readonly readsBytes = true;
  readonly #context: WorkerContext;
  readonly #statBase: number;

  constructor(context: WorkerContext, { statBlock }: ListenerFilterSnapshot<HttpInspectorSettings>) {
    this.#context = context;
    this.#statBase = context.stats.base(statBlock);
  }

  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number {
    // What is inside of TLS cannot be seen, and its client has named its protocols already.
    if (connection.transportProtocol === 'tls') return 0;
    if (start === end) return NEED_MORE;
    const version = httpVersionOf(bytes, start, end);
    if (version === NEED_MORE) return NEED_MORE;
    if (version === NOT_HTTP) {
      this.#count(stats.http_not_found);
      return 0;
    }
    connection.announce('raw_buffer', '', PROTOCOLS[version]!);
    this.#count(FOUND[version]!);
    return 0;
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}
