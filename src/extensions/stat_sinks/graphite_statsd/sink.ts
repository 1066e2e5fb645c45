// The Graphite sink.

import { taggedLinesSink } from '../lines/tagged-lines.ts';

export const createGraphiteStatsdSink = taggedLinesSink('graphite');
