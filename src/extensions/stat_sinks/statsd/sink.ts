// The statsd sink: plain lines, by the whole names of stats.

import type { CreateStatSink } from '../../../control-plane/index.ts';
import { Datagrams, type DatagramTarget } from '../lines/datagrams.ts';
import { LineSink } from '../lines/line-sink.ts';
import { TcpLines } from '../lines/tcp-lines.ts';

export interface StatsdSettings {
  /** Before each name, without the dot between. */
  readonly prefix: string;
  readonly target: DatagramTarget | { readonly kind: 'tcp'; readonly cluster: string };
}

export const createStatsdSink: CreateStatSink = (settings, context) => {
  const { prefix, target } = settings as StatsdSettings;
  const lines =
    target.kind === 'tcp' ? new TcpLines(target.cluster, context) : new Datagrams(target, { ...context, maxBytes: 0 });
  return new LineSink({ prefix, tags: 'in-name' }, lines);
};
