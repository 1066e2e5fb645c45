// Access log entries of a request beside that of its end: when it has come, while it lasts, when it has become a tunnel. The same
// over HTTP/1.1 and HTTP/2.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { eventually } from '../support/eventually.ts';
import { type ManagerBench, managerBench, PROTOCOLS } from '../support/manager-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireClient } from '../support/wire.ts';

const FORMAT =
  '%ACCESS_LOG_TYPE% %REQ(:METHOD)% %REQ(:PATH)% %REQ(X-NAME)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %DURATION% %ROUTE_NAME%\n';

interface LoggingBench extends ManagerBench {
  /** Ends the data plane, which flushes its logs. */
  entries(): Promise<string[]>;
}

async function logging(
  t: TestContext,
  fields: JsonObject,
  options: Parameters<typeof managerBench>[2] = {},
  filter: JsonObject = {},
): Promise<LoggingBench> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-entries-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'log');
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
    path: file,
    log_format: { text_format_source: { inline_string: FORMAT } },
  };
  const route = { name: 'all', match: { prefix: '/' }, route: { cluster: 'web', upgrade_configs: [] } };
  const bench = await managerBench(
    t,
    {
      access_log: [{ name: 'envoy.access_loggers.file', typed_config, ...filter }],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
      ...fields,
    },
    options,
  );
  return {
    ...bench,
    entries: async () => {
      await bench.proxy.close();
      return readFileSync(file, 'latin1').split('\n').slice(0, -1);
    },
  };
}

for (const protocol of PROTOCOLS) {
  describe(`over ${protocol}`, () => {
    for (const [what, fields] of [
      ['a request', { access_log_options: { flush_access_log_on_new_request: true } }],
      ['a request by the older field', { flush_access_log_on_new_request: true }],
    ] as const) {
      test(`${what} has an entry when it has come`, async (t) => {
        const { ask, proxy, entries } = await logging(t, { ...fields, normalize_path: true });
        await ask(protocol, { path: '/a/../b', headers: [['x-name', 'n']] });
        await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'no request left');
        const [first, second, ...others] = await entries();
        assert.match(first!, /^DownstreamStart GET \/b n 0 - \d+ all$/);
        assert.match(second!, /^DownstreamEnd GET \/b n 200 via_upstream \d+ all$/);
        assert.deepEqual(others, []);
      });
    }

    test('a request that is turned away has none', async (t) => {
      const fields = { flush_access_log_on_new_request: true, path_with_escaped_slashes_action: 'REJECT_REQUEST' };
      const { ask, proxy, entries } = await logging(t, fields);
      await ask(protocol, { path: '/a%2fb' });
      await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'no request left');
      const all = await entries();
      assert.equal(all.length, 1);
      assert.match(all[0]!, /^DownstreamEnd GET/);
    });

    for (const [what, fields] of [
      ['a request that takes long', { access_log_options: { access_log_flush_interval: '6s' } }],
      ['a request that takes long, by the older field,', { access_log_flush_interval: '6s' }],
    ] as const) {
      test(`${what} has entries on the way`, async (t) => {
        const clock = new ManualClock();
        const { ask, proxy, heads, port, entries } = await logging(t, fields, { answer: '', clock });
        const asked = ask(protocol, { path: '/slow', headers: [['x-name', 'n']] });
        await eventually(() => heads.length === 1, 'the request');
        // Whoever asks meanwhile leaves another head where that of the first one was parsed.
        const other = new WireClient(port);
        other.write('GET /other HTTP/1.1\r\nhost: h\r\nx-name: other\r\n\r\n');
        await eventually(() => heads.length === 2, 'the other request');
        other.close();
        await eventually(() => proxy.httpStat('downstream_rq_active') === 1, 'one request left');
        for (const byMs of [5_000, 2_000, 6_000]) clock.turn(byMs);
        // The route gives up after 15 seconds.
        clock.turn(3_000);
        assert.equal((await asked).status, 504);
        const closed = entries();
        clock.turn(1_000);
        const all = await closed;
        const own = all.filter((line) => line.includes('/slow'));
        assert.equal(own.length, 3);
        assert.match(own[0]!, /^DownstreamPeriodic GET \/slow n 0 - 6\d{3} all$/);
        assert.match(own[1]!, /^DownstreamPeriodic GET \/slow n 0 - 12\d{3} all$/);
        assert.match(own[2]!, /^DownstreamEnd GET \/slow n 504 response_timeout 15\d{3} all$/);
        assert.equal(all.filter((line) => line.startsWith('DownstreamPeriodic')).length, 2);
      });
    }

    test('filters know the kinds of entries', async (t) => {
      const filter = { filter: { log_type_filter: { types: ['DownstreamStart'] } } };
      const { ask, entries } = await logging(t, { flush_access_log_on_new_request: true }, {}, filter);
      await ask(protocol, {});
      const all = await entries();
      assert.equal(all.length, 1);
      assert.match(all[0]!, /^DownstreamStart/);
    });
  });
}

describe('a tunnel', () => {
  const UPGRADE = 'GET /ws HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\nx-name: n\r\n\r\n';
  const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
  const upgrade_configs = [{ upgrade_type: 'websocket' }];

  for (const isWanted of [true, false]) {
    test(`has ${isWanted ? 'an entry when it is there' : 'none where nobody wants it'}`, async (t) => {
      const access_log_options = { flush_log_on_tunnel_successfully_established: isWanted };
      const { port, entries } = await logging(t, { upgrade_configs, access_log_options }, { answer: SWITCHED });
      const client = new WireClient(port);
      await client.write(UPGRADE).until('\r\n\r\n');
      const closed = entries();
      client.close();
      const all = await closed;
      const tunnel = all.filter((line) => line.startsWith('DownstreamTunnelSuccessfullyEstablished '));
      assert.equal(tunnel.length, isWanted ? 1 : 0);
      if (isWanted) assert.match(tunnel[0]!, / GET \/ws n 101 via_upstream \d+ all$/);
      assert.match(all.at(-1)!, /^DownstreamEnd GET \/ws n 101/);
    });
  }
});

test('the older fields have no place beside the newer ones', () => {
  const fields = {
    access_log_options: {},
    access_log_flush_interval: '1s',
    flush_access_log_on_new_request: true,
  };
  const errors = managerFaults(fields).join('\n');
  assert.match(errors, /access_log_flush_interval: cannot be given together with access_log_options/);
  assert.match(errors, /flush_access_log_on_new_request: cannot be given together with access_log_options/);
});
