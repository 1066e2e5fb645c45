// How a session says which host it is served by: its address in a cookie, which may say until when, in a header, or in front of
// what the upstream says in a header of its own.

import { type EditableHead, findRequestCookie, replaceField, setCookieText } from '../../../data-plane/index.ts';
import type { HashCookie } from '../../../snapshot/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { isValidField } from '../field-edits.ts';
import { MessageWriter, readMessage } from '../grpc/wire.ts';
import type { SessionState } from './settings.ts';

const ADDRESS = 1;
const EXPIRES = 2;
const UPSTREAM_VALUE = 'UV:';
/** Longer than any address. */
const MAX_BASE64 = 512;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** As addresses begin that were written as they are, and no message does: a digit, a bracket or a path. */
const BARE_ADDRESS = /^[0-9[/@]/;

/** Times are seconds since the Unix epoch. */
export interface SessionCodec {
  /** Whether requests for this path have sessions. */
  covers(path: string): boolean;
  /** @returns undefined where the request says no host. */
  read(head: RequestHead, nowSeconds: number): string | undefined;
  write(head: EditableHead, address: string, nowSeconds: number): void;
  /** What is written says more than the address: also responses of the host that the request has said bring it. */
  readonly writesAlways?: boolean;
  /** Makes of what the client sends back what the upstream has said. @returns whether anything has changed. */
  restore?(head: RequestHead): boolean;
}

export function openSessionState(state: SessionState): SessionCodec {
  switch (state.kind) {
    case 'header':
      return new HeaderSession(state.name);
    case 'envelope':
      return new EnvelopeSession(state.name);
    case 'cookie':
      return new CookieSession(state.cookie);
  }
}

class HeaderSession implements SessionCodec {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  covers(): boolean {
    return true;
  }

  read(head: RequestHead): string | undefined {
    return decoded(head.headerByName(this.#name))?.toString('latin1');
  }

  write(head: EditableHead, address: string): void {
    head.removeField(this.#name);
    head.append(this.#name, Buffer.from(address, 'latin1').toString('base64'));
  }
}

/** `<address>;UV:<value of the upstream>`, both in base64. */
class EnvelopeSession implements SessionCodec {
  readonly writesAlways = true;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  covers(): boolean {
    return true;
  }

  read(head: RequestHead): string | undefined {
    return this.#opened(head)?.address;
  }

  restore(head: RequestHead): boolean {
    const opened = this.#opened(head);
    if (opened === undefined) return false;
    replaceField(head, this.#name, opened.value);
    return true;
  }

  write(head: EditableHead, address: string): void {
    const [field, ...others] = head.entries().filter(([name]) => name === this.#name);
    // What stands there several times is no name of a session.
    if (field === undefined || others.length > 0) return;
    const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
    replaceField(head, this.#name, `${base64(address)};${UPSTREAM_VALUE}${base64(field[1])}`);
  }

  /** Undefined for what has not been written here. */
  #opened(head: RequestHead): { readonly address: string | undefined; readonly value: string } | undefined {
    const [first = '', ...parts] = (head.headerByName(this.#name) ?? '').split(';');
    const said = parts.find((part) => part.startsWith(UPSTREAM_VALUE))?.slice(UPSTREAM_VALUE.length) ?? '';
    if (said === '' || !BASE64.test(said)) return undefined;
    const value = Buffer.from(said, 'base64').toString('latin1');
    // Clients may send anything, ends of lines as well.
    if (!isValidField({ name: this.#name, value, action: 'set' })) return undefined;
    return { address: decoded(first)?.toString('latin1'), value };
  }
}

class CookieSession implements SessionCodec {
  readonly #cookie: HashCookie;

  constructor(cookie: HashCookie) {
    this.#cookie = cookie;
  }

  covers(path: string): boolean {
    const { path: own } = this.#cookie;
    // Also those that have no path, as a CONNECT.
    if (own === '' || own === '/') return true;
    if (!path.startsWith(own)) return false;
    const next = path[own.length];
    return own.endsWith('/') || next === undefined || next === '/' || next === '?' || next === '#';
  }

  read(head: RequestHead, nowSeconds: number): string | undefined {
    const bytes = decoded(findRequestCookie(head, this.#cookie.name));
    if (bytes === undefined) return undefined;
    const text = bytes.toString('latin1');
    return BARE_ADDRESS.test(text) ? text : addressIn(bytes, nowSeconds);
  }

  write(head: EditableHead, address: string, nowSeconds: number): void {
    const ttlSeconds = this.#cookie.ttlSeconds ?? 0;
    const message = new MessageWriter();
    message.bytes(ADDRESS, Buffer.from(address, 'latin1'));
    if (ttlSeconds > 0) message.integer(EXPIRES, nowSeconds + ttlSeconds);
    head.append('set-cookie', setCookieText(this.#cookie, message.finish().toString('base64')));
  }
}

/** Undefined for what is none, or none of an address. */
function decoded(text: string | undefined): Buffer | undefined {
  if (text === undefined || text === '' || text.length > MAX_BASE64 || !BASE64.test(text)) return undefined;
  return Buffer.from(text, 'base64');
}

/** Undefined where it has expired, or there is none. */
function addressIn(bytes: Buffer, nowSeconds: number): string | undefined {
  let address = '';
  let expires = 0;
  try {
    readMessage(bytes, (field, reader) => {
      if (field === ADDRESS) address = reader.bytes().toString('latin1');
      else if (field === EXPIRES) expires = reader.integer();
      else return false;
      return true;
    });
  } catch {
    // Clients may send anything; a cookie of somebody else's says nothing.
    return undefined;
  }
  return address === '' || (expires !== 0 && expires < nowSeconds) ? undefined : address;
}
