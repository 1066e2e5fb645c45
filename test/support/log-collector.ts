// An OpenTelemetry collector of log records over gRPC, as those of others are: it knows the messages by their names, from a
// description of its own.

import protobuf from 'protobufjs';
import { untilEqual } from './eventually.ts';
import { type Answer, type Plain, UnaryService } from './unary-service.ts';

const { root } = protobuf.parse(
  `syntax = "proto3";
  message ArrayValue { repeated AnyValue values = 1; }
  message KeyValueList { repeated KeyValue values = 1; }
  message AnyValue { oneof value { string string_value = 1; ArrayValue array_value = 5; KeyValueList kvlist_value = 6; } }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message InstrumentationScope { string name = 1; }
  message LogRecord {
    fixed64 time_unix_nano = 1; AnyValue body = 5; repeated KeyValue attributes = 6; bytes trace_id = 9; bytes span_id = 10; }
  message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; }
  message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; }
  message ExportLogsServiceRequest { repeated ResourceLogs resource_logs = 1; }
  message PartialSuccess { int64 rejected_log_records = 1; }
  message ExportLogsServiceResponse { PartialSuccess partial_success = 1; }`,
  { keepCase: true },
);
const REQUEST = root.lookupType('ExportLogsServiceRequest');
const PATH = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';

/** Lists as lists, maps as objects. */
export type LoggedValue = string | readonly LoggedValue[] | { readonly [name: string]: LoggedValue };

export interface LoggedRecord {
  readonly resource: LoggedValue;
  readonly timeMs: number;
  readonly body: LoggedValue;
  readonly attributes: LoggedValue;
  readonly traceId: string;
  readonly spanId: string;
}

interface RawValue {
  readonly string_value?: string;
  readonly array_value?: { readonly values?: readonly RawValue[] };
  readonly kvlist_value?: { readonly values?: readonly RawEntry[] };
}

interface RawEntry {
  readonly key: string;
  readonly value: RawValue;
}

interface RawRecord {
  readonly time_unix_nano: string;
  readonly body?: RawValue;
  readonly attributes?: readonly RawEntry[];
  readonly trace_id?: string;
  readonly span_id?: string;
}

interface RawRequest {
  readonly resource_logs: readonly {
    readonly resource: { readonly attributes?: readonly RawEntry[] };
    readonly scope_logs: readonly { readonly log_records: readonly RawRecord[] }[];
  }[];
}

function valueIn(value: RawValue | undefined): LoggedValue {
  if (value?.array_value !== undefined) return (value.array_value.values ?? []).map(valueIn);
  if (value?.kvlist_value !== undefined) return mapOf(value.kvlist_value.values);
  return value?.string_value ?? '';
}

function mapOf(entries: readonly RawEntry[] = []): LoggedValue {
  return Object.fromEntries(entries.map(({ key, value }) => [key, valueIn(value)]));
}

function recordsOf(message: Plain): readonly LoggedRecord[] {
  const { resource_logs: all } = message as unknown as RawRequest;
  return all.flatMap(({ resource, scope_logs: scopes }) =>
    scopes.flatMap(({ log_records: records }) =>
      records.map((record) => ({
        resource: mapOf(resource.attributes),
        timeMs: Number(record.time_unix_nano) / 1e6,
        body: valueIn(record.body),
        attributes: mapOf(record.attributes),
        traceId: Buffer.from(record.trace_id ?? '', 'base64').toString('hex'),
        spanId: Buffer.from(record.span_id ?? '', 'base64').toString('hex'),
      })),
    ),
  );
}

/** @param body of a request over HTTP. */
export function decodeRecords(body: Buffer): readonly LoggedRecord[] {
  return recordsOf(REQUEST.toObject(REQUEST.decode(body), { longs: String, bytes: String }));
}

export class LogCollector extends UnaryService {
  static async start(answer: Answer = {}): Promise<LogCollector> {
    const collector = new LogCollector(REQUEST, root.lookupType('ExportLogsServiceResponse'), answer);
    await collector.listen([PATH]);
    return collector;
  }

  get records(): readonly LoggedRecord[] {
    return this.asked.flatMap(({ message }) => recordsOf(message));
  }

  async until(records: number): Promise<void> {
    await untilEqual(records, () => this.records.length, 'records of the collector');
  }
}
