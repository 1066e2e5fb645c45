// TLS on listeners, by the real program: handshakes, certificates of both sides, resumption, and clients that are none.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import {
  getOverTls,
  isResumed,
  newSession,
  shownSubject,
  type TlsClientOptions,
  tlsClient,
} from '../support/tls-client.ts';
import {
  bootstrapOf,
  clusterAt,
  connectionManager,
  pair,
  routesTo,
  type TlsListenerOptions,
  tcpProxyTo,
  tlsListener,
  tlsSocket,
} from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';

let folder: CertificateFolder;
let ca: TestCertificate;
let ec: TestCertificate;
let rsa: TestCertificate;
let other: TestCertificate;
let alice: TestCertificate;
let mallory: TestCertificate;
let upstream: WireUpstream;
let echo: WireUpstream;
let heads: string[];
let weir: WeirProcess;
let ports: Map<string, number>;

function listener(name: string, { common, http, ...options }: TlsListenerOptions): object {
  return tlsListener(name, {
    common: { tls_certificates: [pair(ec)], ...common },
    http: { ...routesTo('web'), ...http },
    ...options,
  });
}

/** Two chains behind a TLS inspector, which has read the first bytes when one of them is chosen. */
function byName(): object {
  const chain = (certificate: TestCertificate, match: object): object => {
    const transport_socket = tlsSocket({ tls_certificates: [pair(certificate)] });
    return { filter_chain_match: match, transport_socket, filters: [connectionManager(routesTo('web'))] };
  };
  const inspector = { '@type': `${TYPES}.filters.listener.tls_inspector.v3.TlsInspector` };
  return {
    name: 'by-name',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    listener_filters: [{ name: 'tls_inspector', typed_config: inspector }],
    filter_chains: [chain(ec, { server_names: ['a.example'] }), chain(other, { server_names: ['*.b.example'] })],
  };
}

function client(name: string, options: ConnectionOptions = {}): TLSSocket {
  return tlsClient(ports.get(name)!, { ca: ca.certificate, ...options });
}

function get(name: string, options: TlsClientOptions = {}): Promise<string> {
  return getOverTls(ports.get(name)!, { ca: ca.certificate, ...options });
}

function lastHead(): string {
  return heads.at(-1)!;
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  ec = await folder.make('ec', { issuer: ca, altNames: 'DNS:a.example,URI:spiffe://weir/server' });
  rsa = await folder.make('rsa', { issuer: ca, key: 'rsa', altNames: 'DNS:a.example' });
  other = await folder.make('other', { issuer: ca, altNames: 'DNS:*.b.example' });
  alice = await folder.make('alice', { issuer: ca, altNames: 'DNS:alice.example,URI:spiffe://weir/alice' });
  mallory = await folder.make('mallory', { altNames: 'DNS:alice.example' });
  heads = [];
  upstream = await WireUpstream.start((socket) => {
    socket.on('data', (bytes: Buffer) => {
      heads.push(bytes.toString('latin1'));
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    socket.on('error', () => {});
  });
  echo = await WireUpstream.start((socket) => socket.on('error', () => {}).pipe(socket));
  const trusted = { trusted_ca: { filename: ca.certificatePath } };
  const listeners = [
    listener('plain', { common: { alpn_protocols: ['h2', 'http/1.1'] } }),
    listener('both', { common: { tls_certificates: [pair(ec), pair(rsa), pair(other)] } }),
    listener('mutual', {
      common: {
        validation_context: {
          ...trusted,
          match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { suffix: '.example' } }],
        },
      },
      context: { require_client_certificate: true },
      http: {
        forward_client_cert_details: 'SANITIZE_SET',
        set_current_client_cert_details: { subject: true, uri: true, dns: true },
      },
    }),
    listener('optional', { common: { validation_context: trusted } }),
    listener('hashed', { common: { validation_context: { verify_certificate_hash: ['0'.repeat(64)] } } }),
    listener('impatient', { chain: { transport_socket_connect_timeout: '0.05s' } }),
    listener('strict', {
      common: { tls_params: { tls_minimum_protocol_version: 'TLSv1_3' } },
      context: { require_sni: true },
    }),
    byName(),
    listener('raw', { chain: { filters: [tcpProxyTo('echo')] } }),
    listener('fresh', { context: { disable_stateless_session_resumption: true } }),
    listener('demanding', { http: routesTo('web', { require_tls: 'ALL' }) }),
    listener('unsecured', { chain: { transport_socket: undefined }, http: routesTo('web', { require_tls: 'ALL' }) }),
  ];
  const clusters = [clusterAt('web', upstream.port), clusterAt('echo', echo.port)];
  weir = await startWeir({
    configYaml: bootstrapOf(listeners, { clusters }),
    args: ['--concurrency', '2'],
  });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  await upstream?.close();
  await echo?.close();
  folder[Symbol.dispose]();
});

describe('a listener with a certificate', () => {
  it('serves requests, and tells the upstream of https', async () => {
    assert.match(await get('plain'), /^HTTP\/1\.1 200 OK\r\n.*ok$/s);
    assert.match(lastHead(), /\r\nx-forwarded-proto: https\r\n/);
    await weir.untilStat('http.ingress.downstream_cx_ssl_active', 0);
  });

  it('sends requests that came without TLS to HTTPS where a virtual host asks for it', async () => {
    assert.match(await get('demanding'), /^HTTP\/1\.1 200 OK\r\n/);
    const origin = `127.0.0.1:${ports.get('unsecured')}`;
    const { status, headers } = await fetch(`http://${origin}/x?y=z`, { redirect: 'manual' });
    assert.equal(status, 301);
    assert.equal(headers.get('location'), `https://${origin}/x?y=z`);
    await weir.untilStat('http.ingress.rq_redirect', 1);
  });

  it('agrees on a protocol by ALPN, in its own order', async () => {
    const socket = client('plain', { ALPNProtocols: ['http/1.1', 'h3'] });
    await once(socket, 'secureConnect');
    assert.equal(socket.alpnProtocol, 'http/1.1');
    socket.destroy();
  });

  it('counts handshakes by version and cipher', async () => {
    const before = (await weir.stat('listener.fresh.ssl.handshake')) ?? 0;
    await get('fresh', { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' });
    await weir.untilStat('listener.fresh.ssl.handshake', before + 1);
    await weir.untilStat('listener.fresh.ssl.versions.TLSv1.2', 1);
    await weir.untilStat('listener.fresh.ssl.ciphers.ECDHE-ECDSA-AES128-GCM-SHA256', 1);
    await weir.untilStat('listener.fresh.ssl.no_certificate', 1);
  });

  it('shows the certificate that the client can verify, and the one for the server it names', async () => {
    const subjectOf = (options: ConnectionOptions): Promise<string> =>
      shownSubject(ports.get('both')!, { ca: ca.certificate, ...options });
    const old = { maxVersion: 'TLSv1.2' } as const;
    assert.equal(await subjectOf({ ...old, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }), 'CN=rsa');
    assert.equal(await subjectOf({ ...old, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }), 'CN=ec');
    assert.equal(await subjectOf(old), 'CN=ec');
    assert.equal(await subjectOf({ servername: 'x.b.example' }), 'CN=other');
  });

  it('is chosen by the name that the client has sent, whose bytes go on to the handshake', async () => {
    for (const [servername, subject] of [
      ['a.example', 'CN=ec'],
      ['x.b.example', 'CN=other'],
    ]) {
      const socket = client('by-name', { servername: servername! });
      await once(socket, 'secureConnect');
      assert.equal(socket.getPeerX509Certificate()!.subject, subject);
      socket.destroy();
    }
    assert.match(await get('by-name'), /200 OK/);
  });

  it('refuses versions below the oldest, and clients that name no server', async () => {
    await assert.rejects(get('strict', { maxVersion: 'TLSv1.2' }));
    await weir.untilStat('listener.strict.ssl.connection_error', 1);
    await assert.rejects(get('strict', { servername: '', checkServerIdentity: () => undefined }));
    await weir.untilStat('listener.strict.ssl.connection_error', 2);
    assert.match(await get('strict'), /200 OK/);
  });
});

describe('sessions', () => {
  const session = (name: string): Promise<Buffer> => newSession(ports.get(name)!, { ca: ca.certificate });
  const isReused = (name: string, ticket: Buffer): Promise<boolean> =>
    isResumed(ports.get(name)!, ticket, { ca: ca.certificate });

  it('are resumed by whichever worker gets the client', async () => {
    // Connections are spread over two workers by the kernel; ten all on one have a chance of 1 in 500.
    for (let i = 0; i < 10; i++) assert.equal(await isReused('plain', await session('plain')), true);
    await weir.untilStat('listener.plain.ssl.session_reused', 10);
  });

  it('are not resumed where that is off', async () => {
    const socket = client('fresh');
    await once(socket, 'secureConnect');
    const ticket = socket.getSession();
    socket.destroy();
    if (ticket !== undefined) assert.equal(await isReused('fresh', ticket), false);
  });
});

describe('certificates of clients', () => {
  it('are told to the upstream', async () => {
    const head = 'x-forwarded-client-cert: By=liar\r\n';
    await get('mutual', { cert: alice.certificate, key: alice.key, head });
    const [, told] = /\r\nx-forwarded-client-cert: (.*)\r\n/.exec(lastHead())!;
    assert.match(
      told!,
      /^By=spiffe:\/\/weir\/server;Hash=[0-9a-f]{64};Subject="CN=alice";URI=spiffe:\/\/weir\/alice;DNS=alice\.example$/,
    );
  });

  it('are dropped from requests of connections without one', async () => {
    await get('plain', { head: 'x-forwarded-client-cert: By=liar\r\n' });
    assert.doesNotMatch(lastHead(), /x-forwarded-client-cert/);
  });

  it('must be there, lead to an authority, and have a name that is wanted', async () => {
    await assert.rejects(get('mutual'));
    await weir.untilStat('listener.mutual.ssl.fail_verify_no_cert', 1);
    await assert.rejects(get('mutual', { cert: mallory.certificate, key: mallory.key }));
    await weir.untilStat('listener.mutual.ssl.fail_verify_error', 1);
    await assert.rejects(get('mutual', { cert: ca.certificate, key: ca.key }));
    await weir.untilStat('listener.mutual.ssl.fail_verify_san', 1);
  });

  it('may be missing where they are only asked for', async () => {
    assert.match(await get('optional'), /200 OK/);
    await assert.rejects(get('optional', { cert: mallory.certificate, key: mallory.key }));
  });

  it('are held against hashes', async () => {
    await assert.rejects(get('hashed', { cert: alice.certificate, key: alice.key }));
    await weir.untilStat('listener.hashed.ssl.fail_verify_cert_hash', 1);
  });
});

describe('raw bytes over TLS', () => {
  it('pass both ways beside a reader that rests, and end with the side that ends', async () => {
    const socket = client('raw');
    await once(socket, 'secureConnect');
    const sent = randomBytes(4 * 1024 * 1024);
    const written = once(socket, 'finish');
    socket.end(sent);
    const got = createHash('sha256');
    let length = 0;
    socket.on('data', (bytes: Buffer) => {
      got.update(bytes);
      length += bytes.length;
      // Rests for a turn after each chunk, so that the proxy has to wait.
      socket.pause();
      setImmediate(() => socket.resume());
    });
    await once(socket, 'end');
    await written;
    assert.equal(length, sent.length);
    assert.equal(got.digest('hex'), createHash('sha256').update(sent).digest('hex'));
    await weir.untilStat('listener.raw.downstream_cx_active', 0);
  });

  it('are reset with the connection behind', async () => {
    const socket = client('raw');
    await once(socket, 'secureConnect');
    socket.write('x');
    await once(socket, 'data');
    echo.sockets.at(-1)!.resetAndDestroy();
    const [error] = await once(socket, 'error');
    assert.equal(error.code, 'ECONNRESET');
  });
});

describe('the certificates in use', () => {
  it('are listed, with the day on which the first of them expires', async () => {
    const { certificates } = JSON.parse(await weir.admin('/certs'));
    const mutual = certificates[2];
    assert.equal(mutual.ca_cert[0].path, ca.certificatePath);
    assert.equal(mutual.cert_chain[0].path, ec.certificatePath);
    assert.deepEqual(mutual.cert_chain[0].subject_alt_names, [{ dns: 'a.example' }, { uri: 'spiffe://weir/server' }]);
    assert.equal(mutual.cert_chain[0].days_until_expiration, '29');
    assert.equal(certificates.length, 12);
    assert.equal(await weir.stat('server.days_until_first_cert_expiring'), 29);
  });

  it('show nothing of their keys in a dump', async () => {
    const dump = await weir.admin('/config_dump');
    assert.doesNotMatch(dump, /PRIVATE KEY/);
    assert.ok(!dump.includes(ec.keyPath));
  });
});

describe('clients that are none', () => {
  it('are closed when they speak plain HTTP, and counted', async () => {
    const socket = connectPlain(ports.get('plain')!, '127.0.0.1');
    const before = (await weir.stat('listener.plain.ssl.connection_error')) ?? 0;
    socket.on('error', () => {}).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    socket.resume();
    await once(socket, 'close');
    await weir.untilStat('listener.plain.ssl.connection_error', before + 1);
    assert.match(await get('plain'), /200 OK/);
  });

  it('are closed when their handshake stops', async () => {
    const socket = connectPlain(ports.get('impatient')!, '127.0.0.1');
    socket.on('error', () => {}).write(Buffer.from('160301', 'hex'));
    socket.resume();
    await once(socket, 'close');
    await weir.untilStat('listener.impatient.downstream_cx_transport_socket_connect_timeout', 1);
    await weir.untilStat('listener.impatient.downstream_cx_active', 0);
  });

  it('leave nothing behind when they go in the middle', async () => {
    const socket = connectPlain(ports.get('fresh')!, '127.0.0.1');
    await once(socket, 'connect');
    await weir.untilStat('listener.fresh.downstream_cx_active', 1);
    socket.resetAndDestroy();
    await weir.untilStat('listener.fresh.downstream_cx_active', 0);
  });
});
