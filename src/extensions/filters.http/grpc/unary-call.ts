// One question and one answer of a gRPC service, as a call to a cluster.

import { type CallAnswer, type CallRequest, compileRetryPolicy, type RetryPolicy } from '../../../data-plane/index.ts';
import type { RetrySettings } from '../../../snapshot/index.ts';
import { FRAME_HEAD_BYTES, frameHead } from './frames.ts';
import { GRPC_FIELDS } from './stream-request.ts';
import type { GrpcTarget } from './target.ts';

/** Compiled once for each target. */
const policies = new WeakMap<RetrySettings, RetryPolicy>();

function policyOf(settings: RetrySettings): RetryPolicy {
  let policy = policies.get(settings);
  if (policy === undefined) {
    policy = compileRetryPolicy(settings);
    policies.set(settings, policy);
  }
  return policy;
}

/** @param path of the method, with its slash. @param maxAnswerBytes a longer answer is a failure. */
export function unaryCall(target: GrpcTarget, path: string, message: Buffer, maxAnswerBytes: number): CallRequest {
  const { cluster, authority, timeoutMs, metadata, retry } = target;
  return {
    cluster,
    method: 'POST',
    path,
    host: authority,
    fields: [
      ...GRPC_FIELDS,
      ...(timeoutMs > 0 ? [['grpc-timeout', `${Math.trunc(timeoutMs)}m`] as const] : []),
      ...metadata,
    ],
    body: Buffer.concat([frameHead(0, message.length), message]),
    isGrpc: true,
    timeoutMs,
    maxAnswerBytes,
    retry: retry && policyOf(retry),
  };
}

/** The message of an answer; null where the service has failed, or says anything but one message. */
export function unaryAnswer({ status, head, body, trailers }: CallAnswer): Buffer | null {
  const grpcStatus = trailers?.get('grpc-status') ?? head.headerByName('grpc-status');
  if (status !== 200 || grpcStatus !== '0') return null;
  // One message, as it is: nobody has offered to read it in another coding.
  if (body.length < FRAME_HEAD_BYTES || body[0] !== 0) return null;
  if (body.readUInt32BE(1) !== body.length - FRAME_HEAD_BYTES) return null;
  return body.subarray(FRAME_HEAD_BYTES);
}
