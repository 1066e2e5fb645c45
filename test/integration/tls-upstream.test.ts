// TLS to upstreams, by the real program: whom it believes, what it says of itself, and servers that do not do their part.

import assert from 'node:assert/strict';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, request } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect as connectPlain, createServer as createPlainServer, type Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const TLS = `${TYPES}.transport_sockets.tls.v3`;

let folder: CertificateFolder;
let ca: TestCertificate;
let server: TestCertificate;
let client: TestCertificate;
let weir: WeirProcess;
let port: number;
const servers: Server[] = [];

async function listen(own: Server): Promise<number> {
  servers.push(own);
  own.listen(0, '127.0.0.1');
  await once(own, 'listening');
  return (own.address() as AddressInfo).port;
}

interface Answer {
  readonly name: string;
  readonly protocol: string;
  readonly version: string;
  readonly client: string;
  readonly isResumed: boolean;
}

/** Says what it knows of the connection that a request came over. */
function https(options: ServerOptions): Server {
  return createHttpsServer(options, (own, response) => {
    const socket = own.socket as TLSSocket & { readonly servername: string | false };
    response.end(
      JSON.stringify({
        name: socket.servername || '',
        protocol: socket.alpnProtocol || '',
        version: socket.getProtocol(),
        client: socket.getPeerCertificate().subject?.CN ?? '',
        isResumed: socket.isSessionReused(),
      }),
    );
  });
}

function file(path: string): object {
  return { filename: path };
}

function pair({ certificatePath, keyPath }: TestCertificate): object {
  return { certificate_chain: file(certificatePath), private_key: file(keyPath) };
}

function trusted(fields: object = {}): object {
  return { validation_context: { trusted_ca: file(ca.certificatePath), ...fields } };
}

function socket(common: object, context: object = {}): object {
  return {
    name: 'tls',
    typed_config: { '@type': `${TLS}.UpstreamTlsContext`, common_tls_context: common, ...context },
  };
}

function cluster(name: string, at: number, fields: object): object {
  const endpoint = { hostname: 'host.example', address: { socket_address: { address: '127.0.0.1', port_value: at } } };
  return {
    name,
    connect_timeout: '20s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
    ...fields,
  };
}

function manager(names: readonly string[]): object {
  const routes = names.map((name) => ({ match: { path: `/${name}` }, route: { cluster: name } }));
  return {
    name: 'http',
    typed_config: {
      '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'ingress',
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [{ name: 'router', typed_config: { '@type': `${TYPES}.filters.http.router.v3.Router` } }],
    },
  };
}

async function get(name: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  request({ host: '127.0.0.1', port, path: `/${name}`, headers, agent: false }, (response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (text: string) => (body += text));
    response.on('end', () => resolve({ status: response.statusCode!, body }));
  })
    .on('error', reject)
    .end();
  return await promise;
}

async function answer(name: string, headers?: Record<string, string>): Promise<Answer> {
  const { status, body } = await get(name, headers);
  assert.equal(status, 200, body);
  return JSON.parse(body);
}

/** @returns what the transport says of it. */
async function failure(name: string): Promise<string> {
  const { status, body } = await get(name);
  assert.equal(status, 503);
  const [, text] =
    /^upstream connect error .*reset reason: remote connection failure, transport failure reason: (.*)$/.exec(body) ??
    [];
  assert.ok(text, body);
  return text;
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  server = await folder.make('server', {
    issuer: ca,
    altNames: 'DNS:a.example,DNS:*.b.example,URI:spiffe://shop/web,IP:127.0.0.1,email:ops@a.example',
  });
  client = await folder.make('client', { issuer: ca });
  const alone = await folder.make('alone', { altNames: 'DNS:a.example' });
  const expired = await folder.make('expired', { issuer: ca, altNames: 'DNS:a.example', days: -1 });
  const identity = { cert: server.certificate, key: server.key };
  const plainTls = await listen(https(identity));
  const asking = await listen(https({ ...identity, ca: ca.certificate, requestCert: true, rejectUnauthorized: true }));
  const several = await listen(https({ ...identity, ALPNProtocols: ['http/1.1', 'x'] }));
  const ofAlone = await listen(https({ cert: alone.certificate, key: alone.key }));
  const ofExpired = await listen(https({ cert: expired.certificate, key: expired.key }));
  const plain = await listen(createPlainServer((own) => own.on('error', () => {}).end('HTTP/1.1 200 OK\r\n\r\n')));
  const silent = await listen(createPlainServer((own) => void own.on('error', () => {}).resume()));
  const leaving = await listen(
    createPlainServer((own) => void own.on('error', () => {}).once('data', () => own.destroy())),
  );
  const old = await listen(createTlsServer({ ...identity, maxVersion: 'TLSv1.2' }, (own) => own.on('error', () => {})));
  const fingerprint = new X509Certificate(server.certificate).fingerprint256;
  const spki = new X509Certificate(server.certificate).publicKey.export({ type: 'spki', format: 'der' });
  const spkiHash = createHash('sha256').update(spki).digest('base64');
  const san = (san_type: string, matcher: object): object =>
    trusted({ match_typed_subject_alt_names: [{ san_type, matcher }] });
  const named = (names: object, header = '') => ({
    upstream_http_protocol_options: { ...names, ...(header && { override_auto_sni_header: header }) },
  });
  const secured = (common: object, context: object = {}) => ({ transport_socket: socket(common, context) });
  const clusters: readonly (readonly [name: string, port: number, fields: object])[] = [
    ['unverified', plainTls, secured({})],
    ['believed', plainTls, secured(trusted(), { sni: 'a.example' })],
    ['older', plainTls, { tls_context: { common_tls_context: trusted(), sni: 'older.example' } }],
    ['mutual', asking, secured({ ...trusted(), tls_certificates: [pair(client)] })],
    ['unnamed', asking, secured(trusted())],
    ['alpn', several, secured({ alpn_protocols: ['x'] })],
    ['newer', plainTls, secured({ tls_params: { tls_maximum_protocol_version: 'TLSv1_3' } })],
    ['too-new', old, secured({ tls_params: { tls_minimum_protocol_version: 'TLSv1_3' } })],
    ['exact', plainTls, secured(san('DNS', { exact: 'shop.b.example' }))],
    ['prefix', plainTls, secured(san('URI', { prefix: 'spiffe://shop/' }))],
    ['suffix', plainTls, secured(san('EMAIL', { suffix: '@a.example' }))],
    ['regex', plainTls, secured(san('IP_ADDRESS', { safe_regex: { regex: '127[.]0[.]0[.].*' } }))],
    ['contains', plainTls, secured(san('DNS', { contains: 'B.EX', ignore_case: true }))],
    ['other-name', plainTls, secured(san('DNS', { exact: 'c.example' }))],
    ['hash', plainTls, secured(trusted({ verify_certificate_hash: [fingerprint] }))],
    ['other-hash', plainTls, secured(trusted({ verify_certificate_hash: ['00'.repeat(32)] }))],
    ['spki', plainTls, secured(trusted({ verify_certificate_spki: [spkiHash] }))],
    ['other-ca', ofAlone, secured(trusted())],
    ['any-ca', ofAlone, secured(trusted({ trust_chain_verification: 'ACCEPT_UNTRUSTED' }))],
    ['expired', ofExpired, secured(trusted())],
    ['system', ofAlone, secured({ validation_context: { system_root_certs: {} } })],
    ['plain', plain, secured(trusted())],
    ['silent', silent, { connect_timeout: '0.2s', ...secured(trusted()) }],
    ['leaving', leaving, secured(trusted())],
    ['host-name', plainTls, secured({}, { auto_host_sni: true, sni: 'a.example' })],
    ['own-name', plainTls, secured(trusted(), { sni: 'c.example', auto_sni_san_validation: true })],
    ['asked-name', plainTls, { ...secured({}, { sni: 'a.example' }), ...named({ auto_sni: true }) }],
    ['asked-san', plainTls, { ...secured(trusted(), {}), ...named({ auto_sni: true, auto_san_validation: true }) }],
    ['header-name', plainTls, { ...secured({}, {}), ...named({ auto_sni: true }, 'X-Server') }],
    [
      'header-san',
      plainTls,
      { ...secured(trusted(), {}), ...named({ auto_sni: true, auto_san_validation: true }, 'X-Server') },
    ],
    ['resumed', plainTls, { ...secured(trusted(), { sni: 'a.example' }), max_requests_per_connection: 1 }],
    [
      'not-resumed',
      plainTls,
      { ...secured(trusted(), { sni: 'a.example', max_session_keys: 0 }), max_requests_per_connection: 1 },
    ],
  ];
  const member = (at: number, mode: string): object => ({
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: at } } },
    metadata: { filter_metadata: { 'envoy.transport_socket_match': { mode } } },
  });
  const plainHttp = await listen(createHttpServer((_request, response) => void response.end('{"name":"plain"}')));
  const tlsMatch = (name: string, sni: string): object => ({
    name,
    match: { mode: name },
    transport_socket: socket(trusted(), { sni }),
  });
  const matched = {
    name: 'matched',
    transport_socket_matches: [tlsMatch('one', 'one.example'), tlsMatch('two', 'two.example')],
    load_assignment: {
      cluster_name: 'matched',
      endpoints: [{ lb_endpoints: [member(plainTls, 'one'), member(several, 'two'), member(plainHttp, 'none')] }],
    },
  };
  const echo = await listen(
    createTlsServer(identity, (own) => {
      own.on('error', () => {});
      own.pipe(own);
    }),
  );
  const tcp = {
    '@type': `${TYPES}.filters.network.tcp_proxy.v3.TcpProxy`,
    stat_prefix: 'raw',
    cluster: 'echo',
  };
  const admin = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };
  const configYaml = JSON.stringify({
    admin,
    static_resources: {
      listeners: [
        {
          name: 'web',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [manager([...clusters.map(([name]) => name), 'matched'])] }],
        },
        {
          name: 'raw',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [{ name: 'tcp', typed_config: tcp }] }],
        },
      ],
      clusters: [
        ...clusters.map(([name, at, fields]) => cluster(name, at, fields)),
        cluster('echo', echo, secured(trusted())),
        matched,
      ],
    },
  });
  weir = await startWeir({ configYaml, args: ['--concurrency', '1'] });
  port = (await weir.listeners()).get('web')!.port;
});

after(async () => {
  await weir?.[Symbol.asyncDispose]();
  for (const own of servers) own.close();
  folder[Symbol.dispose]();
});

describe('requests over TLS', () => {
  it('reach servers that nobody asks to prove who they are', async () => {
    assert.deepEqual(await answer('unverified'), {
      name: '',
      protocol: 'http/1.1',
      version: 'TLSv1.2',
      client: '',
      isResumed: false,
    });
    await weir.untilStat('cluster.unverified.ssl.handshake', 1);
    await weir.untilStat('cluster.unverified.ssl.versions.TLSv1.2', 1);
  });
  it('ask for the name that is configured, in either form', async () => {
    assert.equal((await answer('believed')).name, 'a.example');
    assert.equal((await answer('older')).name, 'older.example');
  });
  it('show a certificate of their own', async () => {
    assert.equal((await answer('mutual')).client, 'client');
    const { status, body } = await get('unnamed');
    assert.equal(status, 503);
    assert.match(body, /TLS_error:.*handshake.failure|TLS_error:.*certificate/i);
  });
  it('offer protocols and newer versions', async () => {
    assert.equal((await answer('alpn')).protocol, 'x');
    assert.equal((await answer('newer')).version, 'TLSv1.3');
    assert.match(await failure('too-new'), /^TLS_error:\|.*version.*:TLS_error_end$/);
    await weir.untilStat('cluster.too-new.ssl.connection_error', 1);
  });
  it('ask for the name of the host, or for none that requests bring', async () => {
    assert.equal((await answer('host-name')).name, 'host.example');
  });
  it('ask for the name that each request brings, and never share connections between names', async () => {
    for (const [host, name] of [
      ['One.example:8080', 'one.example'],
      ['two.example', 'two.example'],
      ['one.example', 'one.example'],
      ['127.0.0.9', 'a.example'],
      ['[::1]:80', 'a.example'],
    ] as const) {
      assert.equal((await answer('asked-name', { host })).name, name, host);
    }
    await weir.untilStat('cluster.asked-name.upstream_cx_total', 3);
    assert.equal((await answer('header-name', { 'x-server': 'three.example' })).name, 'three.example');
    for (const headers of [{}, { 'x-server': '' }]) {
      assert.equal((await answer('header-name', { host: 'four.example', ...headers })).name, 'four.example');
    }
  });
  it('want certificates that are for the name a request brings', async () => {
    assert.equal((await answer('asked-san', { host: 'x.b.example' })).name, 'x.b.example');
    for (const [cluster, headers] of [
      ['asked-san', { host: 'c.example' }],
      ['asked-san', { host: `${'a'.repeat(256)}.b.example` }],
      ['header-san', { 'x-server': ':80' }],
    ] as const) {
      const { status, body } = await get(cluster, headers);
      assert.deepEqual([status, /no subject alternative name fits/.test(body)], [503, true], body);
    }
    assert.equal((await answer('asked-san', { host: '127.0.0.1:80' })).name, '');
  });
  it('resume sessions', async () => {
    assert.equal((await answer('resumed')).isResumed, false);
    assert.equal((await answer('resumed')).isResumed, true);
    await weir.untilStat('cluster.resumed.ssl.session_reused', 1);
    for (let n = 0; n < 2; n++) assert.equal((await answer('not-resumed')).isResumed, false);
  });
});

describe('transport sockets by metadata', () => {
  it('are those of the first match, or of the cluster', async () => {
    const names: string[] = [];
    for (let n = 0; n < 6; n++) names.push((await answer('matched')).name);
    assert.deepEqual([...new Set(names)].sort(), ['one.example', 'plain', 'two.example']);
    for (const name of ['one', 'two', 'default']) {
      await weir.untilStat(`cluster.matched.transport_socket_match.${name}.total_match_count`, 1);
    }
  });
});

describe('proxied TCP over TLS', () => {
  it('carries bytes whole, both ends included', async () => {
    const bytes = randomBytes(3 * 1024 * 1024);
    const own = connectPlain((await weir.listeners()).get('raw')!.port, '127.0.0.1');
    own.end(bytes);
    const chunks: Buffer[] = [];
    for await (const chunk of own) chunks.push(chunk as Buffer);
    assert.ok(Buffer.concat(chunks).equals(bytes));
    await weir.untilStat('cluster.echo.ssl.handshake', 1);
    await weir.untilStat('cluster.echo.upstream_cx_active', 0);
  });
});

describe('servers are believed', () => {
  for (const name of ['exact', 'prefix', 'suffix', 'regex', 'contains', 'hash', 'spki', 'any-ca']) {
    it(`by ${name}`, async () => {
      await answer(name);
    });
  }
  for (const [name, reason, stat] of [
    ['other-name', 'no subject alternative name fits', 'san'],
    ['own-name', 'no subject alternative name fits', 'san'],
    ['other-hash', 'no hash fits', 'cert_hash'],
    ['other-ca', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'error'],
    ['expired', 'CERT_HAS_EXPIRED', 'error'],
    ['system', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'error'],
  ] as const) {
    it(`and refused: ${name}`, async () => {
      assert.equal(await failure(name), `TLS_error:|certificate verify failed: ${reason}:TLS_error_end`);
      await weir.untilStat(`cluster.${name}.ssl.fail_verify_${stat}`, 1);
      await weir.untilStat(`cluster.${name}.upstream_cx_connect_fail`, 1);
      await weir.untilStat(`cluster.${name}.ssl.handshake`, 0);
    });
  }
});

describe('servers that do not do their part', () => {
  it('answer in plain text', async () => {
    assert.match(await failure('plain'), /^TLS_error:\|.*:TLS_error_end$/);
    await weir.untilStat('cluster.plain.ssl.connection_error', 1);
  });
  it('fall silent in the handshake', async () => {
    const { status, body } = await get('silent');
    assert.equal(status, 503);
    assert.match(body, /reset reason: connection timeout/);
    await weir.untilStat('cluster.silent.upstream_cx_connect_timeout', 1);
    await weir.untilStat('cluster.silent.upstream_cx_active', 0);
  });
  it('leave in the handshake', async () => {
    const { status, body } = await get('leaving');
    assert.equal(status, 503);
    assert.match(body, /reset reason: remote connection failure/);
    await weir.untilStat('cluster.leaving.upstream_cx_active', 0);
  });
});
