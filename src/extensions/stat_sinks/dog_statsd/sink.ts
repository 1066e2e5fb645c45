// The DogStatsD sink.

import { taggedLinesSink } from '../lines/tagged-lines.ts';

export const createDogStatsdSink = taggedLinesSink('dog-statsd');
