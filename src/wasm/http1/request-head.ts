// The request head of the codec: method, target in its parts, and the edits only a request has.

import * as layout from '../../../assembly/layout/http1.ts';
import type { CodecMemory } from './memory.ts';
import { MessageHead } from './message-head.ts';
import type { PreparedRegion } from './prepared-lines.ts';

const METHOD_NAMES = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

/** Marks an edit text that does not fit; the write then fails. */
const TOO_LONG = 0xffffffff;

export class RequestHead extends MessageHead {
  constructor(memory: CodecMemory, prepared: PreparedRegion) {
    super(memory, prepared, layout.REQUEST_RECORD, layout.REQUEST_FIELDS, layout.REQUEST_LINES);
  }

  /** One of Method. */
  get methodId(): number {
    return this.word(layout.RECORD_METHOD);
  }

  /** The method as sent; methods are case-sensitive. */
  get method(): string {
    const id = this.methodId;
    return id === layout.METHOD_OTHER
      ? this.slice(this.word(layout.RECORD_START), this.word(layout.RECORD_METHOD_LENGTH))
      : METHOD_NAMES[id]!;
  }

  /** The request target as sent, in whatever form. */
  target(): string {
    return this.slice(this.word(layout.RECORD_TARGET_OFFSET), this.word(layout.RECORD_TARGET_LENGTH));
  }

  /**
   * Path and query to route by: of an absolute form the part behind the authority ('/' when that is empty), '*'
   * for OPTIONS of the whole server, '' for CONNECT. Never holds white space, '#', control or 8-bit characters.
   */
  path(): string {
    const length = this.word(layout.RECORD_PATH_LENGTH);
    if (length > 0) {
      const path = this.slice(this.word(layout.RECORD_PATH_OFFSET), length);
      // An absolute form may have a query and no path.
      return path.startsWith('?') ? `/${path}` : path;
    }
    if ((this.flags & layout.FLAG_AUTHORITY_FORM) !== 0) return '';
    // An OPTIONS request of absolute form without a path is the asterisk form for the origin (RFC 9112 3.2.4).
    return this.methodId === layout.METHOD_OPTIONS ? '*' : '/';
  }

  /**
   * host[:port] that the request is for: the target's own when it names one (absolute form, CONNECT), which by
   * RFC 9112 3.2.2 overrules Host; else Host. Empty only for HTTP/1.0 without Host. Case as sent.
   */
  authority(): string {
    return this.slice(this.word(layout.RECORD_AUTHORITY_OFFSET), this.word(layout.RECORD_AUTHORITY_LENGTH));
  }

  /**
   * Writes another target in place of the received one. Without this an absolute form is written in origin form.
   * A character that a target may not hold (space, '#', control, 8-bit) makes the write fail.
   */
  replaceTarget(target: string): void {
    if (target.length > layout.NEW_TARGET_BYTES) {
      this.setWord(layout.RECORD_NEW_TARGET_LENGTH, TOO_LONG);
      return;
    }
    this.memory.bytes.write(target, layout.NEW_TARGET, 'latin1');
    this.setWord(layout.RECORD_NEW_TARGET_LENGTH, target.length);
  }

  /**
   * Writes `Host: host` as first header in place of the received one. An absolute form gets its own authority by
   * itself. An HTTP/1.0 request without Host needs this, since the rewritten head is HTTP/1.1.
   */
  replaceHost(host: string): void {
    if (host.length > layout.NEW_HOST_BYTES) {
      this.setWord(layout.RECORD_NEW_HOST_LENGTH, TOO_LONG);
      return;
    }
    this.memory.bytes.write(host, layout.NEW_HOST, 'latin1');
    this.setWord(layout.RECORD_NEW_HOST_LENGTH, host.length);
  }
}
