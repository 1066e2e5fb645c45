// Requests that Node's parser lets pass and that a server must refuse, because another reader of the same bytes may see
// another host or another end in them. Source: RFC 9112 sections 3.2 and 6.1, RFC 3986 section 3.2. What the parser refuses
// by itself: two lengths, a length beside chunks, folded lines, bare CR and LF, a space before the colon.

import type { IncomingMessage } from 'node:http';
import { type AdminResponse, textResponse } from './response.ts';

/** A name or address and perhaps a port; empty for a target that has no host. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;
const CHUNKED = 'chunked';
/** Where the next request would begin is not certain. */
const LAST = { connection: 'close' };

/** @returns the answer to a malformed request, or undefined for any other. */
export function malformedRequestAnswer(request: IncomingMessage): AdminResponse | undefined {
  const { host = [] } = request.headersDistinct;
  if (host.length === 0 && request.httpVersion !== '1.0') return refusal(400, 'no host header');
  if (host.length > 1) return refusal(400, 'more than one host header');
  if (!HOST.test(host[0] ?? '')) return refusal(400, `invalid host '${host[0]}'`);
  const coding = request.headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (request.httpVersion === '1.0') return refusal(400, 'transfer-encoding in HTTP/1.0');
  return coding.toLowerCase() === CHUNKED ? undefined : refusal(501, `transfer-encoding '${coding}' is not supported`);
}

function refusal(status: number, reason: string): AdminResponse {
  return { ...textResponse(`${reason}\n`, status), headers: LAST };
}
