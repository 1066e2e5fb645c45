// TLS as other programs speak it, and what is told of it: to upstreams, in logs, in key logs; revocation lists; a restart.

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { getOverTls, isResumed, newSession, tlsClient } from '../support/tls-client.ts';
import { bootstrapOf, clusterAt, pair, routesTo, tcpProxyTo, tlsListener } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireUpstream } from '../support/wire.ts';

const MODES = ['SANITIZE', 'FORWARD_ONLY', 'APPEND_FORWARD', 'SANITIZE_SET', 'ALWAYS_FORWARD_ONLY'] as const;
const CLAIM = 'By=somebody;Hash=00';

let folder: CertificateFolder;
let ca: TestCertificate;
let own: TestCertificate;
let alice: TestCertificate;
let revoked: TestCertificate;
let odd: TestCertificate;
let between: TestCertificate;
let far: TestCertificate;
let heads: string[];
let upstream: WireUpstream;
let weir: WeirProcess;
let ports: Map<string, number>;

/** All that formats can say of the certificates and the handshake of a client, but for what the tests of logs have. */
const OPERATORS = [
  'DOWNSTREAM_LOCAL_DNS_SAN',
  'DOWNSTREAM_LOCAL_SUBJECT',
  'DOWNSTREAM_LOCAL_URI_SAN',
  'DOWNSTREAM_PEER_CERT',
  'DOWNSTREAM_PEER_CERT_V_START(%Y-%m-%d)',
  'DOWNSTREAM_PEER_CERT_V_END(%Y-%m-%d)',
  'DOWNSTREAM_PEER_DNS_SAN',
  'DOWNSTREAM_PEER_FINGERPRINT_1',
  'DOWNSTREAM_PEER_FINGERPRINT_256',
  'DOWNSTREAM_PEER_ISSUER',
  'DOWNSTREAM_PEER_SERIAL',
  'DOWNSTREAM_TLS_CIPHER',
] as const;

const CHAIN_OPERATORS = [
  'DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256',
  'DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1',
  'DOWNSTREAM_PEER_CHAIN_SERIALS',
];

function place(name: string): string {
  return path.join(folder.path, name);
}

function as({ certificate, key }: TestCertificate): ConnectionOptions {
  return { ca: ca.certificate, cert: certificate, key };
}

/** @param head what the client says of itself. @returns the value that the upstream got, undefined for none. */
async function told(
  listener: string,
  options: ConnectionOptions,
  head = `x-forwarded-client-cert: ${CLAIM}\r\n`,
): Promise<string | undefined> {
  await getOverTls(ports.get(listener)!, { ca: ca.certificate, ...options, head });
  return /\r\nx-forwarded-client-cert: (.*)\r\n/.exec(heads.at(-1)!)?.[1];
}

/** A predicate of decision trees. */
function input(type: string, fields: object, exact: string): object {
  const typed_config = { '@type': `type.googleapis.com/${type}`, ...fields };
  return { single_predicate: { input: { name: 'input', typed_config }, value_match: { exact } } };
}

function header(header_name: string, exact: string): object {
  return input('envoy.type.matcher.v3.HttpRequestHeaderMatchInput', { header_name }, exact);
}

function telling(predicate: object, fields: object): object {
  const NAME = 'HttpConnectionManager.ForwardClientCertConfig';
  const TYPE = `type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.${NAME}`;
  return { predicate, on_match: { action: { name: 'telling', typed_config: { '@type': TYPE, ...fields } } } };
}

/** As far as it has come; empty while there is no such file. */
function written(file: string): string {
  return existsSync(place(file)) ? readFileSync(place(file), 'utf8') : '';
}

function logTo(file: string, format: string): object {
  const TYPE = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
  const log_format = { text_format_source: { inline_string: `${format}\n` } };
  return { name: 'file', typed_config: { '@type': TYPE, path: place(file), log_format } };
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  own = await folder.make('own', { issuer: ca, altNames: 'DNS:a.example,URI:spiffe://weir/server' });
  alice = await folder.make('alice', {
    issuer: ca,
    altNames: 'DNS:alice.example,DNS:b.example,URI:spiffe://weir/alice',
  });
  revoked = await folder.make('revoked', { issuer: ca });
  odd = await folder.make('odd', { issuer: ca, altNames: 'URI:spiffe://weir/odd;DNS=alice.example' });
  between = await folder.make('between', { issuer: ca, isAuthority: true });
  far = await folder.make('far', { issuer: between });
  const crl = await folder.revocationList('taken-back', ca, [revoked]);
  heads = [];
  upstream = await WireUpstream.start((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes: Buffer) => {
        heads.push(bytes.toString('latin1'));
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
  });
  const tls_certificates = [pair(own)];
  const trusted = { trusted_ca: { filename: ca.certificatePath } };
  const asking = { tls_certificates, validation_context: trusted };
  const details = { subject: true, cert: true, uri: true, dns: true };
  const facts =
    '%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_PEER_SUBJECT% %DOWNSTREAM_PEER_URI_SAN% %DOWNSTREAM_TRANSPORT_FAILURE_REASON%';
  const listeners = [
    ...MODES.map((forward_client_cert_details) =>
      tlsListener(forward_client_cert_details, {
        common: asking,
        http: { ...routesTo('web'), forward_client_cert_details, set_current_client_cert_details: details },
      }),
    ),
    tlsListener('chain', {
      common: asking,
      http: {
        ...routesTo('web'),
        forward_client_cert_details: 'SANITIZE_SET',
        set_current_client_cert_details: { chain: true },
        access_log: [logTo('chain.log', CHAIN_OPERATORS.map((operator) => `%${operator}%`).join(' '))],
      },
    }),
    tlsListener('matched', {
      common: asking,
      http: {
        ...routesTo('web'),
        forward_client_cert_details: 'SANITIZE_SET',
        set_current_client_cert_details: { dns: true },
        forward_client_cert_matcher: {
          matcher_list: {
            matchers: [
              telling(header('x-as', 'kept'), { forward_client_cert_details: 'FORWARD_ONLY' }),
              telling(header('x-as', 'anything'), { forward_client_cert_details: 'ALWAYS_FORWARD_ONLY' }),
              telling(header('x-as', 'nothing'), {}),
              telling(header('x-forwarded-client-cert', CLAIM), {
                forward_client_cert_details: 'APPEND_FORWARD',
                set_current_client_cert_details: { subject: true },
              }),
              telling(input('envoy.extensions.matching.common_inputs.ssl.v3.UriSanInput', {}, 'spiffe://weir/alice'), {
                forward_client_cert_details: 'SANITIZE_SET',
                set_current_client_cert_details: { uri: true },
              }),
            ],
          },
        },
      },
    }),
    tlsListener('revoking', {
      common: { tls_certificates, validation_context: { ...trusted, crl: { filename: crl } } },
      context: { require_client_certificate: true },
    }),
    tlsListener('logged', {
      common: {
        ...asking,
        key_log: { path: place('keys.log'), remote_address_range: [{ address_prefix: '127.0.0.0', prefix_len: 8 }] },
      },
      http: { access_log: [logTo('access.log', facts)] },
    }),
    tlsListener('told', {
      common: asking,
      http: { access_log: [logTo('told.log', OPERATORS.map((operator) => `%${operator}%`).join('|'))] },
    }),
    tlsListener('elsewhere', {
      common: {
        tls_certificates,
        key_log: {
          path: place('no-keys.log'),
          remote_address_range: [{ address_prefix: '192.0.2.0', prefix_len: 24 }],
        },
      },
    }),
    tlsListener('raw', {
      common: asking,
      context: { require_client_certificate: true },
      chain: { filters: [tcpProxyTo('web', { access_log: [logTo('raw.log', facts)] })] },
      fields: { access_log: [logTo('listener.log', facts)] },
    }),
  ];
  const clusters = [clusterAt('web', upstream.port)];
  const args = ['--file-flush-interval-msec', '10'];
  weir = await startWeir({ configYaml: bootstrapOf(listeners, { clusters }), args });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  await upstream?.close();
  folder[Symbol.dispose]();
});

describe('what upstreams are told of the certificates of clients', () => {
  it('is what the mode says, of connections with one and without', async () => {
    const options = as(alice);
    assert.equal(await told('SANITIZE', {}), undefined);
    assert.equal(await told('FORWARD_ONLY', {}), undefined);
    assert.equal(await told('ALWAYS_FORWARD_ONLY', {}), CLAIM);
    assert.equal(await told('APPEND_FORWARD', {}), undefined);
    assert.equal(await told('SANITIZE_SET', {}), undefined);
    assert.equal(await told('SANITIZE', options), undefined);
    assert.equal(await told('FORWARD_ONLY', options), CLAIM);
    assert.equal(await told('ALWAYS_FORWARD_ONLY', options), CLAIM);
    const set = (await told('SANITIZE_SET', options))!;
    const parts =
      /^By=spiffe:\/\/weir\/server;Hash=[0-9a-f]{64};Cert="(.*)";Subject="CN=alice";URI=spiffe:\/\/weir\/alice;DNS=alice\.example;DNS=b\.example$/;
    assert.equal(decodeURIComponent(parts.exec(set)![1]!), alice.certificate);
    assert.equal(await told('APPEND_FORWARD', options), `${CLAIM},${set}`);
  });

  it('is what leads to their root, where that is asked for', async () => {
    const chain = async ({ certificate, key }: TestCertificate, ...others: TestCertificate[]): Promise<string> => {
      const cert = [certificate, ...others.map((other) => other.certificate)].join('');
      const parts = /;Chain="(.*)"$/.exec((await told('chain', { cert, key }))!);
      return decodeURIComponent(parts![1]!);
    };
    assert.equal(await chain(far, between), far.certificate + between.certificate);
    assert.equal(await chain(far, between, ca), far.certificate + between.certificate);
    assert.equal(await chain(alice), alice.certificate);
    const digits = (text: string): string => text.replaceAll(':', '').toLowerCase();
    const lines = [[far, between], [far, between], [alice]].map((all) => {
      const certificates = all.map(({ certificate }) => new X509Certificate(certificate));
      return (['fingerprint256', 'fingerprint', 'serialNumber'] as const)
        .map((field) => certificates.map((certificate) => digits(certificate[field])).join())
        .join(' ');
    });
    await untilEqual(`${lines.join('\n')}\n`, () => written('chain.log'), 'the log');
  });

  it('is what a decision tree says, and what the mode says where it leads nowhere', async () => {
    const options = as(alice);
    const of = (asked: string, client = options): Promise<string | undefined> =>
      told('matched', client, `x-as: ${asked}\r\nx-forwarded-client-cert: By=me\r\n`);
    assert.equal(await of('kept'), 'By=me');
    assert.equal(await of('kept', {}), undefined);
    assert.equal(await of('anything', {}), 'By=me');
    assert.equal(await of('nothing'), undefined);
    assert.match(
      (await told('matched', options))!,
      /^By=somebody;Hash=00,By=[^;]+;Hash=[0-9a-f]{64};Subject="CN=alice"$/,
    );
    assert.match((await of('other'))!, /^By=[^;]+;Hash=[0-9a-f]{64};URI=spiffe:\/\/weir\/alice$/);
    assert.match((await of('other', as(odd)))!, /^By=[^;]+;Hash=[0-9a-f]{64}$/);
    assert.equal(await of('other', {}), undefined);
  });

  it('is said anew by each request of a connection', async () => {
    const socket = await tlsClient(ports.get('matched')!, { ca: ca.certificate, ...as(alice) });
    const seen: (string | undefined)[] = [];
    for (const [asked, claim] of [
      ['other', 'By=me'],
      ['nothing', 'By=me'],
      ['kept', 'By=me'],
      ['other', CLAIM],
      ['other', 'By=me'],
    ] as const) {
      const fields = `x-as: ${asked}\r\nx-forwarded-client-cert: ${claim}\r\n`;
      socket.write(`GET / HTTP/1.1\r\nhost: a.example\r\n${fields}\r\n`);
      await new Promise((resolve) => socket.once('data', resolve));
      seen.push(/\r\nx-forwarded-client-cert: (.*)\r\n/.exec(heads.at(-1)!)?.[1]);
    }
    socket.destroy();
    assert.match(seen[0]!, /;URI=spiffe/);
    assert.match(seen[3]!, /;Subject="CN=alice"$/);
    assert.deepEqual(seen, [seen[0], undefined, 'By=me', seen[3], seen[0]]);
  });

  it('cannot be made to say more by a name that looks like several', async () => {
    assert.match((await told('SANITIZE_SET', as(odd)))!, /;URI="spiffe:\/\/weir\/odd;DNS=alice\.example"$/);
  });
});

describe('a certificate that its authority has taken back', () => {
  it('is refused, and the others are not', async () => {
    assert.match(await getOverTls(ports.get('revoking')!, as(alice)), /200 OK/);
    await assert.rejects(getOverTls(ports.get('revoking')!, as(revoked)));
    await weir.untilStat('listener.revoking.ssl.fail_verify_error', 1);
  });
});

describe('logs', () => {
  it('have what clients have proved, and keys where those are asked for', async () => {
    assert.match(await getOverTls(ports.get('logged')!, as(alice)), /200 OK/);
    const line = 'TLSv1.3 CN=alice spiffe://weir/alice -\n';
    await untilEqual(true, () => written('access.log') === line, 'whether the line is there');
    await eventually(() => /^CLIENT_HANDSHAKE_TRAFFIC_SECRET \w{64} \w+\n/m.test(written('keys.log')), 'keys');
    assert.equal(statSync(place('keys.log')).mode & 0o777, 0o600);
    await getOverTls(ports.get('elsewhere')!, as(alice));
    assert.throws(() => statSync(place('no-keys.log')), { code: 'ENOENT' });
  });

  it('say all of the certificates of both sides', async () => {
    const old = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' } as const;
    const port = ports.get('told')!;
    const untilWritten = (lines: number): Promise<void> =>
      untilEqual(lines, () => written('told.log').split('\n').length - 1, 'lines');
    assert.match(await getOverTls(port, { ...as(alice), ...old }), /200 OK/);
    await untilWritten(1);
    assert.match(await getOverTls(port, { ca: ca.certificate, ...old }), /200 OK/);
    await untilWritten(2);
    const [withCertificate, without] = written('told.log').split('\n');
    const { raw, serialNumber, validFromDate, validToDate } = new X509Certificate(alice.certificate);
    const hashOf = (algorithm: string): string => createHash(algorithm).update(raw).digest('hex');
    const shown = ['a.example', 'CN=own', 'spiffe://weir/server'];
    const proved = [
      encodeURIComponent(alice.certificate),
      validFromDate.toISOString().slice(0, 10),
      validToDate.toISOString().slice(0, 10),
      'alice.example,b.example',
      hashOf('sha1'),
      hashOf('sha256'),
      'CN=ca',
      serialNumber.toLowerCase(),
    ];
    const cipher = 'ECDHE-ECDSA-AES128-GCM-SHA256';
    assert.deepEqual(withCertificate!.split('|'), [...shown, ...proved, cipher]);
    assert.deepEqual(without!.split('|'), [...shown, ...proved.map(() => '-'), cipher]);
  });

  it('of raw connections have handshakes that fail', async () => {
    await assert.rejects(getOverTls(ports.get('raw')!, { ca: ca.certificate }));
    const failure = /^- - - TLS_error:\|peer did not return a certificate:TLS_error_end$/m;
    const logged = (): boolean => ['raw.log', 'listener.log'].every((file) => failure.test(written(file)));
    await eventually(logged, 'the failed handshake');
  });
});

describe('other programs', () => {
  const at = (): string => `https://a.example:${ports.get('logged')}/`;

  it('such as curl are served over one connection, with a certificate of theirs or without', async () => {
    const to = ['--resolve', `a.example:${ports.get('logged')}:127.0.0.1`, '--cacert', ca.certificatePath];
    const once = ['-sS', '-w', '%{http_code} %{num_connects} '];
    const proof = ['--cert', alice.certificatePath, '--key', alice.keyPath];
    const { stdout, stderr } = await runProgram('curl', [...once, ...to, ...proof, at(), at()]);
    assert.equal(stdout, 'ok200 1 ok200 0 ', stderr);
    const old = await runProgram('curl', [...once, ...to, '--tls-max', '1.2', at()]);
    assert.equal(old.stdout, 'ok200 1 ', old.stderr);
    const tooOld = await runProgram('curl', [...once, ...to, '--tls-max', '1.1', at()]);
    assert.notEqual(tooOld.code, 0);
  });

  it('such as openssl resume sessions of TLS 1.2 and 1.3', async () => {
    for (const version of ['-tls1_2', '-tls1_3']) {
      const session = place(`session${version}`);
      const connect = [
        's_client',
        '-connect',
        `127.0.0.1:${ports.get('logged')}`,
        '-CAfile',
        ca.certificatePath,
        version,
      ];
      // Tickets of TLS 1.3 come behind the handshake, so the client has to wait for an answer.
      const ask = [
        'sh',
        '-c',
        `printf 'GET / HTTP/1.1\\r\\nhost: a.example\\r\\nconnection: close\\r\\n\\r\\n' | openssl "$@"`,
        'sh',
      ];
      const [shell, ...args] = ask;
      const first = await runProgram(shell!, [...args, ...connect, '-ign_eof', '-sess_out', session]);
      assert.match(first.stdout, /New, TLSv1\.[23]/);
      const second = await runProgram(shell!, [...args, ...connect, '-ign_eof', '-sess_in', session]);
      assert.match(second.stdout, /Reused, TLSv1\.[23]/);
    }
  });
});

describe('the end of a proxy that speaks TLS', () => {
  it('lets running connections end with their answer, and its tickets are good where the keys come from a file', async () => {
    writeFileSync(place('ticket.key'), Buffer.alloc(80, 7));
    const listener = tlsListener('tickets', {
      common: { tls_certificates: [pair(own)] },
      context: { session_ticket_keys: { keys: [{ filename: place('ticket.key') }] } },
      http: routesTo('web'),
    });
    const configYaml = bootstrapOf([listener], { clusters: [clusterAt('web', upstream.port)] });
    const options = { ca: ca.certificate };
    let session: Buffer;
    {
      await using former = await startWeir({ configYaml });
      const port = (await former.listeners()).get('tickets')!.port;
      session = await newSession(port, options);
      const idle = tlsClient(port, options);
      await new Promise((resolve) => idle.once('secureConnect', resolve));
      // In TLS 1.3 the client is done before the server is.
      await former.untilStat('listener.tickets.ssl.handshake', 2);
      const ended = new Promise((resolve) => idle.resume().once('end', () => resolve('ended')));
      await former.stop();
      assert.equal(await ended, 'ended');
    }
    await using next = await startWeir({ configYaml });
    assert.equal(await isResumed((await next.listeners()).get('tickets')!.port, session, options), true);
  });
});
