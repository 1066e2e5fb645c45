// Entries of access logs as log records (opentelemetry.proto.logs.v1), by the numbers of their fields.

import { type FormatFacts, type ReadTag, TextFormatter } from '../../../data-plane/index.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import { unixNanoseconds, writeAttribute } from '../../otlp/export.ts';
import type { LogValue, OpenTelemetryLogSettings } from './settings.ts';

const TRACE_ID_DIGITS = 32;
const MISSING = '-';

type WriteValue = (any: MessageWriter, facts: FormatFacts) => void;
/** A record, as a field of what holds records. */
export type EncodeRecord = (facts: FormatFacts) => Buffer;

export function compileRecord(
  { body, attributes }: Pick<OpenTelemetryLogSettings, 'body' | 'attributes'>,
  tags: readonly ReadTag[],
): EncodeRecord {
  const writeBody = body && compileValue(body);
  const writeAttributes = compileEntries(attributes);
  return (facts) => {
    const records = new MessageWriter();
    records.message(2, (record) => {
      record.fixed64(1, unixNanoseconds(facts.startTimeMs));
      if (writeBody !== null) record.message(5, (any) => writeBody(any, facts));
      writeAttributes(record, 6, facts);
      for (const read of tags) {
        const tag = read(facts);
        if (tag !== null) writeAttribute(record, 6, tag[0], tag[1]);
      }
      if (facts.traceId === '') return;
      record.bytes(9, Buffer.from(facts.traceId.padStart(TRACE_ID_DIGITS, '0'), 'hex'));
      record.bytes(10, Buffer.from(facts.spanId, 'hex'));
    });
    return records.finish();
  };
}

function compileValue(value: LogValue): WriteValue {
  switch (value.kind) {
    case 'text': {
      const formatter = new TextFormatter(value.segments, { missing: MISSING });
      return (any, facts) => any.byteText(1, formatter.render(facts));
    }
    case 'list': {
      const items = value.items.map(compileValue);
      return (any, facts) =>
        any.message(5, (list) => {
          for (const write of items) list.message(1, (item) => write(item, facts));
        });
    }
    case 'map': {
      const write = compileEntries(value.entries);
      return (any, facts) => any.message(6, (map) => write(map, 1, facts));
    }
  }
}

function compileEntries(
  entries: readonly (readonly [name: string, value: LogValue])[],
): (holder: MessageWriter, field: number, facts: FormatFacts) => void {
  const compiled = entries.map(([name, value]) => [name, compileValue(value)] as const);
  return (holder, field, facts) => {
    for (const [name, write] of compiled) {
      holder.message(field, (entry) => {
        entry.byteText(1, name);
        entry.message(2, (any) => write(any, facts));
      });
    }
  };
}
