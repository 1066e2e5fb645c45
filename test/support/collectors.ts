// Collectors of spans, as those of others are: over HTTP, and over gRPC by a description of their own.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server as GrpcServer, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { untilEqual } from './eventually.ts';

export interface Report {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Takes reports over HTTP; answers 202 unless told otherwise. */
export class HttpCollector implements AsyncDisposable {
  port = 0;
  readonly reports: Report[] = [];
  answer: (response: ServerResponse) => void = (response) => response.writeHead(202).end();
  readonly #server: Server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      this.reports.push({ method, url, headers, body: Buffer.concat(parts) });
      this.answer(response);
    });
  });

  static async start(port = 0): Promise<HttpCollector> {
    const collector = new HttpCollector();
    await once(collector.#server.listen(port, '127.0.0.1'), 'listening');
    collector.port = (collector.#server.address() as AddressInfo).port;
    return collector;
  }

  async until(reports: number): Promise<void> {
    await untilEqual(reports, () => this.reports.length, 'reports to the collector');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await Promise.resolve();
  }
}

export interface ZipkinSpan {
  readonly traceId: string;
  readonly id: string;
  readonly parentId?: string;
  readonly kind: string;
  readonly name: string;
  readonly timestamp: number;
  readonly duration: number;
  readonly localEndpoint: { readonly serviceName: string };
  readonly annotations?: readonly { readonly value: string; readonly timestamp: number }[];
  readonly tags: Readonly<Record<string, string>>;
  readonly shared?: boolean;
  readonly debug?: boolean;
}

/** Of all reports. */
export function zipkinSpans({ reports }: HttpCollector): readonly ZipkinSpan[] {
  return reports.flatMap(({ body }) => JSON.parse(body.toString()) as ZipkinSpan[]);
}

const { root } = protobuf.parse(
  `syntax = "proto3";
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; } }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message InstrumentationScope { string name = 1; string version = 2; }
  message Event { fixed64 time_unix_nano = 1; string name = 2; }
  message Status { string message = 2; int32 code = 3; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; repeated Event events = 11;
    Status status = 15; }
  message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message PartialSuccess { int64 rejected_spans = 1; string error_message = 2; }
  message ExportTraceServiceResponse { PartialSuccess partial_success = 1; }
  message ZipkinEndpoint { string service_name = 1; }
  message ZipkinAnnotation { fixed64 timestamp = 1; string value = 2; }
  message ZipkinSpan {
    bytes trace_id = 1; bytes parent_id = 2; bytes id = 3; int32 kind = 4; string name = 5; fixed64 timestamp = 6; uint64 duration = 7;
    ZipkinEndpoint local_endpoint = 8; repeated ZipkinAnnotation annotations = 10; map<string, string> tags = 11; bool debug = 12;
    bool shared = 13; }
  message ListOfSpans { repeated ZipkinSpan spans = 1; }`,
  { keepCase: true },
);

/** A message of another's description as plain data. */
export function plain(type: string, bytes: Buffer): Record<string, unknown> {
  const message = root.lookupType(type);
  return message.toObject(message.decode(bytes), { longs: String, bytes: Buffer, arrays: true });
}

export function encoded(type: string, value: Record<string, unknown>): Buffer {
  const message = root.lookupType(type);
  return Buffer.from(message.encode(message.fromObject(value)).finish());
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly state: string;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  readonly status: number;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly string_value: string };
}

interface RawSpan {
  readonly trace_id: Buffer;
  readonly span_id: Buffer;
  readonly parent_span_id?: Buffer;
  readonly trace_state?: string;
  readonly name: string;
  readonly kind: number;
  readonly start_time_unix_nano: string;
  readonly end_time_unix_nano: string;
  readonly attributes: readonly Attribute[];
  readonly events: readonly { readonly name: string }[];
  readonly status?: { readonly code: number };
}

interface RawRequest {
  readonly resource_spans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scope_spans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly RawSpan[] }[];
  }[];
}

function tagsOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.string_value]));
}

/** Of an ExportTraceServiceRequest. */
export function otlpSpans(bytes: Buffer): { spans: readonly OtlpSpan[]; resource: Record<string, string> } {
  const { resource_spans } = plain('ExportTraceServiceRequest', bytes) as unknown as RawRequest;
  const raw = resource_spans.flatMap(({ scope_spans }) => scope_spans.flatMap(({ spans }) => spans));
  return {
    resource: tagsOf(resource_spans[0]?.resource.attributes ?? []),
    spans: raw.map((span) => ({
      traceId: span.trace_id.toString('hex'),
      spanId: span.span_id.toString('hex'),
      parentId: span.parent_span_id?.toString('hex') ?? '',
      state: span.trace_state ?? '',
      name: span.name,
      kind: span.kind,
      startMs: Number(span.start_time_unix_nano) / 1e6,
      endMs: Number(span.end_time_unix_nano) / 1e6,
      tags: tagsOf(span.attributes),
      events: span.events.map(({ name }) => name),
      status: span.status?.code ?? 0,
    })),
  };
}

const asItIs = (bytes: Buffer): Buffer => bytes;

/** What a call is answered: a message, a status of failure, or nothing ever. */
export type GrpcAnswer = Buffer | { readonly fails: number } | 'silence';

export class OtlpCollector implements AsyncDisposable {
  port = 0;
  readonly calls: { readonly body: Buffer; readonly metadata: Record<string, unknown> }[] = [];
  answer: GrpcAnswer = Buffer.alloc(0);
  readonly #server = new GrpcServer();

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    const Export = {
      path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    };
    collector.#server.addService(
      { Export },
      {
        Export(call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) {
          collector.calls.push({ body: call.request, metadata: call.metadata.getMap() });
          const { answer } = collector;
          if (answer === 'silence') return;
          if (Buffer.isBuffer(answer)) reply(null, answer);
          else reply({ code: answer.fails, details: 'no' });
        },
      },
    );
    collector.port = await new Promise<number>((resolve, reject) => {
      collector.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
    return collector;
  }

  get spans(): readonly OtlpSpan[] {
    return this.calls.flatMap(({ body }) => otlpSpans(body).spans);
  }

  async until(calls: number): Promise<void> {
    await untilEqual(calls, () => this.calls.length, 'calls to the collector');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    await Promise.resolve();
  }
}
