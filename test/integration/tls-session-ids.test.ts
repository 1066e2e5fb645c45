// The identifiers of sessions that logs and header values have, held against what the other side of the connection knows.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { getOverTls } from '../support/tls-client.ts';
import { bootstrapOf, clusterAt, pair, routesTo, tcpProxyTo, tlsListener, tlsMessage } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const ID = /^[0-9a-f]{64}$/;
const DOWNSTREAM = '%DOWNSTREAM_TLS_SESSION_ID%';
const BOTH = `${DOWNSTREAM} %UPSTREAM_TLS_SESSION_ID%`;

let folder: CertificateFolder;
let ca: TestCertificate;
let weir: WeirProcess;
let ports: Map<string, number>;
/** What the upstream has kept of the session that a request came by, in hex, and what it was told of the client's. */
const sessions: string[] = [];
const told: (string | undefined)[] = [];

const upstream = createServer((request, response) => {
  sessions.push((request.socket as TLSSocket).getSession()?.toString('hex') ?? '');
  told.push(request.headers['x-session'] as string | undefined);
  // Each request has a connection of its own, which goes on with the session of the one before.
  response.setHeader('connection', 'close');
  response.end('ok');
});

function place(name: string): string {
  return path.join(folder.path, name);
}

async function lines(file: string, count: number): Promise<readonly string[]> {
  const read = (): string[] =>
    existsSync(place(file)) ? readFileSync(place(file), 'utf8').split('\n').slice(0, -1) : [];
  await untilEqual(count, () => read().length, `lines of ${file}`);
  return read();
}

function logTo(file: string, format: string): object {
  const TYPE = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
  const log_format = { text_format_source: { inline_string: `${format}\n` } };
  return { name: 'file', typed_config: { '@type': TYPE, path: place(file), log_format } };
}

function secured(name: string, maxVersion: string): object {
  const common_tls_context = { tls_params: { tls_maximum_protocol_version: maxVersion } };
  return {
    ...clusterAt(name, (upstream.address() as AddressInfo).port),
    transport_socket: { name: 'tls', typed_config: tlsMessage('UpstreamTlsContext', { common_tls_context }) },
  };
}

/** One request by openssl. @returns the identifier that it has of the session, in lower case; empty for none. */
async function askBy(listener: string, options: readonly string[]): Promise<string> {
  const ask = `printf 'GET / HTTP/1.1\\r\\nhost: a.example\\r\\nconnection: close\\r\\n\\r\\n' | openssl "$@"`;
  const to = ['-connect', `127.0.0.1:${ports.get(listener)}`, '-ign_eof', '-CAfile', ca.certificatePath];
  const { stdout } = await runProgram('sh', ['-c', ask, 'sh', 's_client', ...to, ...options]);
  return /Session-ID: ([0-9A-F]*)/.exec(stdout)![1]!.toLowerCase();
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  const own = await folder.make('own', { issuer: ca, altNames: 'DNS:a.example' });
  upstream.setSecureContext({ cert: own.certificate, key: own.key });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const common = { tls_certificates: [pair(own)] };
  const request_headers_to_add = [{ header: { key: 'x-session', value: DOWNSTREAM } }];
  const listener = (name: string, cluster: string, context?: object): object =>
    tlsListener(name, {
      common,
      ...(context && { context }),
      http: { ...routesTo(cluster, { request_headers_to_add }), access_log: [logTo(`${name}.log`, BOTH)] },
    });
  const listeners = [
    listener('tickets', 'older'),
    listener('none', 'newer', { disable_stateless_session_resumption: true }),
    listener('again', 'again'),
    tlsListener('raw', {
      common,
      chain: { filters: [tcpProxyTo('older', { access_log: [logTo('raw.log', BOTH)] })] },
    }),
  ];
  const clusters = [secured('older', 'TLSv1_2'), secured('again', 'TLSv1_2'), secured('newer', 'TLSv1_3')];
  weir = await startWeir({
    configYaml: bootstrapOf(listeners, { clusters }),
    // Sessions to upstreams are each worker's own.
    args: ['--concurrency', '1', '--file-flush-interval-msec', '10'],
  });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  await new Promise((resolve) => upstream.close(resolve));
  folder[Symbol.dispose]();
});

describe('the identifier of a session', () => {
  it('is the one that a client of TLS 1.2 comes back with, and missing where it has got a ticket just now', async () => {
    const kept = place('tickets.session');
    const first = await askBy('tickets', ['-tls1_2', '-sess_out', kept]);
    const second = await askBy('tickets', ['-tls1_2', '-sess_in', kept]);
    assert.match(second, ID);
    assert.equal(second, first);
    const [given, resumed] = await lines('tickets.log', 2);
    assert.match(given!, /^- /);
    assert.equal(resumed!.split(' ')[0], second);
    assert.deepEqual(told.slice(-2), [undefined, second]);
  });

  it('is the one that a client of TLS 1.2 without tickets is told', async () => {
    const id = await askBy('none', ['-tls1_2']);
    assert.match(id, ID);
    // Upstreams of TLS 1.3 have none, either.
    assert.deepEqual(await lines('none.log', 1), [`${id} -`]);
  });

  it('is missing with TLS 1.3, which has none', async () => {
    await getOverTls(ports.get('none')!, { ca: ca.certificate });
    const [, last] = await lines('none.log', 2);
    assert.equal(last, '- -');
  });

  it('of upstreams is the same for all connections that go on with a session, as the upstream knows it', async () => {
    for (let request = 0; request < 4; request++) await getOverTls(ports.get('again')!, { ca: ca.certificate });
    const written = await lines('again.log', 4);
    const [first, ...others] = written.map((line) => line.split(' ')[1]!);
    assert.match(first!, ID);
    assert.deepEqual(others, [first, first, first]);
    assert.match(sessions.at(-1)!, new RegExp(first!));
    assert.equal(await weir.stat('cluster.again.ssl.session_reused'), 3);
  });

  it('is known of raw connections when they have ended', async () => {
    const kept = place('raw.session');
    for (const option of ['-sess_out', '-sess_in']) {
      const id = await askBy('raw', ['-tls1_2', option, kept]);
      const line = (await lines('raw.log', option === '-sess_in' ? 2 : 1)).at(-1)!;
      assert.match(line, / [0-9a-f]{64}$/);
      assert.equal(line.split(' ')[0], option === '-sess_in' ? id : '-');
    }
  });
});
