// Clusters that say their names when they are asked over plain TCP, and a proxy in front of them with a listener `in`.

import type { TestContext } from 'node:test';
import { type JsonObject, socketAddress } from './bootstrap.ts';
import { cluster } from './discovered-proxy.ts';
import { startWeir, type WeirProcess } from './weir-process.ts';
import { WireClient, WireUpstream } from './wire.ts';

export const ANY_PORT = socketAddress('127.0.0.1', 0);

/** `one` and `two`, which answer whatever comes with their names and a semicolon. */
export async function clusters(t: TestContext): Promise<readonly JsonObject[]> {
  const all: JsonObject[] = [];
  for (const name of ['one', 'two']) {
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => socket.write(`${name};`));
      socket.on('end', () => socket.end());
    });
    t.after(() => upstream.close());
    all.push(cluster(name, upstream.port));
  }
  return all;
}

export function bootstrapOf(clusterList: readonly JsonObject[], listener: JsonObject): string {
  return JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: ANY_PORT },
    static_resources: { listeners: [listener], clusters: clusterList },
  });
}

export const start = (configYaml: string): Promise<WeirProcess> =>
  startWeir({ configYaml, args: ['--concurrency', '1', '--file-flush-interval-msec', '20'] });

export async function connect(weir: WeirProcess): Promise<WireClient> {
  return new WireClient((await weir.listeners()).get('in')!.port);
}

/** Which cluster answers, or that the connection ends. */
export async function ask(client: WireClient, text = 'x'): Promise<string> {
  return client
    .write(text)
    .until(';')
    .catch(() => 'ended');
}

export async function askAnew(weir: WeirProcess, text?: string): Promise<string> {
  const client = await connect(weir);
  const answer = await ask(client, text);
  client.close();
  return answer;
}
