// The request head of the codec: method, target in its parts, and the edits only a request has.

import * as layout from '../../../assembly/layout/http1.ts';
import type { CodecMemory } from './memory.ts';
import { MessageHead } from './message-head.ts';
import { mayHaveForms, mergeSlashes, normalizePath, PATH_INVALID, unescapeSlashes } from './path-forms.ts';
import type { PreparedRegion } from './prepared-lines.ts';

const METHOD_NAMES = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

/** Marks an edit text that does not fit; the write then fails. */
const TOO_LONG = 0xffffffff;

/** A text of more bytes is made as fast as they are compared. */
const COMPARED_PATH_LIMIT = 64;

const SLASH = 0x2f;
const QUESTION = 0x3f;
const DOT = 0x2e;
const COLON = 0x3a;
const CLOSE_BRACKET = 0x5d;

/** What a path is made into, as bits; in this order. */
export const PathStep = { unescapeSlashes: 1, normalize: 2, mergeSlashes: 4 } as const;

/** What has become of a path. */
export const PathChange = {
  none: 0,
  rewritten: 1,
  /** There were escaped slashes, which are plain ones now. */
  unescaped: 2,
  /** It cannot be normalized, and is not to be read any more. */
  invalid: 3,
} as const;
export type PathChange = (typeof PathChange)[keyof typeof PathChange];

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

  /** `path()` is this text, as far as that is cheaper to see than to make it: never of a long one. */
  hasPath(text: string): boolean {
    const { length } = text;
    if (length === 0 || length > COMPARED_PATH_LIMIT || length !== this.word(layout.RECORD_PATH_LENGTH)) return false;
    const { bytes } = this.memory;
    const start = this.word(layout.RECORD_BASE) + this.word(layout.RECORD_PATH_OFFSET);
    // Paths differ at their ends more often than where they begin.
    for (let at = length - 1; at >= 0; at -= 1) if (bytes[start + at] !== text.charCodeAt(at)) return false;
    return true;
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

  /**
   * Brings the path to one of the forms that mean the same: `path()` is that from now on, and it is written, unless
   * `replaceTarget` says otherwise. The query stays.
   * @param steps bits of PathStep.
   */
  rewritePath(steps: number): PathChange {
    const { bytes } = this.memory;
    const length = this.word(layout.RECORD_PATH_LENGTH);
    const start = this.word(layout.RECORD_BASE) + this.word(layout.RECORD_PATH_OFFSET);
    // No path: CONNECT, the asterisk, an absolute form that has at most a query.
    if (length === 0 || bytes[start] !== SLASH) return PathChange.none;
    const end = start + length;
    const found = bytes.subarray(start, end).indexOf(QUESTION);
    const query = found === -1 ? end : start + found;
    if (!mayHaveForms(bytes, start, query)) return PathChange.none;
    let pathEnd = query;
    if ((steps & PathStep.unescapeSlashes) !== 0) pathEnd = unescapeSlashes(bytes, start, query);
    const isUnescaped = pathEnd !== query;
    if ((steps & PathStep.normalize) !== 0) pathEnd = normalizePath(bytes, start, pathEnd);
    if (pathEnd === PATH_INVALID) return PathChange.invalid;
    if ((steps & PathStep.mergeSlashes) !== 0) pathEnd = mergeSlashes(bytes, start, pathEnd);
    bytes.copyWithin(pathEnd, query, end);
    const newLength = pathEnd - start + end - query;
    this.setWord(layout.RECORD_PATH_LENGTH, newLength);
    if ((this.flags & layout.FLAG_ABSOLUTE_FORM) === 0) this.setWord(layout.RECORD_TARGET_LENGTH, newLength);
    bytes.copyWithin(layout.NEW_TARGET, start, start + newLength);
    this.setWord(layout.RECORD_NEW_TARGET_LENGTH, newLength);
    return isUnescaped ? PathChange.unescaped : PathChange.rewritten;
  }

  /** The port that the authority names; -1 without one. */
  get authorityPort(): number {
    const authority = this.authority();
    const colon = this.#portColon();
    return colon === -1 ? -1 : Number(authority.slice(colon + 1));
  }

  /** Takes its port off the authority, for all who read it and for the next hop. Not of a CONNECT, which needs one. */
  stripPort(): void {
    const colon = this.#portColon();
    if (colon > 0) this.#shortenAuthority(colon);
  }

  /** The same for a dot at the end of the host's name. */
  stripHostDot(): void {
    const { bytes } = this.memory;
    const start = this.#authorityStart;
    const length = this.word(layout.RECORD_AUTHORITY_LENGTH);
    const colon = this.#portColon();
    const dot = (colon === -1 ? length : colon) - 1;
    // Of a name that is a dot alone nothing would be left.
    if (dot < 1 || bytes[start + dot] !== DOT) return;
    bytes.copyWithin(start + dot, start + dot + 1, start + length);
    this.#shortenAuthority(length - 1);
  }

  /** Of a request that names none: what it is for, for all who read it and for the next hop. */
  setAuthority(authority: string): void {
    this.replaceHost(authority);
    this.setWord(layout.RECORD_AUTHORITY_OFFSET, layout.NEW_HOST - this.word(layout.RECORD_BASE));
    this.setWord(layout.RECORD_AUTHORITY_LENGTH, authority.length);
  }

  get #authorityStart(): number {
    return this.word(layout.RECORD_BASE) + this.word(layout.RECORD_AUTHORITY_OFFSET);
  }

  /** Offset of the colon before the authority's port; -1 without one. Those of IPv6 stand in brackets. */
  #portColon(): number {
    const { bytes } = this.memory;
    const start = this.#authorityStart;
    for (let at = this.word(layout.RECORD_AUTHORITY_LENGTH) - 1; at >= 0; at -= 1) {
      const byte = bytes[start + at];
      if (byte === COLON) return at;
      if (byte === CLOSE_BRACKET) return -1;
    }
    return -1;
  }

  /** The authority has become this long where it lies. */
  #shortenAuthority(length: number): void {
    const offset = this.word(layout.RECORD_AUTHORITY_OFFSET);
    this.setWord(layout.RECORD_AUTHORITY_LENGTH, length);
    const host = this.indexOf(layout.ID_HOST);
    if (host >= 0 && this.field(host, layout.FIELD_VALUE_OFFSET) === offset) {
      this.setField(host, layout.FIELD_VALUE_LENGTH, length);
    }
    const authority = this.authority();
    if ((this.flags & layout.FLAG_AUTHORITY_FORM) !== 0) this.replaceTarget(authority);
    this.replaceHost(authority);
  }
}
