// The OpenTelemetry sink: the stats of a family are data points of one metric, which tell themselves apart by their attributes.
// A flush is encoded family by family and sent in calls of about a megabyte. Main thread.

import { MessageEncoder, nanoseconds } from '../../../config/index.ts';
import type { CreateStatSink, StatSinkContext } from '../../../control-plane/index.ts';
import type { FlushTimes, HistogramBatch, HistogramReader, NumericBatch, StatSink } from '../../../stats/index.ts';
import type { GrpcServiceSettings } from '../grpc/service-channel.ts';
import { UnaryCalls } from '../grpc/unary-calls.ts';

/** As loggers know this file. */
const FILE = 'src/extensions/stat_sinks/open_telemetry/sink.ts';

export interface OpenTelemetrySettings {
  readonly service: GrpcServiceSettings;
  readonly countersAsDeltas: boolean;
  readonly histogramsAsDeltas: boolean;
  readonly tagsAsAttributes: boolean;
  /** Names without the values of their tags. */
  readonly usesExtractedNames: boolean;
  /** Before each name, with its dot; may be empty. */
  readonly prefix: string;
}

const EXPORT = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
const PACKAGE = 'opentelemetry.proto';
/** Receivers take 4 MB unless they are told otherwise. */
const REQUEST_BYTES = 1024 * 1024;

/** Of AggregationTemporality. */
const DELTA = 1;
const CUMULATIVE = 2;

/** As UCUM writes them. */
const UNITS: Readonly<Record<HistogramReader['unit'], string>> = {
  ms: 'ms',
  us: 'us',
  bytes: 'By',
  percent: '1',
  count: '',
};

type Tags = NumericBatch['tags'][number];
type Nanoseconds = ReturnType<typeof nanoseconds>;

/** Part of every data point. */
interface PointTimes {
  readonly start_time_unix_nano: Nanoseconds;
  readonly time_unix_nano: Nanoseconds;
}

class OpenTelemetrySink implements StatSink {
  readonly #settings: OpenTelemetrySettings;
  readonly #calls: UnaryCalls;
  readonly #request = new MessageEncoder(`${PACKAGE}.collector.metrics.v1.ExportMetricsServiceRequest`);
  readonly #resourceMetrics = new MessageEncoder(`${PACKAGE}.metrics.v1.ResourceMetrics`);
  readonly #scopeMetrics = new MessageEncoder(`${PACKAGE}.metrics.v1.ScopeMetrics`);
  readonly #metric = new MessageEncoder(`${PACKAGE}.metrics.v1.Metric`);
  readonly #resource: Uint8Array;
  readonly #scope: Uint8Array;
  #sinceLast: PointTimes | undefined;
  #sinceStart: PointTimes | undefined;
  /** Encoded, and not yet sent. */
  #metrics: Uint8Array[] = [];
  #bytes = 0;
  #points = 0;

  constructor(settings: OpenTelemetrySettings, context: StatSinkContext) {
    this.#settings = settings;
    const answer = new MessageEncoder(`${PACKAGE}.collector.metrics.v1.ExportMetricsServiceResponse`);
    this.#calls = new UnaryCalls(
      settings.service,
      { path: EXPORT, onAnswer: (bytes) => noteRefused(answer.decode(bytes), context) },
      context,
    );
    this.#resource = this.#resourceMetrics.encode({ resource: { attributes: resourceAttributes(context.node) } });
    this.#scope = this.#scopeMetrics.encode({ scope: { name: 'weir' } });
  }

  begin({ nowMs, lastMs, startMs }: FlushTimes): void {
    const time_unix_nano = nanoseconds(nowMs);
    this.#sinceLast = { start_time_unix_nano: nanoseconds(lastMs), time_unix_nano };
    this.#sinceStart = { start_time_unix_nano: nanoseconds(startMs), time_unix_nano };
    // Of a flush that has failed midway.
    this.#forget();
  }

  counters(batch: NumericBatch): void {
    const { countersAsDeltas } = this.#settings;
    const numbers = countersAsDeltas ? batch.deltas : batch.values;
    const aggregation_temporality = countersAsDeltas ? DELTA : CUMULATIVE;
    const points = this.#numberPoints(batch, numbers, countersAsDeltas ? this.#sinceLast! : this.#sinceStart!);
    this.#addAll(batch.family, batch.names, points, (data_points) => ({
      sum: { data_points, aggregation_temporality, is_monotonic: true },
    }));
  }

  gauges(batch: NumericBatch): void {
    const points = this.#numberPoints(batch, batch.values, this.#sinceLast!);
    this.#addAll(batch.family, batch.names, points, (data_points) => ({ gauge: { data_points } }));
  }

  histograms({ family, histograms, tags }: HistogramBatch): void {
    const { histogramsAsDeltas } = this.#settings;
    const aggregation_temporality = histogramsAsDeltas ? DELTA : CUMULATIVE;
    const unit = UNITS[histograms[0]!.unit];
    const points = histograms.map((histogram, at) => this.#histogramPoint(histogram, tags[at]!));
    const names = histograms.map(({ name }) => name);
    this.#addAll(family, names, points, (data_points) => ({
      unit,
      histogram: { data_points, aggregation_temporality },
    }));
  }

  end(): void {
    if (this.#points > 0) this.#send();
  }

  close(): Promise<void> {
    return this.#calls.close();
  }

  #numberPoints({ tags }: NumericBatch, numbers: readonly number[], times: PointTimes): object[] {
    return numbers.map((as_int, at) => ({ ...times, as_int, attributes: this.#attributes(tags[at]!) }));
  }

  #histogramPoint(histogram: HistogramReader, tags: Tags): object {
    const [span, times] = this.#settings.histogramsAsDeltas
      ? (['interval', this.#sinceLast!] as const)
      : (['cumulative', this.#sinceStart!] as const);
    const { bucketBounds: explicit_bounds } = histogram;
    const count = histogram.count(span);
    const upTo = [...histogram.buckets(span, explicit_bounds), count];
    const bucket_counts = upTo.map((samples, at) => samples - (upTo[at - 1] ?? 0));
    const attributes = this.#attributes(tags);
    return { ...times, count, sum: histogram.sum(span), bucket_counts, explicit_bounds, attributes };
  }

  #attributes(tags: Tags): object[] {
    return this.#settings.tagsAsAttributes ? tags.map(({ name, value }) => textAttribute(name, value)) : [];
  }

  /** As one metric, or as one each where names are whole. */
  #addAll(
    family: string,
    names: readonly string[],
    points: readonly object[],
    dataOf: (points: readonly object[]) => object,
  ): void {
    const { prefix, usesExtractedNames } = this.#settings;
    if (usesExtractedNames) this.#add({ name: prefix + family, ...dataOf(points) }, points.length);
    else for (const [at, point] of points.entries()) this.#add({ name: prefix + names[at]!, ...dataOf([point]) }, 1);
  }

  #add(metric: object, points: number): void {
    const bytes = this.#metric.encode(metric);
    this.#metrics.push(...this.#scopeMetrics.field('metrics', [bytes]));
    this.#bytes += bytes.byteLength;
    this.#points += points;
    if (this.#bytes >= REQUEST_BYTES) this.#send();
  }

  #send(): void {
    const scopeMetrics = this.#resourceMetrics.field('scope_metrics', [this.#scope, ...this.#metrics]);
    const request = this.#request.field('resource_metrics', [this.#resource, ...scopeMetrics]);
    this.#calls.send({ bytes: Buffer.concat(request), metrics: this.#points });
    this.#forget();
  }

  #forget(): void {
    this.#metrics = [];
    this.#bytes = 0;
    this.#points = 0;
  }
}

/** A collector may take a part of what it gets. */
function noteRefused(answer: Readonly<Record<string, unknown>>, { counts, log }: StatSinkContext): void {
  const refused = answer.partial_success as { rejected_data_points: unknown; error_message: string } | null;
  const points = Number(refused?.rejected_data_points ?? 0);
  if (points === 0) return;
  counts.add('metrics_sent', -points);
  counts.add('metrics_dropped', points);
  log.ofFile(FILE).debug(`a collector has refused ${points} data points: ${refused!.error_message}`);
}

function resourceAttributes({ id, cluster }: StatSinkContext['node']): object[] {
  const attributes = [textAttribute('service.name', cluster || 'weir')];
  return id === '' ? attributes : [...attributes, textAttribute('service.instance.id', id)];
}

function textAttribute(key: string, string_value: string): object {
  return { key, value: { string_value } };
}

export const createOpenTelemetrySink: CreateStatSink = (settings, context) =>
  new OpenTelemetrySink(settings as OpenTelemetrySettings, context);
