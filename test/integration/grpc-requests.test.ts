// What is different about requests of gRPC, by bytes on the wire of HTTP/1.1: how the proxy answers them itself, how hosts are
// judged by their status, and what logs say of it.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import type { AccessLogFilter, HttpConnectionManagerSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { type ClusterOverrides, DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const POST = 'POST /a.B/C HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n';
const FORMAT = '%GRPC_STATUS% %GRPC_STATUS(SNAKE_STRING)% %GRPC_STATUS_NUMBER% %RESPONSE_CODE%\n';

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly client: WireClient;
  /** Ends the data plane, which flushes its log, and reads the entries. */
  entries(): Promise<string[]>;
}

async function benchOf(
  t: TestContext,
  port: number,
  {
    cluster = {},
    settings = {},
    filter = null,
  }: {
    readonly cluster?: ClusterOverrides;
    readonly settings?: Partial<HttpConnectionManagerSettings>;
    readonly filter?: AccessLogFilter | null;
  } = {},
): Promise<Bench> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-grpc-'));
  const file = path.join(folder, 'access.log');
  const content = { kind: 'text', segments: parseFormat(FORMAT).segments! } as const;
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(port)], { enableTrailers: true, ...cluster });
  const routes = [directRoute('/direct', 401, 'who?'), routeTo('web', { prefix: '/' })];
  const destination = { kind: 'file', path: file } as const;
  const accessLogs = [{ destination, format: { content, omitEmptyValues: false }, filter }];
  const wire = await proxy.http(routes, { accessLogs, enableTrailers: true, ...settings });
  const client = new WireClient(wire);
  const close = async (): Promise<void> => {
    client.close();
    await proxy.close();
  };
  t.after(async () => {
    await close();
    rmSync(folder, { recursive: true });
  });
  return {
    proxy,
    client,
    async entries() {
      await close();
      return readFileSync(file, 'latin1').split('\n').slice(0, -1);
    },
  };
}

function fieldsOf(head: string): Record<string, string> {
  return Object.fromEntries(
    head
      .split('\r\n')
      .slice(1, -2)
      .map((line) => line.split(': ') as [string, string]),
  );
}

describe('a reply of the proxy to a request of gRPC', () => {
  test('is 200 and says in its head what trailers would say', async (t) => {
    const { client, proxy } = await benchOf(t, 1);
    const { head, body, status } = await client.write(POST.replace('/a.B/C', '/direct')).response();
    const { date: _, ...fields } = fieldsOf(head);
    assert.deepEqual(
      [status, body, fields],
      [
        200,
        '',
        {
          'content-length': '0',
          'content-type': 'application/grpc',
          'grpc-message': 'who?',
          'grpc-status': '16',
          server: 'weir',
        },
      ],
    );
    assert.equal(proxy.httpStat('downstream_rq_2xx'), 1);
  });

  test('is counted by the cluster with the status of HTTP', async (t) => {
    const { client, proxy } = await benchOf(t, 1);
    const { head, status } = await client.write(POST).response();
    assert.equal(status, 200);
    assert.equal(fieldsOf(head)['grpc-status'], '14');
    assert.match(fieldsOf(head)['grpc-message']!, /^upstream connect error/);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_503'), 1);
  });

  test('is edited and encoded like any other', async (t) => {
    const proxy = new DataPlaneFixture();
    t.after(() => proxy.close());
    const add = [{ name: 'x-a', value: ['1'], action: 'append', keepsEmptyValue: false }] as const;
    const direct: RouteSnapshot = { ...directRoute('/', 429, '50 %\n'), responseEdits: [{ remove: ['server'], add }] };
    const client = new WireClient(await proxy.http([direct]));
    t.after(() => client.close());
    const fields = fieldsOf((await client.write(POST).response()).head);
    assert.deepEqual([fields['grpc-message'], fields['grpc-status'], fields['x-a']], ['50 %25%0A', '14', '1']);
  });

  test('to others stays as it is', async (t) => {
    const { client } = await benchOf(t, 1);
    const web = POST.replace('/grpc', '/grpc-web').replace('/a.B/C', '/direct');
    const { body, status, head } = await client.write(web).response();
    assert.deepEqual([status, body, fieldsOf(head)['grpc-status']], [401, 'who?', undefined]);
  });
});

const TRAILERS_ONLY = 'HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n';
const trailersOnly = (status: string): string => `${TRAILERS_ONLY}grpc-status: ${status}\r\n\r\n`;
const withTrailers = (status: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${status}\r\n`;

describe('the status of a gRPC response', () => {
  const cases = [
    { name: 'OK behind the body', answer: withTrailers('grpc-status: 0\r\n'), log: 'OK OK 0 200', isGood: true },
    {
      name: 'a fault of the request',
      answer: withTrailers('grpc-status: 5\r\n'),
      log: 'NotFound NOT_FOUND 5 200',
      isGood: true,
    },
    {
      name: 'a fault of the host',
      answer: withTrailers('grpc-status: 13\r\n'),
      log: 'Internal INTERNAL 13 200',
      isGood: false,
    },
    { name: 'one in the head', answer: trailersOnly('14'), log: 'Unavailable UNAVAILABLE 14 200', isGood: false },
    { name: 'OK in the head', answer: trailersOnly('0'), log: 'OK OK 0 200', isGood: true },
    { name: 'none at all', answer: withTrailers(''), log: 'Unknown UNKNOWN 2 200', isGood: false },
    { name: 'no number', answer: trailersOnly('fine'), log: '-1 -1 -1 200', isGood: false },
    {
      name: 'one of HTTP alone',
      answer: 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n',
      log: 'Unavailable UNAVAILABLE 14 503',
      isGood: false,
    },
  ];
  for (const { name, answer, log, isGood } of cases) {
    test(`is noted for logs and for its host: ${name}`, async (t) => {
      const upstream = await WireUpstream.answering(answer);
      t.after(() => upstream.close());
      const { client, proxy, entries } = await benchOf(t, upstream.port);
      await client.write(POST).until(answer.includes('chunked') ? /\r\n0\r\n([^\r]+\r\n)*\r\n/ : '\r\n\r\n');
      assert.deepEqual(
        [proxy.hostStat('web', 0, 'rq_success'), proxy.hostStat('web', 0, 'rq_error')],
        isGood ? [1, 0] : [0, 1],
      );
      assert.deepEqual(await entries(), [log]);
    });
  }

  test('is logged even if its client can have no trailers', async (t) => {
    const upstream = await WireUpstream.answering(withTrailers('grpc-status: 9\r\n'));
    t.after(() => upstream.close());
    const { client, entries } = await benchOf(t, upstream.port, { settings: { enableTrailers: false } });
    await client.write(POST).until('0\r\n\r\n');
    assert.deepEqual(await entries(), ['FailedPrecondition FAILED_PRECONDITION 9 200']);
  });

  test('is none of a request that is not of gRPC', async (t) => {
    const upstream = await WireUpstream.answering(trailersOnly('14'));
    t.after(() => upstream.close());
    const { client, proxy, entries } = await benchOf(t, upstream.port);
    await client.write(POST.replace('/grpc', '/json')).response();
    assert.equal(proxy.hostStat('web', 0, 'rq_success'), 1);
    assert.deepEqual(await entries(), ['- - - 200']);
  });

  for (const isExcluded of [false, true]) {
    test(`decides ${isExcluded ? 'against' : 'for'} entries of a log`, async (t) => {
      const filter: AccessLogFilter = { kind: 'grpc-status', statuses: [14, 16], isExcluded };
      let count = 0;
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', () => {
          count += 1;
          socket.write(count === 1 ? trailersOnly('14') : withTrailers('grpc-status: 0\r\n'));
        });
      });
      t.after(() => upstream.close());
      const { client, entries } = await benchOf(t, upstream.port, { filter });
      await client.write(POST).response();
      await client.write(POST).until(/\r\n0\r\n([^\r]+\r\n)*\r\n/);
      await client.write(POST.replace('/a.B/C', '/direct')).response();
      const all = ['Unavailable UNAVAILABLE 14 200', 'OK OK 0 200', 'Unauthenticated UNAUTHENTICATED 16 200'];
      assert.deepEqual(await entries(), isExcluded ? [all[1]] : [all[0], all[2]]);
    });
  }
});
