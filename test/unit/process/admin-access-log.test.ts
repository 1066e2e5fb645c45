// The access logs of the admin interface: a real server on loopback, and real files.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { EndedRequest } from '../../../src/admin/index.ts';
import { SYSTEM_CLOCK } from '../../../src/base/clock.ts';
import { RuntimeValues } from '../../../src/base/runtime.ts';
import { AdminAccessLog } from '../../../src/process/admin-access-log.ts';
import { faultTexts, type Json, type JsonObject, load, mustLoad, socketAddress } from '../../support/bootstrap.ts';
import { eventually } from '../../support/eventually.ts';
import { call, startAdmin } from '../admin/fixture.ts';

const FILE = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-admin-log-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function inFolder(name: string): string {
  return path.join(folder, name);
}

function linesOf(name: string): string[] {
  return readFileSync(inFolder(name), 'utf8').split('\n').slice(0, -1);
}

function adminBlock(fields: JsonObject): JsonObject {
  return { admin: { address: socketAddress('127.0.0.1', 0), ...fields } };
}

function fileLog(name: string, fields: JsonObject = {}, filter: Json = null): JsonObject {
  return { name: 'file', filter, typed_config: { '@type': FILE, path: inFolder(name), ...fields } };
}

function openLog(fields: JsonObject): AdminAccessLog {
  const { admin } = mustLoad(adminBlock(fields));
  return new AdminAccessLog(admin!.accessLogs, { clock: SYSTEM_CLOCK, runtime: new RuntimeValues(), onDropped() {} });
}

const ENDED: EndedRequest = {
  startMs: 1000,
  endMs: 1007,
  protocol: 'HTTP/1.1',
  requestHead: 'GET /ready HTTP/1.1\r\nhost: x\r\n\r\n',
  responseHead: 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n',
  status: 200,
  received: 0,
  sent: 5,
  isCutOff: false,
  connectionId: 7,
  remote: { ip: '127.0.0.1', port: 40_000 },
  local: { ip: '127.0.0.1', port: 9901 },
};

describe('the access log of the admin interface', () => {
  it('has a line a request in the default layout at access_log_path', async () => {
    const accessLog = openLog({ access_log_path: inFolder('log') });
    const server = await startAdmin({ accessLog });
    const host = server.url.slice('http://'.length);
    const headers = { 'user-agent': 'a "b"', 'x-forwarded-for': '10.0.0.1' };
    await call(`${server.url}/logging?level=off`, { method: 'POST', headers }, 'abc');
    await call(`${server.url}/stats?type=Gauges`);
    await call(`${server.url}/ready`, { method: 'HEAD' });
    await call(`${server.url}/stats?filter=(`);
    await server.admin.close();
    const start = /^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] /;
    const lines = linesOf('log');
    for (const line of lines) assert.match(line, start);
    const written = lines.map((line) => line.replace(start, '').replace(/(\d+ \d+) \d+ - "/, '$1 N - "'));
    assert.deepEqual(written.slice(1), [
      `"GET /stats?type=Gauges HTTP/1.1" 200 - 0 52 N - "-" "-" "-" "${host}" "-"`,
      `"HEAD /ready HTTP/1.1" 200 - 0 0 N - "-" "-" "-" "${host}" "-"`,
      `"GET /stats?filter=( HTTP/1.1" 400 - 0 17 N - "-" "-" "-" "${host}" "-"`,
    ]);
    assert.match(
      written[0]!,
      /^"POST \/logging\?level=off HTTP\/1\.1" 200 - 3 \d{3} N - "10\.0\.0\.1" "a \\x22b\\x22" "-" "[\d.:]+" "-"$/,
    );
    accessLog.close();
  });

  it('has formats and filters, several logs at once, and logs of one file share it', async () => {
    const text = { log_format: { text_format_source: { inline_string: '%REQ(:PATH)% %RESPONSE_CODE%\n' } } };
    const json = {
      log_format: {
        json_format: {
          path: '%REQ(:path)%',
          mark: '%REQ(x-mark)%',
          status: '%RESPONSE_CODE%',
          type: '%RESP(content-type)%',
          from: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%',
          details: '%RESPONSE_CODE_DETAILS%',
          upstream: '%UPSTREAM_HOST%',
        },
      },
    };
    const failed = {
      status_code_filter: { comparison: { op: 'GE', value: { default_value: 400, runtime_key: 'x' } } },
    };
    const marked = { header_filter: { header: { name: 'x-mark', string_match: { prefix: 'm' } } } };
    const accessLog = openLog({
      access_log: [
        fileLog('text', text),
        fileLog('failed', text, failed),
        fileLog('json', json, marked),
        fileLog('text', text),
      ],
    });
    await using server = await startAdmin({ accessLog });
    await call(`${server.url}/ready`);
    await call(`${server.url}/ready`, { headers: { 'x-mark': Buffer.from('mü').toString('latin1') } });
    await call(`${server.url}/nothing`);
    await eventually(() => linesOf('text').length === 6, 'all entries');
    assert.deepEqual(linesOf('text'), [
      '/ready 200',
      '/ready 200',
      '/ready 200',
      '/ready 200',
      '/nothing 404',
      '/nothing 404',
    ]);
    assert.deepEqual(linesOf('failed'), ['/nothing 404']);
    assert.deepEqual(
      linesOf('json').map((line) => JSON.parse(line)),
      [
        {
          path: '/ready',
          mark: 'mü',
          status: 200,
          type: 'text/plain; charset=UTF-8',
          from: '127.0.0.1',
          details: 'admin_filter_response',
          upstream: null,
        },
      ],
    );
    accessLog.close();
  });

  it('flags a client that went before its answer was complete', async () => {
    const format = { log_format: { text_format_source: { inline_string: '%REQ(:PATH)% %RESPONSE_FLAGS%\n' } } };
    const gone = { response_flag_filter: { flags: ['DC'] } };
    const accessLog = openLog({ access_log: [fileLog('log', format, gone)] });
    await using server = await startAdmin({ accessLog });
    const { port } = new URL(server.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write('POST /logging HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\nabc', () =>
      socket.resetAndDestroy(),
    );
    await call(`${server.url}/ready`);
    await eventually(() => linesOf('log').length > 0, 'the entry');
    assert.deepEqual(linesOf('log'), ['/logging DC']);
    accessLog.close();
  });

  it('goes on at the path of a file that has been renamed', () => {
    const format = { log_format: { text_format_source: { inline_string: '%DURATION%\n' } } };
    const accessLog = openLog({ access_log: [fileLog('log', format)] });
    accessLog.write(ENDED);
    renameSync(inFolder('log'), inFolder('log.1'));
    accessLog.reopen();
    accessLog.write({ ...ENDED, endMs: 1009 });
    assert.deepEqual([linesOf('log.1'), linesOf('log')], [['7'], ['9']]);
    accessLog.close();
  });

  it('refuses what cannot be had, or warns of it, by name', () => {
    const refused = [
      [fileLog('log', { format: '%NO_SUCH_THING%' }), /^admin\.access_log\[0\]\.typed_config\.format: .*NO_SUCH_THING/],
      [fileLog('log', {}, { extension_filter: { name: 'x' } }), /^admin\.access_log\[0\]\.filter\.extension_filter/],
    ] as const;
    for (const [log, fault] of refused) {
      const texts = faultTexts(load(adminBlock({ access_log: [log] })));
      assert.ok(
        texts.some((text) => fault.test(text)),
        texts.join('\n'),
      );
    }
    const grpc = {
      name: 'grpc',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig',
        common_config: { log_name: 'l', grpc_service: { envoy_grpc: { cluster_name: 'c' } } },
      },
    };
    const result = load(adminBlock({ access_log: [grpc, fileLog('log')] }));
    assert.deepEqual(faultTexts(result, 'warning'), [
      'admin.access_log[0]: is not written: the admin interface logs to files and standard streams',
    ]);
    assert.deepEqual(
      result.bootstrap?.admin?.accessLogs.map(({ destination }) => destination),
      [{ kind: 'file', path: inFolder('log') }],
    );
  });
});
