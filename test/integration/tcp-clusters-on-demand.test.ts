// TCP proxies whose connections wait for their cluster (on_demand), in the real program.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import {
  assignment,
  CLUSTER,
  cluster,
  ENDPOINTS,
  FORMS,
  type Form,
  LISTENER,
  ofForm,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  AGGREGATED,
  CHANGES,
  type OnDemandProxy,
  OWN_STREAM,
  onDemandProxy,
  subscribed,
  unsubscribed,
} from '../support/on-demand-proxy.ts';
import type { WeirProcess } from '../support/weir-process.ts';
import { peerEnd, WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
/** Logs are written. */
const AT_ONCE = ['--file-flush-interval-msec', '20'];
const LOG = {
  name: 'envoy.access_loggers.stdout',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
    log_format: { text_format_source: { inline_string: 'ended %RESPONSE_FLAGS% %UPSTREAM_CLUSTER%\n' } },
  },
};

function start(t: TestContext, form: Form, demand: JsonObject = {}, filter: JsonObject = {}): Promise<OnDemandProxy> {
  const on_demand = { odcds_config: ofForm(form), ...demand };
  const proxy = tcpFilter({ cluster: 'a', on_demand, access_log: [LOG], ...filter });
  const prepare = (plane: ControlPlane): void => {
    plane.onDemand.add(CLUSTER);
    plane.set(LISTENER, '1', [listenerWith([proxy], { name: 'in', address: ANY_PORT })]);
  };
  return onDemandProxy(t, form, prepare, ['--concurrency', '1', ...AT_ONCE]);
}

/** Sends back what it gets, behind its name, and ends when its peer has. */
async function echo(t: TestContext, name: string): Promise<number> {
  const upstream = await WireUpstream.start((socket) => {
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  t.after(() => upstream.close());
  return upstream.port;
}

/** What a new connection hears first; empty where it ends without a word. */
async function greeting(port: number): Promise<string> {
  const client = new WireClient(port);
  const text = await client.some();
  client.close();
  return text;
}

const wanted = (plane: ControlPlane): readonly string[] => subscribed(plane, CLUSTER).filter((name) => name !== '*');

/** Those of on_demand, in the order of attempts, successes, missing ones and late ones, and those without a cluster. */
async function counts(weir: WeirProcess): Promise<readonly (number | undefined)[]> {
  const of = (name: string): Promise<number | undefined> => weir.stat(`tcp.tcp.${name}`);
  return [
    await of('on_demand_cluster_attempt'),
    await of('on_demand_cluster_success'),
    await of('on_demand_cluster_missing'),
    await of('on_demand_cluster_timeout'),
    await of('downstream_cx_no_route'),
  ];
}

const untilWaiting = (weir: WeirProcess, count: number): Promise<void> =>
  weir.untilStat('tcp.tcp.on_demand_cluster_attempt', count);

describe('connections of a TCP proxy whose cluster is not known', () => {
  for (const form of CHANGES) {
    it(`wait until it serves, and bring what they have sent meanwhile: ${form.name}`, async (t) => {
      const { plane, weir, port } = await start(t, form);
      const eds = { type: 'EDS', load_assignment: null, eds_cluster_config: { eds_config: ofForm(form) } };
      const upstream = await echo(t, 'one');
      plane.isSilent = true;
      const clients = Array.from({ length: 5 }, (_, index) => new WireClient(port).write(`early ${index}`));
      // This one ends its side before there is anybody to hear of it.
      clients[4]!.socket.end();
      await untilWaiting(weir, 5);
      // A server that does not have it yet would say that there is none.
      await untilEqual('a', () => wanted(plane).join(), 'what the server is asked for');
      plane.isSilent = false;
      plane.set(ENDPOINTS, '1', [assignment('a', upstream)]);
      plane.set(CLUSTER, '2', [cluster('a', 1, eds)]);
      for (const [index, client] of clients.entries()) await client.until(`one:early ${index}`);
      assert.equal(await clients[4]!.rest(), '');
      assert.equal(await clients[0]!.write('later').until('later'), 'later');
      assert.deepEqual(wanted(plane), ['a']);
      assert.deepEqual(await counts(weir), [5, 5, 0, 0, 0]);
      const another = new WireClient(port).write('x');
      await another.until('one:x');
      assert.deepEqual(await counts(weir), [5, 5, 0, 0, 0]);
      plane.set(CLUSTER, '3', []);
      await weir.untilStat('cluster_manager.cluster_removed', 1);
      // A worker hears of it later than main, and serves connections until then.
      let last = '';
      const countsBehindOne = async (): Promise<string> => {
        last = await greeting(port);
        return (await counts(weir)).join();
      };
      await untilEqual('6,5,1,0,1', countsBehindOne, 'what is counted of a connection whose cluster is gone');
      assert.equal(last, '');
      assert.deepEqual(plane.violations, []);
      for (const client of [...clients, another]) client.close();
    });
  }

  it('end without it where there is none (NC), and the next one asks again', async (t) => {
    const { plane, weir, port } = await start(t, AGGREGATED);
    assert.equal(await peerEnd(new WireClient(port).socket), 'end');
    await untilEqual(true, () => weir.output.stdout.includes('ended NC -'), 'an entry of the log');
    assert.deepEqual(await counts(weir), [1, 0, 1, 0, 1]);
    plane.set(CLUSTER, '2', [cluster('a', await echo(t, 'one'))]);
    const client = new WireClient(port);
    await client.until('one:');
    client.close();
    await untilEqual(true, () => weir.output.stdout.includes('ended - a'), 'an entry of the log');
    assert.deepEqual(await counts(weir), [2, 1, 1, 0, 1]);
  });

  it('are gone when their clients leave', async (t) => {
    const { plane, weir, port } = await start(t, OWN_STREAM);
    plane.isSilent = true;
    // One of which something has been read, and one of which nothing has.
    for (const [before, text] of ['x', ''].entries()) {
      const client = new WireClient(port).write(text);
      await untilWaiting(weir, before + 1);
      client.socket.resetAndDestroy();
      await weir.untilStat('listener.127.0.0.1_0.downstream_cx_active', 0);
    }
    assert.deepEqual(await counts(weir), [2, 0, 0, 0, 0]);
  });

  it('end when it has not come in time, or they are too old', async (t) => {
    const { plane, weir, port } = await start(t, OWN_STREAM, { timeout: '0.2s' });
    plane.isSilent = true;
    assert.equal(await peerEnd(new WireClient(port).socket), 'end');
    assert.deepEqual(await counts(weir), [1, 0, 0, 1, 1]);
    await untilEqual('a', () => unsubscribed(plane, CLUSTER).join(), 'one that nobody waits for');
    const aged = tcpFilter({
      cluster: 'a',
      on_demand: { odcds_config: ofForm(OWN_STREAM) },
      max_downstream_connection_duration: '0.1s',
    });
    plane.isSilent = false;
    plane.set(LISTENER, '2', [listenerWith([aged], { name: 'aged', address: ANY_PORT })]);
    await untilEqual(true, async () => (await weir.listeners()).has('aged'), 'another listener');
    plane.isSilent = true;
    assert.equal(await peerEnd(new WireClient((await weir.listeners()).get('aged')!.port).socket), 'end');
    await weir.untilStat('tcp.tcp.max_downstream_connection_duration', 1);
  });

  it('end with the process, at once', async (t) => {
    const { plane, weir, port } = await start(t, AGGREGATED);
    plane.isSilent = true;
    const client = new WireClient(port).write('x');
    await untilWaiting(weir, 1);
    const began = Date.now();
    const [{ code }] = await Promise.all([weir.stop(), client.rest()]);
    assert.equal(code, 0);
    assert.ok(Date.now() - began < 10_000);
  });

  it('may be told by a filter before which one they want', async (t) => {
    const { plane, weir } = await start(t, AGGREGATED);
    const state = {
      name: 'envoy.filters.network.set_filter_state',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.network.set_filter_state.v3.Config',
        on_new_connection: [
          {
            object_key: 'envoy.tcp_proxy.cluster',
            format_string: { text_format_source: { inline_string: 'for-%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%' } },
          },
        ],
      },
    };
    const proxy = tcpFilter({ cluster: 'a', on_demand: { odcds_config: ofForm(AGGREGATED) } });
    plane.set(CLUSTER, '2', [cluster('for-127.0.0.1', await echo(t, 'own'))]);
    plane.set(LISTENER, '2', [listenerWith([state, proxy], { name: 'named', address: ANY_PORT })]);
    await untilEqual(true, async () => (await weir.listeners()).has('named'), 'another listener');
    const client = new WireClient((await weir.listeners()).get('named')!.port);
    await client.until('own:');
    client.close();
    assert.deepEqual(wanted(plane), ['for-127.0.0.1']);
  });

  it('are not read of a configuration that asks otherwise than by changes, or by a locator', async (t) => {
    const { plane, weir } = await start(t, AGGREGATED);
    const [stateOfTheWorld] = FORMS.filter((form) => form.api_type === 'GRPC' && !form.isAggregated);
    const of = (on_demand: JsonObject): JsonObject =>
      listenerWith([tcpFilter({ on_demand })], { name: 'bad', address: ANY_PORT });
    plane.set(LISTENER, '2', [of({ odcds_config: ofForm(stateOfTheWorld!) })]);
    await weir.untilStat('listener_manager.lds.update_rejected', 1);
    plane.set(LISTENER, '3', [of({ odcds_config: ofForm(AGGREGATED), resources_locator: 'xdstp://x/y' })]);
    await weir.untilStat('listener_manager.lds.update_rejected', 2);
    assert.match(weir.output.stderr, /on_demand\.odcds_config: .*only DELTA_GRPC can do/);
    assert.match(weir.output.stderr, /on_demand\.resources_locator: .*by name, not by locator/);
  });
});
