// A request that never became a stream, because nothing of it could be read. It is answered, counted and logged all the
// same.

import { HTTP_STATS } from '../../stats/index.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { flagBit } from '../response-flags.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Refusal } from './codec/server-connection.ts';
import type { StreamConnection } from './codec/stream-connection.ts';
import { hasBody, type LocalReply, localReplyLines } from './local-reply.ts';
import { ReplyHead } from './reply-head.ts';
import type { ResponseLines } from './response-edits.ts';
import type { RequestLedger } from './stream-record.ts';

const { downstream_rq_time, downstream_rq_total } = HTTP_STATS.index;

const NO_BYTES = Buffer.alloc(0);

/** The part of a connection manager that a refusal needs. */
interface Refuser extends RequestLedger {
  readonly responseLines: ResponseLines;
  countResponse(status: number): void;
}

/**
 * @param protocol as logs name it. Of HTTP/1 nobody may have read which; that is HTTP/1.1 then, as its answer is.
 * @param startedMs monotonic, of its first byte.
 */
export function refuseRequest(
  context: WorkerContext,
  manager: Refuser,
  connection: StreamConnection,
  reply: LocalReply,
  protocol: string,
  startedMs: number,
): Refusal {
  const { values } = context.stats;
  values[manager.statBase + downstream_rq_total]! += 1;
  const nowMs = context.clock.monotonicMs();
  context.stats.record(manager.statBase + downstream_rq_time, nowMs - startedMs);
  const facts = new StreamFacts(context.clock, startedMs, connection.facts, 'DownstreamEnd', manager.ingress);
  facts.protocol = protocol;
  facts.status = reply.status;
  facts.flags = flagBit(reply.flag);
  facts.details = reply.details;
  const date = context.date.text(nowMs);
  const { local, proxyStatus } = manager.responseLines;
  const ownLines = local + (proxyStatus?.line(facts.flags, facts.details) ?? '');
  const { accessLog, replyRules } = manager;
  let told = reply;
  let lines: string;
  if (replyRules === null) {
    lines = localReplyLines(reply, ownLines, date, '');
  } else {
    const head = new ReplyHead(reply);
    told = replyRules.rewrite(reply, head, facts, nowMs);
    head.restate(told);
    head.setOwn(ownLines, date);
    lines = head.lines();
  }
  const body = hasBody(told) ? (told.bytes ?? Buffer.from(told.body)) : NO_BYTES;
  manager.countResponse(told.status);
  if (accessLog !== null) {
    facts.localReplyBody = told.body;
    facts.bytesSent = body.length;
    facts.endMs = nowMs;
    accessLog.write(facts);
  }
  return { lines, body };
}
