// An upstream that says nothing of its own: the test answers on the socket of each request.

import type { Socket } from 'node:net';
import { eventually } from './eventually.ts';
import { WireUpstream } from './wire.ts';

export interface Received {
  readonly head: string;
  /** What has come after the head, until the next request on the connection. */
  body: string;
  readonly socket: Socket;
}

export type SilentUpstream = WireUpstream & { readonly requests: Received[] };

/** Bodies that hold an empty line are not for it. */
export async function silent(): Promise<SilentUpstream> {
  const requests: Received[] = [];
  const upstream = await WireUpstream.start((socket) => {
    let text = '';
    let last: Received | undefined;
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        last = { head: text.slice(0, end + 4), body: '', socket };
        requests.push(last);
        text = text.slice(end + 4);
      }
      if (last === undefined || /^[A-Z]+ \//.test(text)) return;
      last.body += text;
      text = '';
    });
    socket.on('end', () => socket.end());
  });
  return Object.assign(upstream, { requests });
}

/** Waits for the request of this number, which is the last one. */
export async function arrived(requests: readonly Received[], count: number): Promise<Received> {
  await eventually(() => requests.length === count, `request ${count} arrives`);
  return requests[count - 1]!;
}
