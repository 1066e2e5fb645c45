// Profiles in the format that `go tool pprof` and its like read: gzipped messages of
// https://github.com/google/pprof/blob/main/proto/profile.proto. Main thread.

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Writer } from 'protobufjs/light.js';

/** What a number counts, and in what: `['cpu', 'nanoseconds']`. */
export type ValueType = readonly [type: string, unit: string];

/** A function, or something that stands for one. */
export interface Frame {
  readonly name: string;
  readonly file: string;
  /** 0 when unknown. */
  readonly line: number;
}

export interface PprofOptions {
  /** Of each sample; the last is what tools show first. */
  readonly valueTypes: readonly ValueType[];
  readonly periodType: ValueType;
  /** Between two samples, in the unit of the period. */
  readonly period: number;
  /** When it began, since the Unix epoch. */
  readonly beganMs: number;
  readonly durationMs: number;
}

const WIRE_VARINT = 0;
const WIRE_BYTES = 2;

/** Field numbers of profile.proto. */
const PROFILE = {
  sampleType: 1,
  sample: 2,
  location: 4,
  function: 5,
  string: 6,
  timeNanos: 9,
  durationNanos: 10,
  periodType: 11,
  period: 12,
  defaultSampleType: 14,
} as const;
const VALUE_TYPE = { type: 1, unit: 2 } as const;
const SAMPLE = { locations: 1, values: 2, label: 3 } as const;
const LABEL = { key: 1, text: 2 } as const;
const LOCATION = { id: 1, line: 4 } as const;
const LINE = { function: 1, line: 2 } as const;
const FUNCTION = { id: 1, name: 2, systemName: 3, file: 4, startLine: 5 } as const;

/** Label under which each sample has the name of its thread. */
const THREAD = 'thread';
const NS_PER_MS = 1_000_000;

export class PprofProfile {
  readonly #options: PprofOptions;
  readonly #strings = new Map<string, number>([['', 0]]);
  readonly #locations = new Map<string, number>();
  /** Samples, locations and functions as they come; fields of a message may stand in any order. */
  readonly #writer = Writer.create();

  constructor(options: PprofOptions) {
    this.#options = options;
  }

  /** @returns what samples name the frame by. */
  location({ name, file, line }: Frame): number {
    const key = `${name}\n${file}\n${line}`;
    const known = this.#locations.get(key);
    if (known !== undefined) return known;
    const id = this.#locations.size + 1;
    this.#locations.set(key, id);
    this.#message(PROFILE.function, (writer) => {
      number(writer, FUNCTION.id, id);
      number(writer, FUNCTION.name, this.#text(name));
      number(writer, FUNCTION.systemName, this.#text(name));
      number(writer, FUNCTION.file, this.#text(file));
      number(writer, FUNCTION.startLine, line);
    });
    this.#message(PROFILE.location, (writer) => {
      number(writer, LOCATION.id, id);
      message(writer, LOCATION.line, (place) => {
        number(place, LINE.function, id);
        number(place, LINE.line, line);
      });
    });
    return id;
  }

  /** @param stack locations, the innermost first. @param values in the order of the value types; whole, below 2^53. */
  add(thread: string, stack: readonly number[], values: readonly number[]): void {
    this.#message(PROFILE.sample, (writer) => {
      numbers(writer, SAMPLE.locations, stack);
      numbers(writer, SAMPLE.values, values);
      message(writer, SAMPLE.label, (label) => {
        number(label, LABEL.key, this.#text(THREAD));
        number(label, LABEL.text, this.#text(thread));
      });
    });
  }

  /** The whole file. Call it once, last. */
  finish(): Promise<Buffer> {
    const { valueTypes, periodType, period, beganMs, durationMs } = this.#options;
    for (const type of valueTypes) this.#message(PROFILE.sampleType, (writer) => this.#valueType(writer, type));
    this.#message(PROFILE.periodType, (writer) => this.#valueType(writer, periodType));
    number(this.#writer, PROFILE.period, Math.round(period));
    // Milliseconds first: in nanoseconds the time is beyond what a number holds exactly.
    number(this.#writer, PROFILE.timeNanos, Math.round(beganMs) * NS_PER_MS);
    number(this.#writer, PROFILE.durationNanos, Math.round(durationMs * NS_PER_MS));
    number(this.#writer, PROFILE.defaultSampleType, this.#text(valueTypes.at(-1)![0]));
    for (const text of this.#strings.keys()) this.#writer.uint32((PROFILE.string << 3) | WIRE_BYTES).string(text);
    return promisify(gzip)(this.#writer.finish());
  }

  #valueType(writer: Writer, [type, unit]: ValueType): void {
    number(writer, VALUE_TYPE.type, this.#text(type));
    number(writer, VALUE_TYPE.unit, this.#text(unit));
  }

  /** Place of a text in the table of all. */
  #text(text: string): number {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    const index = this.#strings.size;
    this.#strings.set(text, index);
    return index;
  }

  #message(field: number, write: (writer: Writer) => void): void {
    message(this.#writer, field, write);
  }
}

function message(writer: Writer, field: number, write: (writer: Writer) => void): void {
  writer.uint32((field << 3) | WIRE_BYTES).fork();
  write(writer);
  writer.ldelim();
}

function number(writer: Writer, field: number, value: number): void {
  if (value !== 0) writer.uint32((field << 3) | WIRE_VARINT).int64(value);
}

function numbers(writer: Writer, field: number, values: readonly number[]): void {
  writer.uint32((field << 3) | WIRE_BYTES).fork();
  for (const value of values) writer.int64(value);
  writer.ldelim();
}
