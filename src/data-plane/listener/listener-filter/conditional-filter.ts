// A listener filter that some connections pass as if it were not there.

import type { ConnectionPredicate } from '../../../snapshot/index.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import type { ListenerFilter } from './filter.ts';

export class ConditionalFilter implements ListenerFilter {
  readonly readsBytes: boolean;
  readonly #filter: ListenerFilter;
  readonly #disabledFor: ConnectionPredicate;

  constructor(filter: ListenerFilter, disabledFor: ConnectionPredicate) {
    this.readsBytes = filter.readsBytes;
    this.#filter = filter;
    this.#disabledFor = disabledFor;
  }

  /** Asked when its turn has come: filters before it may have found out where the connection was meant for. */
  isDisabledFor(connection: DownstreamConnection): boolean {
    return holds(this.#disabledFor, connection);
  }

  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number {
    return this.isDisabledFor(connection) ? 0 : this.#filter.inspect(bytes, start, end, connection);
  }
}

function holds(predicate: ConnectionPredicate, connection: DownstreamConnection): boolean {
  switch (predicate.kind) {
    case 'any':
      return true;
    case 'not':
      return !holds(predicate.rule, connection);
    case 'all':
      return predicate.rules.every((rule) => holds(rule, connection));
    case 'one-of':
      return predicate.rules.some((rule) => holds(rule, connection));
    case 'port':
      return connection.localPort >= predicate.start && connection.localPort < predicate.end;
  }
}
