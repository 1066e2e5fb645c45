// A rate limit service of gRPC, as those of others are.

import protobuf from 'protobufjs';
import { STRUCT } from './authorization-service.ts';
import { type Plain, UnaryService } from './unary-service.ts';

const { root } = protobuf.parse(
  `syntax = "proto3";
  ${STRUCT}
  message UInt64Value { uint64 value = 1; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }
  message Entry { string key = 1; string value = 2; }
  message Override { uint32 requests_per_unit = 1; int32 unit = 2; }
  message Descriptor { repeated Entry entries = 1; Override limit = 2; UInt64Value hits_addend = 3; }
  message RateLimitRequest { string domain = 1; repeated Descriptor descriptors = 2; uint32 hits_addend = 3; }
  message Limit { uint32 requests_per_unit = 1; int32 unit = 2; string name = 3; }
  message Status { int32 code = 1; Limit current_limit = 2; uint32 limit_remaining = 3; Duration duration_until_reset = 4; }
  message RateLimitResponse {
    int32 overall_code = 1; repeated Status statuses = 2; repeated HeaderValue response_headers_to_add = 3;
    repeated HeaderValue request_headers_to_add = 4; bytes raw_body = 5; Struct dynamic_metadata = 6; }`,
  { keepCase: true },
);

export const RateLimitRequestType = root.lookupType('RateLimitRequest');
export const RateLimitResponseType = root.lookupType('RateLimitResponse');

export const OK = { overall_code: 1 };
export const OVER_LIMIT = { overall_code: 2 };

export class RateLimitService extends UnaryService {
  static async start(): Promise<RateLimitService> {
    const service = new RateLimitService(RateLimitRequestType, RateLimitResponseType, OK);
    const path = (generation: string): string =>
      `/envoy.service.ratelimit.${generation}.RateLimitService/ShouldRateLimit`;
    await service.listen([path('v2'), path('v3')]);
    return service;
  }

  /** What it was asked last. */
  get last(): Plain {
    return this.asked.at(-1)!.message;
  }
}
