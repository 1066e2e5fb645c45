// The metrics service sink: each stat is a metric family of its own, in the model of Prometheus. Main thread.

import { jsonToStruct, MessageEncoder } from '../../../config/index.ts';
import type { CreateStatSink, StatSinkContext } from '../../../control-plane/index.ts';
import {
  type FlushTimes,
  type HistogramBatch,
  type HistogramReader,
  LISTED_QUANTILES,
  type NumericBatch,
  type StatSink,
} from '../../../stats/index.ts';
import { ClientStream } from '../grpc/client-stream.ts';
import type { GrpcServiceSettings } from '../grpc/service-channel.ts';

export interface MetricsServiceSettings {
  readonly service: GrpcServiceSettings;
  /** Of the service's name. */
  readonly generation: 'v2' | 'v3';
  readonly countersAsDeltas: boolean;
  /** Tags beside a name without their values; otherwise whole names. */
  readonly tagsAsLabels: boolean;
  readonly hasSummaries: boolean;
  readonly hasHistograms: boolean;
  /** Families of a message; 0 for all of a flush in one. */
  readonly batchSize: number;
}

/** Of MetricType. */
const COUNTER = 0;
const GAUGE = 1;
const SUMMARY = 2;
const HISTOGRAM = 4;

type Tags = NumericBatch['tags'][number];

class MetricsServiceSink implements StatSink {
  readonly #settings: MetricsServiceSettings;
  readonly #stream: ClientStream;
  readonly #message = new MessageEncoder('proxy.service.metrics.v3.StreamMetricsMessage');
  readonly #family = new MessageEncoder('io.prometheus.client.MetricFamily');
  /** Who sends; in the first message of a stream. */
  readonly #identifier: Uint8Array;
  #timeMs = 0;
  /** Encoded, and not yet sent. */
  #families: Uint8Array[] = [];
  #count = 0;

  constructor(settings: MetricsServiceSettings, context: StatSinkContext) {
    this.#settings = settings;
    const path = `/envoy.service.metrics.${settings.generation}.MetricsService/StreamMetrics`;
    this.#stream = new ClientStream(settings.service, path, context);
    this.#identifier = this.#message.encode({ identifier: { node: nodeMessage(context.node) } });
  }

  begin({ nowMs }: FlushTimes): void {
    this.#timeMs = Math.round(nowMs);
    // Of a flush that has failed midway.
    this.#forget();
    this.#stream.begin();
  }

  counters({ family, names, tags, values, deltas }: NumericBatch): void {
    const numbers = this.#settings.countersAsDeltas ? deltas : values;
    for (const [at, value] of numbers.entries())
      this.#add(family, names[at]!, COUNTER, tags[at]!, { counter: { value } });
  }

  gauges({ family, names, tags, values }: NumericBatch): void {
    for (const [at, value] of values.entries()) this.#add(family, names[at]!, GAUGE, tags[at]!, { gauge: { value } });
  }

  histograms({ family, histograms, tags }: HistogramBatch): void {
    const { hasSummaries, hasHistograms } = this.#settings;
    for (const [at, each] of histograms.entries()) {
      if (hasSummaries) this.#add(family, each.name, SUMMARY, tags[at]!, { summary: summaryOf(each) });
      if (hasHistograms) this.#add(family, each.name, HISTOGRAM, tags[at]!, { histogram: bucketsOf(each) });
    }
  }

  end(): void {
    if (this.#count > 0) this.#send();
  }

  close(): Promise<void> {
    return this.#stream.close();
  }

  #add(extractedName: string, wholeName: string, type: number, tags: Tags, value: object): void {
    const { tagsAsLabels, batchSize } = this.#settings;
    const metric = { label: tagsAsLabels ? tags : [], timestamp_ms: this.#timeMs, ...value };
    const bytes = this.#family.encode({ name: tagsAsLabels ? extractedName : wholeName, type, metric: [metric] });
    this.#families.push(...this.#message.field('envoy_metrics', [bytes]));
    this.#count += 1;
    if (this.#count === batchSize) this.#send();
  }

  #send(): void {
    const families = this.#families;
    this.#stream.send(this.#count, (isFirst) => Buffer.concat(isFirst ? [this.#identifier, ...families] : families));
    this.#forget();
  }

  #forget(): void {
    this.#families = [];
    this.#count = 0;
  }
}

/** Of the samples since the flush before, as are buckets. */
function summaryOf(histogram: HistogramReader): object {
  const values = histogram.quantiles('interval', LISTED_QUANTILES);
  return {
    sample_count: histogram.count('interval'),
    sample_sum: histogram.sum('interval'),
    quantile: LISTED_QUANTILES.map((quantile, at) => ({ quantile, value: values[at] })),
  };
}

function bucketsOf(histogram: HistogramReader): object {
  const counts = histogram.buckets('interval', histogram.bucketBounds);
  return {
    sample_count: histogram.count('interval'),
    sample_sum: histogram.sum('interval'),
    bucket: histogram.bucketBounds.map((upper_bound, at) => ({ cumulative_count: counts[at], upper_bound })),
  };
}

function nodeMessage({ id, cluster, locality, metadata }: StatSinkContext['node']): object {
  const { region, zone, subZone: sub_zone } = locality;
  return {
    id,
    cluster,
    locality: { region, zone, sub_zone },
    metadata: jsonToStruct(metadata as Parameters<typeof jsonToStruct>[0]),
  };
}

export const createMetricsServiceSink: CreateStatSink = (settings, context) =>
  new MetricsServiceSink(settings as MetricsServiceSettings, context);
