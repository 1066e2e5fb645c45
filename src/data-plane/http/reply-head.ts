// The head of a local reply whose route edits headers. Other local replies are put together as text at once
// (localReplyLines).

import { hasBody, type LocalReply, lengthField, replyFields, statusLine, typeFields } from './local-reply.ts';
import { TextHead } from './text-head.ts';

export class ReplyHead extends TextHead {
  #status: number;

  constructor(reply: LocalReply) {
    super(startLineOf(reply.status), replyFields(reply));
    this.#status = reply.status;
  }

  get status(): number {
    return this.#status;
  }

  setStatus(status: number): void {
    this.#status = status;
    this.startLine = startLineOf(status);
  }

  /** Becomes the head of what this reply has been made into: what describes its body is said anew, all else stays. */
  restate(reply: LocalReply): void {
    this.setStatus(reply.status);
    this.removeField('content-length');
    this.appendMissing(lengthField(reply));
    if (reply.contentType === undefined && hasBody(reply)) return;
    this.removeField('content-type');
    this.appendMissing(typeFields(reply));
  }

  /** Sets what the connection manager insists on. @param ownLines as for localReplyLines. */
  setOwn(ownLines: string, date: string): void {
    this.appendLines(ownLines, 'server');
    if (!this.hasField('date')) this.append('date', date);
  }
}

function startLineOf(status: number): string {
  return statusLine(status).slice(0, -2);
}
