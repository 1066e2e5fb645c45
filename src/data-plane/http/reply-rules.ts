// What a connection manager makes of replies of the proxy's own (local_reply_config). The first mapper whose filter lets a
// reply pass gives it another body, more fields and another status, in this order, so that values of fields see the
// status that there was; then a format words the body, and sees all of that.

import type { LocalReplySettings } from '../../snapshot/index.ts';
import { compileFilter, type PassesFilter } from '../access-log/filter.ts';
import type { StreamFacts } from '../format/stream-facts.ts';
import { HeaderEditor } from '../route/header-editor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type BodyFormat, compileBodyFormat } from './body-format.ts';
import type { LocalReply } from './local-reply.ts';
import type { ReplyHead } from './reply-head.ts';

const PLAIN_TEXT = 'text/plain';

interface Mapper {
  readonly passes: PassesFilter;
  readonly status: number | null;
  readonly body: Buffer | null;
  readonly headers: HeaderEditor | null;
  readonly format: BodyFormat | null;
}

export class ReplyRules {
  readonly #mappers: readonly Mapper[];
  readonly #format: BodyFormat | null;

  private constructor(context: WorkerContext, { mappers, format }: LocalReplySettings) {
    this.#mappers = mappers.map(({ filter, status, body, headerEdits, format }) => ({
      passes: compileFilter(filter, context.random, context.runtime),
      status,
      body: body && Buffer.from(body.buffer, body.byteOffset, body.byteLength),
      headers: headerEdits && new HeaderEditor([headerEdits]),
      format: compileBodyFormat(format),
    }));
    this.#format = compileBodyFormat(format);
  }

  /** @returns null without settings: then replies go out as they are. */
  static compile(context: WorkerContext, settings: LocalReplySettings | undefined): ReplyRules | null {
    return settings === undefined ? null : new ReplyRules(context, settings);
  }

  /**
   * @param head of the reply, with what its route wants of it; mappers add to it.
   * @param facts with status and flags of the reply; left with the status and the unformatted body of the result.
   * @param nowMs monotonic; durations go up to here.
   */
  rewrite(reply: LocalReply, head: ReplyHead, facts: StreamFacts, nowMs: number): LocalReply {
    facts.endMs = nowMs;
    facts.liveResponse = head;
    facts.localReplyBody = reply.body;
    let told = reply;
    const mapper = this.#mappers.find(({ passes }) => passes(facts));
    if (mapper !== undefined) {
      const { body, status } = mapper;
      if (body !== null) {
        told = { ...told, body: body.toString(), bytes: body, contentType: PLAIN_TEXT };
        facts.localReplyBody = told.body;
      }
      mapper.headers?.apply(head, { facts });
      if (status !== null) {
        const { grpcStatus: _former, ...rest } = told;
        told = { ...rest, status };
        facts.status = status;
      }
    }
    const format = mapper?.format ?? this.#format;
    if (format !== null) {
      told = { ...told, bytes: Buffer.from(format.render(facts), 'latin1'), contentType: format.contentType };
    }
    facts.liveResponse = null;
    return told;
  }
}
