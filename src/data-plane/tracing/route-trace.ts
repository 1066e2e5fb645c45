// What a route says of the traces of its requests, ready to use. Made once per snapshot.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { RouteTracing } from '../../snapshot/index.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import { type SamplingShares, sharesOf } from './sampling-shares.ts';
import { compileTags, type ReadTag } from './span-tags.ts';

export class RouteTrace {
  /** In place of the connection manager's; null for the same. */
  readonly sampling: SamplingShares | null;
  readonly tags: readonly ReadTag[];
  readonly operation: TextFormatter | null;
  readonly upstreamOperation: TextFormatter | null;
  readonly decorator: RouteTracing['decorator'] | null;

  constructor({ sampling, tags = [], operation, upstreamOperation, decorator }: RouteTracing, runtime: RuntimeValues) {
    this.sampling = sampling === undefined ? null : sharesOf(sampling, runtime);
    this.tags = compileTags(tags);
    this.operation = operation === undefined ? null : new TextFormatter(operation, { missing: '' });
    this.upstreamOperation =
      upstreamOperation === undefined ? null : new TextFormatter(upstreamOperation, { missing: '' });
    this.decorator = decorator ?? null;
  }
}
