// Statistics as lines of statsd and of its relatives that know tags. Main thread.
//
//   in-name      proxy.cluster.web.upstream_cx_total:3|c
//   dog-statsd   proxy.cluster.upstream_cx_total:3|c|#proxy.cluster_name:web
//   graphite     proxy.cluster.upstream_cx_total;proxy.cluster_name=web:3|c
//
// Counters are sent as what they have counted since the flush before, 0 included; gauges as they are; text readouts not at
// all, since the protocol has none. Of histograms a fair sample of the interval is sent (histogram-sample.ts).

import type { HistogramBatch, NumericBatch, StatSink } from '../../../stats/index.ts';
import { sampleInterval } from './histogram-sample.ts';

/** Where the tags of a stat go. */
export type TagForm = 'in-name' | 'dog-statsd' | 'graphite';

export interface LineForm {
  /** Before each name, without the dot between. */
  readonly prefix: string;
  readonly tags: TagForm;
}

/** Takes lines to a receiver. */
export interface LineTransport {
  /** A flush begins. */
  begin(): void;
  /** @param line without its end. */
  send(line: string): void;
  /** What has been taken so far is to go now. */
  end(): void;
  /** As StatSink.close. */
  close(): Promise<void>;
}

type Tags = NumericBatch['tags'][number];

/** Whatever would end a name, a tag or a line. Names come from configurations, and some from responses. */
const UNSAFE_IN_NAMES = /[:|\p{Cc}]/gu;
const UNSAFE_IN_TAGS: Readonly<Record<TagForm, RegExp>> = {
  'in-name': UNSAFE_IN_NAMES,
  'dog-statsd': /[|,\p{Cc}]/gu,
  graphite: /[;=:|\p{Cc}]/gu,
};

export class LineSink implements StatSink {
  readonly #form: LineForm;
  readonly #transport: LineTransport;
  readonly #unsafe: RegExp;

  constructor(form: LineForm, transport: LineTransport) {
    this.#form = form;
    this.#unsafe = UNSAFE_IN_TAGS[form.tags];
    this.#transport = transport;
  }

  begin(): void {
    this.#transport.begin();
  }

  counters(batch: NumericBatch): void {
    const { names, tags, deltas, family } = batch;
    for (let at = 0; at < names.length; at++) this.#send(family, names[at]!, tags[at]!, deltas[at]!, 'c');
  }

  gauges(batch: NumericBatch): void {
    const { names, tags, values, family } = batch;
    for (let at = 0; at < names.length; at++) this.#send(family, names[at]!, tags[at]!, values[at]!, 'g');
  }

  histograms({ family, histograms, tags }: HistogramBatch): void {
    for (const [at, histogram] of histograms.entries()) {
      // Ratios have a type of their own in DogStatsD and elsewhere; all else is told as times are.
      const type = histogram.unit === 'percent' ? 'h' : 'ms';
      const { values, rate } = sampleInterval(histogram);
      const typeAndRate = rate === '' ? type : `${type}|@${rate}`;
      for (const value of values) this.#send(family, histogram.name, tags[at]!, value, typeAndRate);
    }
  }

  end(): void {
    this.#transport.end();
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #send(family: string, name: string, tags: Tags, value: number, type: string): void {
    const form = this.#form;
    const shown = form.tags === 'in-name' ? name : family;
    let line = `${form.prefix}.${safe(shown, UNSAFE_IN_NAMES)}`;
    if (form.tags === 'graphite') for (const tag of tags) line += `;${this.#tag(tag.name)}=${this.#tag(tag.value)}`;
    line += `:${value}|${type}`;
    if (form.tags === 'dog-statsd') {
      for (let at = 0; at < tags.length; at++) {
        line += `${at === 0 ? '|#' : ','}${this.#tag(tags[at]!.name)}:${this.#tag(tags[at]!.value)}`;
      }
    }
    this.#transport.send(line);
  }

  #tag(text: string): string {
    return safe(text, this.#unsafe);
  }
}

function safe(text: string, unsafe: RegExp): string {
  return text.search(unsafe) === -1 ? text : text.replace(unsafe, '_');
}
