// Real gRPC services for tests of sinks, which decode what comes with the project's own schema.

import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { protoSchema } from '../../src/config/proto/root.ts';
import { untilEqual } from './eventually.ts';

type Plain = Readonly<Record<string, unknown>>;

/** A message as plain data: 64-bit numbers as numbers, enums as their names. */
export function decoded(typeName: string, bytes: Buffer): Plain {
  const type = protoSchema().messageType(typeName);
  return type.toObject(type.decode(bytes), { longs: Number, enums: String, arrays: true });
}

const asItIs = (bytes: Buffer): Buffer => bytes;

/** How the service answers. */
export interface Manners {
  /** The code of a failure; undefined answers well. */
  fails?: number | undefined;
  /** Takes calls and never answers them. */
  hangs?: boolean;
  /** Data points that it says it has refused. */
  refused?: number;
}

abstract class GrpcReceiver implements AsyncDisposable {
  readonly server = new Server();
  readonly metadata: Metadata[] = [];
  port = 0;

  async listen(port = 0): Promise<this> {
    this.port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.forceShutdown();
    await Promise.resolve();
  }
}

/** Of a metric: its name, its kind and its points. */
export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: {
    readonly data_points: readonly Plain[];
    readonly aggregation_temporality: string;
    is_monotonic: boolean;
  };
  readonly gauge?: { readonly data_points: readonly Plain[] };
  readonly histogram?: { readonly data_points: readonly Plain[]; readonly aggregation_temporality: string };
}

export class OtlpReceiver extends GrpcReceiver {
  readonly requests: Plain[] = [];
  readonly sizes: number[] = [];
  readonly manners: Manners;

  constructor(manners: Manners = {}) {
    super();
    this.manners = manners;
    const Export = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void => {
      this.metadata.push(call.metadata);
      this.sizes.push(call.request.length);
      const { fails, hangs, refused = 0 } = this.manners;
      if (hangs) return;
      this.requests.push(decoded('opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest', call.request));
      if (fails !== undefined) answer({ code: fails, details: 'as it was told' });
      else answer(null, refusal(refused));
    };
    this.server.addService(
      {
        Export: {
          path: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
          requestStream: false,
          responseStream: false,
          requestSerialize: asItIs,
          requestDeserialize: asItIs,
          responseSerialize: asItIs,
          responseDeserialize: asItIs,
        },
      },
      { Export },
    );
  }

  /** Of all requests. */
  get metrics(): readonly ReceivedMetric[] {
    return this.requests.flatMap((request) =>
      (
        request.resource_metrics as readonly { scope_metrics: readonly { metrics: readonly ReceivedMetric[] }[] }[]
      ).flatMap(({ scope_metrics }) => scope_metrics.flatMap(({ metrics }) => metrics)),
    );
  }

  named(name: string): readonly ReceivedMetric[] {
    return this.metrics.filter((metric) => metric.name === name);
  }

  async until(isSo: () => boolean): Promise<void> {
    await untilEqual(true, isSo, 'the metrics that have come');
  }
}

function refusal(points: number): Buffer {
  const type = protoSchema().messageType('opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceResponse');
  const partial_success = { rejected_data_points: points, error_message: 'too many' };
  return Buffer.from(type.encode((points === 0 ? {} : { partial_success }) as never).finish());
}

export interface ReceivedFamily {
  readonly name: string;
  readonly type: string;
  readonly metric: readonly Plain[];
}

export class MetricsServiceReceiver extends GrpcReceiver {
  /** By stream. */
  readonly streams: Plain[][] = [];
  readonly calls: ServerReadableStream<Buffer, Buffer>[] = [];
  /** Ends each stream well after so many messages; 0 for never. */
  endsAfter = 0;

  /** @param isDeaf takes streams and reads nothing of them. */
  constructor({ generation = 'v3', isDeaf = false }: { generation?: 'v2' | 'v3'; isDeaf?: boolean } = {}) {
    super();
    const StreamMetrics = (call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void => {
      const messages: Plain[] = [];
      this.streams.push(messages);
      this.calls.push(call);
      this.metadata.push(call.metadata);
      call.on('error', () => {});
      if (isDeaf) return;
      call.on('data', (bytes: Buffer) => {
        messages.push(decoded('proxy.service.metrics.v3.StreamMetricsMessage', bytes));
        if (messages.length === this.endsAfter) answer(null, Buffer.alloc(0));
      });
      call.on('end', () => answer(null, Buffer.alloc(0)));
    };
    this.server.addService(
      {
        StreamMetrics: {
          path: `/envoy.service.metrics.${generation}.MetricsService/StreamMetrics`,
          requestStream: true,
          responseStream: false,
          requestSerialize: asItIs,
          requestDeserialize: asItIs,
          responseSerialize: asItIs,
          responseDeserialize: asItIs,
        },
      },
      { StreamMetrics },
    );
  }

  get messages(): readonly Plain[] {
    return this.streams.flat();
  }

  get families(): readonly ReceivedFamily[] {
    return this.messages.flatMap(({ envoy_metrics }) => envoy_metrics as readonly ReceivedFamily[]);
  }

  named(name: string): readonly ReceivedFamily[] {
    return this.families.filter((family) => family.name === name);
  }

  async until(isSo: () => boolean): Promise<void> {
    await untilEqual(true, isSo, 'the metrics that have come');
  }
}

export { status };
