// Requests that want their connection to become something else: Upgrade (RFC 9110 section 7.8) and CONNECT (9.3.6), and
// what is special about their heads.

import { Framing, HEADER_ID, HeadFlag, type MessageHead, Method, type RequestHead } from '../../wasm/http1.ts';

const CONNECT = 'connect';
/** No server has to take this offer, and this one speaks HTTP/1.1 with its clients. */
const HTTP2 = 'h2c';

/** What the request wants the connection to become, in lower case; empty when it stays as it is. */
export function upgradeType(head: RequestHead): string {
  if (head.methodId === Method.CONNECT) return CONNECT;
  // HTTP/1.0 has no Upgrade: a server must ignore it, and always may (RFC 9110 section 7.8). Behind chunks, with or
  // without trailers, nobody upgrades.
  if ((head.flags & HeadFlag.UPGRADE) === 0 || head.minorVersion === 0) return '';
  if (head.framing === Framing.CHUNKED) return '';
  const type = head.header(HEADER_ID.upgrade)!.toLowerCase();
  return type === HTTP2 ? '' : type;
}

/** Lets the fields of an upgrade pass, which otherwise end at this hop. Not twice, if it is called twice. */
export function keepUpgradeFields(head: MessageHead): void {
  const first = head.indexOf(HEADER_ID.upgrade);
  if (first < 0 || !head.isDropped(first)) return;
  head.keepKnown(HEADER_ID.upgrade);
  head.append('connection', 'upgrade');
}
