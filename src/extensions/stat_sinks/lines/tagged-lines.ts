// The sinks that send lines with tags as datagrams. Main thread.

import type { CreateStatSink } from '../../../control-plane/index.ts';
import { Datagrams, type DatagramTarget } from './datagrams.ts';
import { LineSink, type TagForm } from './line-sink.ts';

export interface TaggedLinesSettings {
  /** Before each name, without the dot between. */
  readonly prefix: string;
  readonly target: DatagramTarget;
  /** Of a datagram; 0 sends each line in one of its own. */
  readonly maxBytes: number;
}

export function taggedLinesSink(tags: TagForm): CreateStatSink {
  return (settings, context) => {
    const { prefix, target, maxBytes } = settings as TaggedLinesSettings;
    return new LineSink({ prefix, tags }, new Datagrams(target, { ...context, maxBytes }));
  };
}
