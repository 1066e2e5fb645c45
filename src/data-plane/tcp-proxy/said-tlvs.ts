// What a TCP proxy says of connections whose clients have brought no TLVs, for PROXY headers to hosts.

import { MAX_TLV_BYTES, tlv } from '../../base/proxy-header.ts';
import type { TlvSettings } from '../../snapshot/index.ts';
import type { IngressFacts } from '../format/facts.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import { filterFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { WorkerContext } from '../worker-context.ts';

/** @returns one behind the other. */
export type SaidTlvs = (downstream: DownstreamConnection) => Buffer;

export function compileSaidTlvs(
  context: WorkerContext,
  settings: readonly TlvSettings[],
  ingress: IngressFacts,
): SaidTlvs {
  const parts = settings.map((each): SaidTlvs => {
    if ('value' in each) {
      const bytes = tlv(each.type, Buffer.from(each.value, 'hex'));
      return () => bytes;
    }
    const formatter = new TextFormatter(each.format, { missing: each.omitsEmptyValues ? '' : '-' });
    return (downstream) => {
      // Formats make byte text.
      const value = Buffer.from(formatter.render(filterFacts(context, downstream, ingress)), 'latin1');
      return value.length > MAX_TLV_BYTES ? Buffer.alloc(0) : tlv(each.type, value);
    };
  });
  return (downstream) => Buffer.concat(parts.map((make) => make(downstream)));
}
