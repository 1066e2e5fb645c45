// A request that never became a stream, because nothing of it could be read. It is answered, counted and logged all the
// same.

import { HTTP_STATS } from '../../stats/index.ts';
import type { CodecError } from '../../wasm/http1.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { flagBit } from '../response-flags.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamCodec } from './downstream-codec.ts';
import { type LocalReply, localReplyHead, protocolViolation } from './local-reply.ts';
import type { ResponseLines } from './response-edits.ts';
import type { RequestLedger } from './stream-record.ts';

const {
  downstream_cx_protocol_error,
  downstream_rq_http1_total,
  downstream_rq_time,
  downstream_rq_too_large,
  downstream_rq_total,
} = HTTP_STATS.index;

/** The part of a connection manager that a refusal needs. */
interface Refuser extends RequestLedger {
  readonly responseLines: ResponseLines;
  countResponse(status: number): void;
}

/** Refuses a head that broke HTTP; as refuseRequest. */
export function refuseHead(
  context: WorkerContext,
  manager: Refuser,
  codec: DownstreamCodec,
  error: CodecError,
  startedMs: number,
): string {
  const { values } = context.stats;
  values[manager.statBase + downstream_cx_protocol_error]! += 1;
  if (error.status === 431) values[manager.statBase + downstream_rq_too_large]! += 1;
  const log = context.logs.http;
  if (log.enabled('debug')) log.debug(`${codec.peerAddress} broke the protocol: ${error.reason}`);
  return refuseRequest(context, manager, codec, protocolViolation(error.status, error.reason), startedMs);
}

/**
 * @param startedMs monotonic, of its first byte.
 * @returns the whole answer, which is the last one of its connection.
 */
export function refuseRequest(
  context: WorkerContext,
  manager: Refuser,
  codec: DownstreamCodec,
  reply: LocalReply,
  startedMs: number,
): string {
  const { values } = context.stats;
  values[manager.statBase + downstream_rq_total]! += 1;
  values[manager.statBase + downstream_rq_http1_total]! += 1;
  manager.countResponse(reply.status);
  const nowMs = context.clock.monotonicMs();
  context.stats.record(manager.statBase + downstream_rq_time, nowMs - startedMs);
  if (manager.accessLog !== null) {
    const facts = new StreamFacts(context.clock, startedMs, codec.facts, 'DownstreamEnd', manager.ingress);
    facts.status = reply.status;
    facts.flags = flagBit(reply.flag);
    facts.details = reply.details;
    facts.localReplyBody = reply.body;
    facts.bytesSent = reply.body.length;
    facts.endMs = nowMs;
    manager.accessLog.write(facts);
  }
  const date = context.date.text(nowMs);
  return localReplyHead(reply, manager.responseLines.local, date, 'connection: close\r\n') + reply.body;
}
