// A collector that takes OTLP over gRPC, or over HTTP.

import type { GrpcTarget } from '../filters.http/grpc/target.ts';
import type { HttpTarget } from '../http-target.ts';

export type OtlpTarget = ({ readonly kind: 'grpc' } & GrpcTarget) | ({ readonly kind: 'http' } & HttpTarget);

/** Of the process that reports. Byte texts. */
export type ResourceAttributes = readonly (readonly [name: string, value: string])[];
