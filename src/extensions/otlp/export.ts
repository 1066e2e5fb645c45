// What OTLP has alike for spans and for log records: requests that hold many of them under one resource, the calls they go
// by, and what collectors answer.

import type { CallAnswer, CallRequest } from '../../data-plane/index.ts';
import { unaryAnswer, unaryCall } from '../filters.http/grpc/unary-call.ts';
import { MessageWriter, readMessage } from '../filters.http/grpc/wire.ts';
import type { OtlpTarget, ResourceAttributes } from './target.ts';

const SCOPE = 'weir';
const NANOSECONDS = 1_000_000n;
/** Answers of collectors are short. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** A request to export. @param items each a field of what holds them in one scope. */
export function encodeExport(resource: ResourceAttributes, items: readonly Buffer[]): Buffer {
  const request = new MessageWriter();
  request.message(1, (ofResource) => {
    ofResource.message(1, (message) => {
      for (const [key, value] of resource) writeAttribute(message, 1, key, value);
    });
    const scope = new MessageWriter();
    scope.message(1, (message) => message.text(1, SCOPE));
    ofResource.bytes(2, Buffer.concat([scope.finish(), ...items]));
  });
  return request.finish();
}

/** @param method of gRPC, with its slash. */
export function exportCall(target: OtlpTarget, method: string, body: Buffer, timeoutMs: number): CallRequest {
  if (target.kind === 'grpc') return unaryCall({ ...target, timeoutMs }, method, body, MAX_ANSWER_BYTES);
  const { cluster, host, path, headers } = target;
  return {
    cluster,
    method: 'POST',
    path,
    host,
    fields: [['content-type', 'application/x-protobuf'], ...headers],
    body,
    isGrpc: false,
    timeoutMs,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  };
}

/** How many of the items the collector has taken. */
export function takenOf({ kind }: OtlpTarget, answer: CallAnswer, items: number): number {
  if (kind === 'http') return Math.trunc(answer.status / 100) === 2 ? items - refusedItems(answer.body) : 0;
  const message = unaryAnswer(answer);
  return message === null ? 0 : items - refusedItems(message);
}

/** How many the collector says that it has not taken. @param bytes a response to an export, or anything else. */
function refusedItems(bytes: Buffer): number {
  let refused = 0;
  try {
    readMessage(bytes, (field, reader) => {
      if (field !== 1) return false;
      reader.message((part) => {
        if (part !== 1) return false;
        refused = reader.integer();
        return true;
      });
      return true;
    });
  } catch {
    // It has answered well, in a way of its own.
    return 0;
  }
  return refused;
}

export function writeAttribute(message: MessageWriter, field: number, key: string, value: string): void {
  message.message(field, (attribute) => {
    attribute.byteText(1, key);
    attribute.message(2, (any) => any.byteText(1, value));
  });
}

/** Times have no more than their microseconds. */
export function unixNanoseconds(ms: number): bigint {
  return (BigInt(Math.round(ms * 1000)) * NANOSECONDS) / 1000n;
}
