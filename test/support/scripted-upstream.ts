// An upstream that collects what its connections receive, and answers when the test says so.

import type { TestContext } from 'node:test';
import { WireUpstream } from './wire.ts';

export interface ScriptedUpstream {
  readonly port: number;
  /** Waits until the pattern has come, and so many bytes altogether; returns all that has. */
  readonly received: (pattern: string, bytes?: number) => Promise<string>;
  /** Sends on the connection that came last. */
  readonly send: (text: string) => void;
}

/** Ends with the test. */
export async function upstreamOf(t: TestContext): Promise<ScriptedUpstream> {
  let text = '';
  let wake = (): void => {};
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      wake();
    });
  });
  t.after(() => upstream.close());
  return {
    port: upstream.port,
    received: async (pattern, bytes = 0) => {
      while (text.length < bytes || !text.includes(pattern)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return text;
    },
    send: (answer) => void upstream.sockets.at(-1)!.write(answer),
  };
}
