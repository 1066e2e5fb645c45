// A walk over the whole admin interface of the real program, as an operator with curl would take it: every endpoint and parameter,
// every method, every way to ask.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { Endpoint } from '../../src/admin/endpoint.ts';
import { ENDPOINTS } from '../../src/admin/endpoints/index.ts';
import { ADMIN_WALK, ANY_VALUE, type Step } from '../support/admin-walk.ts';
import { collectOutput, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { programOf, startWeir, type WeirProcess } from '../support/weir-process.ts';

const STEPS = Object.values(ADMIN_WALK).flat();

function configOf(folder: string, address: object): string {
  const httpFilters = [
    {
      name: 'envoy.filters.http.health_check',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck',
        pass_through_mode: false,
        headers: [{ name: ':path', string_match: { exact: '/healthz' } }],
      },
    },
    {
      name: 'envoy.filters.http.tap',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap',
        common_config: { admin_config: { config_id: 'walk' } },
      },
    },
    {
      name: 'envoy.filters.http.router',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
    },
  ];
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'edge',
    http_filters: httpFilters,
    route_config: {
      virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] }],
    },
  };
  const ip = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  return JSON.stringify({
    node: { id: 'walker', cluster: 'tests' },
    admin: { address, profile_path: path.join(folder, 'profile') },
    stats_sinks: [{ name: 'envoy.stat_sinks.hystrix' }],
    stats_flush_interval: '0.1s',
    layered_runtime: {
      layers: [
        { name: 'base', static_layer: { 'some.key': 1 } },
        { name: 'admin', admin_layer: {} },
      ],
    },
    static_resources: {
      listeners: [
        {
          name: 'edge',
          address: ip(0),
          traffic_direction: 'INBOUND',
          filter_chains: [
            { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] },
          ],
        },
      ],
      clusters: [
        {
          name: 'web',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'web',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: ip(9) } }] }],
          },
        },
      ],
    },
  });
}

const IP_ADDRESS = { socket_address: { address: '127.0.0.1', port_value: 0 } };

interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly body: string;
}

async function answerTo(url: string, { sends, headers = {}, isOpenEnded = false, ...step }: Step): Promise<Answer> {
  const [method, target] = step.ask.startsWith('/') ? ['GET', step.ask] : (step.ask.split(' ') as [string, string]);
  const response = await fetch(url + encodeURI(target).replaceAll('%25', '%'), {
    method,
    headers,
    ...(sends === undefined ? {} : { body: sends }),
  });
  const type = response.headers.get('content-type');
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff', step.ask);
  assert.match(response.headers.get('cache-control')!, /no-cache/, step.ask);
  const body = isOpenEnded ? await beginningOf(response) : Buffer.from(await response.arrayBuffer()).toString('latin1');
  return { status: response.status, type, body };
}

async function beginningOf(response: Response): Promise<string> {
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return Buffer.from(value!).toString();
}

/** What a refused request must leave as it is. */
async function stateOf(weir: WeirProcess): Promise<string> {
  const parts = ['/page/loggers', '/runtime', '/listeners', '/server_info', '/config_dump?resource=static_listeners'];
  const texts = await Promise.all(parts.map((part) => weir.admin(part)));
  return texts.join('\n').replaceAll(/"uptime_\w+": "[^"]*"/g, '');
}

/** Of the walk, those that ask a path with a parameter. */
function stepsWith(path_: string, parameter: Endpoint['parameters'][number]): readonly Step[] {
  const isNamed = (name: string): boolean =>
    parameter.kind === 'pairs' ? name !== 'level' && name !== 'paths' : name === parameter.name;
  return ADMIN_WALK[path_]!.filter(({ ask }) => new URLSearchParams(ask.split('?')[1] ?? '').keys().some(isNamed));
}

describe('the walk', () => {
  it('comes by every endpoint, and by each of its parameters with a good and a bad value', () => {
    assert.deepEqual(Object.keys(ADMIN_WALK).sort(), ENDPOINTS.map((endpoint) => endpoint.path).sort());
    for (const { path: at, parameters } of ENDPOINTS) {
      for (const parameter of parameters) {
        const statuses = stepsWith(at, parameter).map(({ status }) => status);
        const name = `${at} ${parameter.label ?? parameter.name}`;
        assert.ok(statuses.includes(200), `${name}: no good value`);
        const isNeverWrong = parameter.kind === 'flag' || ANY_VALUE.has(name);
        if (!isNeverWrong)
          assert.ok(
            statuses.some((status) => status >= 400),
            `${name}: no bad value`,
          );
        for (const choice of parameter.choices) {
          const asked = stepsWith(at, parameter).some(({ ask }) => ask.includes(`${parameter.name}=${choice}`));
          assert.ok(asked || choice === parameter.choices[0], `${name}=${choice} is not asked`);
        }
      }
    }
  });
});

describe('the admin interface of the program', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-walk-'));
  let weir: WeirProcess;

  before(async () => {
    weir = await startWeir({ configYaml: configOf(folder, IP_ADDRESS), args: ['--enable-mutex-tracing'] });
    const { port } = (await weir.listeners()).get('edge')!;
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text(), '');
  });
  after(async () => {
    await weir.stop();
    rmSync(folder, { recursive: true });
  });

  it('changes nothing by any other method than POST', async () => {
    const state = await stateOf(weir);
    for (const { path: at } of ENDPOINTS.filter(({ mutates }) => mutates)) {
      for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        const { status, body } = await answerTo(weir.adminUrl, {
          ask: `${method} ${at}`,
          status: 400,
          type: '',
          tells: /./,
        });
        assert.deepEqual([status, body], [400, `Method ${method} not allowed, POST required.`], at);
      }
      assert.equal((await fetch(weir.adminUrl + at, { method: 'HEAD' })).status, 400, at);
    }
    assert.equal(await stateOf(weir), state);
  });

  it('has heads without bodies, with the head that GET would have', async () => {
    // A dump of the heaps is made for its head, too: seconds for what another step asks anyway.
    const asked = ENDPOINTS.filter(({ path: at, mutates }) => !mutates && at !== '/heap_dump');
    for (const { path: at } of asked) {
      const response = await fetch(weir.adminUrl + at, { method: 'HEAD' });
      const [step] = ADMIN_WALK[at]!;
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, step!.type], at);
      assert.equal(await response.text(), '');
    }
  });

  it('answers by absolute addresses, and what comes together in its order', async () => {
    const { host, port, hostname } = new URL(weir.adminUrl);
    const socket = connect(Number(port), hostname);
    const ask = (line: string, more = ''): string => `${line} HTTP/1.1\r\nhost: ${host}\r\n${more}\r\n`;
    socket.end(
      ask(`GET http://${host}/ready`) +
        ask('GET /stats?filter=^server.live$') +
        ask('POST /logging?router=error', 'content-length: 0\r\n') +
        ask('GET /nothing') +
        ask('POST /logging?level=info', 'content-length: 0\r\n') +
        ask('GET /hot_restart_version', 'connection: close\r\n'),
    );
    const answers = (await text(socket)).split(/^HTTP\/1\.1 /m).slice(1);
    assert.deepEqual(
      answers.map((answer) => answer.slice(0, 3)),
      ['200', '200', '200', '404', '200', '200'],
    );
    for (const [at, tells] of [/LIVE/, /server\.live: 1/, /router: error/, /invalid path/, /router: info/].entries()) {
      assert.match(answers[at]!, tells);
    }
  });

  it('answers each step of the walk, and a bad one leaves everything as it is', async () => {
    for (const step of STEPS) {
      const isRefused = step.status === 400 || step.status === 404;
      const state = isRefused ? await stateOf(weir) : '';
      const { status, type, body } = await answerTo(weir.adminUrl, step);
      const asked = step.ask.slice(0, 200);
      assert.deepEqual([status, type], [step.status, step.type], `${asked}: ${body.slice(0, 300)}`);
      assert.match(body, step.tells, asked);
      if (isRefused) assert.equal(await stateOf(weir), state, asked);
    }
    // The last one has asked it to end.
    assert.equal((await weir.exited).code, 0);
  });
});

describe('the admin interface at a unix socket', () => {
  it('answers as at a port', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-walk-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const socketPath = path.join(folder, 'admin.sock');
    const ask = (method: string, target: string): Promise<[number, string]> =>
      new Promise((resolve, reject) => {
        const sent = request({ socketPath, path: target, method, agent: false });
        sent.once('error', reject).once('response', (response) => {
          text(response).then((body) => resolve([response.statusCode!, body]), reject);
        });
        sent.end();
      });
    const address = { pipe: { path: socketPath, mode: 0o600 } };
    const [command, ...args] = programOf(['--concurrency', '1', '--config-yaml', configOf(folder, address)]);
    const weir = collectOutput(startProgram(command!, args));
    await untilEqual('200,LIVE\n', async () => String(await ask('GET', '/ready').catch(String)), '/ready');
    assert.equal(statSync(socketPath).mode & 0o777, 0o600);
    assert.equal((await ask('GET', '/stats/prometheus'))[0], 200);
    assert.deepEqual(await ask('GET', '/quitquitquit'), [400, 'Method GET not allowed, POST required.']);
    assert.deepEqual(await ask('POST', '/quitquitquit'), [200, 'OK\n']);
    assert.equal((await weir.exited).code, 0);
  });
});
