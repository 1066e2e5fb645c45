// Times of the event loops of the real program, where they are asked for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);

function bootstrap(fields: object): string {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return JSON.stringify({
    admin: { address: ANY_PORT },
    stats_flush_interval: '0.05s',
    static_resources: { listeners: [listenerWith([manager], { name: 'main', address: ANY_PORT })] },
    ...fields,
  });
}

test('each thread records how long its turns take and how late its timers come, where the bootstrap says so', async () => {
  await using weir = await startWeir({
    configYaml: bootstrap({ enable_dispatcher_stats: true }),
    args: ['--concurrency', '2'],
  });
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
  client.close();
  const names = ['server', 'listener_manager.worker_0', 'listener_manager.worker_1'].flatMap((thread) =>
    ['loop_duration_us', 'poll_delay_us'].map((name) => `${thread}.dispatcher.${name}`),
  );
  const recorded = async (): Promise<string[]> => {
    const text = await weir.admin('/stats?usedonly&filter=dispatcher');
    return names.filter((name) => new RegExp(`^${name}: P0`, 'm').test(text));
  };
  await untilEqual(names.join(), async () => (await recorded()).join(), 'all histograms');
});

test('there are no such stats otherwise', async () => {
  await using weir = await startWeir({ configYaml: bootstrap({}), args: ['--concurrency', '1'] });
  assert.equal(await weir.admin('/stats?filter=dispatcher'), '');
});
