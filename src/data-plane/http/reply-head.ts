// The head of a local reply whose route edits headers. Other local replies are put together as text at once
// (localReplyLines).

import { type LocalReply, replyFields, statusLine } from './local-reply.ts';
import { TextHead } from './text-head.ts';

export class ReplyHead extends TextHead {
  constructor(reply: LocalReply) {
    super(statusLine(reply.status).slice(0, -2), replyFields(reply));
  }

  /** Sets what the connection manager insists on. @param ownLines as for localReplyLines. */
  setOwn(ownLines: string, date: string): void {
    this.appendLines(ownLines, 'server');
    if (!this.hasField('date')) this.append('date', date);
  }
}
