// A request that never became a stream, because nothing of it could be read. It is answered, counted and logged all the
// same.

import { HTTP_STATS } from '../../stats/index.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { flagBit } from '../response-flags.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { StreamConnection } from './codec/stream-connection.ts';
import { type LocalReply, localReplyLines } from './local-reply.ts';
import type { ResponseLines } from './response-edits.ts';
import type { RequestLedger } from './stream-record.ts';

const { downstream_rq_time, downstream_rq_total } = HTTP_STATS.index;

/** The part of a connection manager that a refusal needs. */
interface Refuser extends RequestLedger {
  readonly responseLines: ResponseLines;
  countResponse(status: number): void;
}

/**
 * @param startedMs monotonic, of its first byte.
 * @returns the lines of the answer's head, without the empty one behind them.
 */
export function refuseRequest(
  context: WorkerContext,
  manager: Refuser,
  connection: StreamConnection,
  reply: LocalReply,
  startedMs: number,
): string {
  const { values } = context.stats;
  values[manager.statBase + downstream_rq_total]! += 1;
  manager.countResponse(reply.status);
  const nowMs = context.clock.monotonicMs();
  context.stats.record(manager.statBase + downstream_rq_time, nowMs - startedMs);
  if (manager.accessLog !== null) {
    const facts = new StreamFacts(context.clock, startedMs, connection.facts, 'DownstreamEnd', manager.ingress);
    facts.status = reply.status;
    facts.flags = flagBit(reply.flag);
    facts.details = reply.details;
    facts.localReplyBody = reply.body;
    facts.bytesSent = reply.body.length;
    facts.endMs = nowMs;
    manager.accessLog.write(facts);
  }
  const date = context.date.text(nowMs);
  return localReplyLines(reply, manager.responseLines.local, date, '');
}
