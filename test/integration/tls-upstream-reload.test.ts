// Certificates, keys, authorities and secrets of clusters whose files change while the clusters serve: connections from then on go by
// the new ones, those that there are go on, and what cannot be used changes nothing.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { untilEqual } from '../support/eventually.ts';
import { bootstrapOf, clusterAt, connectionManager, pair, tlsMessage } from '../support/tls-config.ts';
import { copyPair, type PairOfFiles, pairIn, replaceFile, secretFrom, secretResponse } from '../support/tls-files.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

let folder: CertificateFolder;
let ca: TestCertificate;
let otherCa: TestCertificate;
const clients = new Map<string, TestCertificate>();
let upstream: ReturnType<typeof createServer>;
let weir: WeirProcess;
let port: number;

function place(...names: string[]): string {
  return path.join(folder.path, ...names);
}

/** Files that a cluster names, whatever is in them. */
function filesOf(cluster: string): PairOfFiles {
  return pairIn(place(cluster));
}

/** Says who has connected, and how many connections there were before this one. */
async function startUpstream(identity: TestCertificate): Promise<void> {
  const connections: TLSSocket[] = [];
  const { certificate: cert, key } = identity;
  upstream = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, ({ socket }, response) => {
    const own = socket as TLSSocket;
    if (!connections.includes(own)) connections.push(own);
    const client = own.getPeerCertificate().subject?.CN ?? '';
    response.end(JSON.stringify({ client, connection: connections.indexOf(own) }));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
}

interface Answer {
  readonly status: number;
  readonly client: string;
  readonly connection: number;
}

/** @param agent whose connection is used; one of its own when absent. */
async function get(cluster: string, agent: Agent | false = false): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request({ host: '127.0.0.1', port, path: `/${cluster}`, agent }, (response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (text: string) => (body += text));
    response.on('end', () => {
      const told = response.statusCode === 200 ? JSON.parse(body) : { client: '', connection: -1 };
      resolve({ status: response.statusCode!, ...told });
    });
  })
    .on('error', reject)
    .end();
  return promise;
}

/** What several connections to the proxy meet, which the kernel spreads over both workers. */
async function seen(cluster: string, what: (answer: Answer) => string | number): Promise<string> {
  const answers = await Promise.all(Array.from({ length: 8 }, () => get(cluster)));
  return [...new Set(answers.map(what))].join(', ');
}

function untilClient(cluster: string, name: string): Promise<void> {
  return untilEqual(name, () => seen(cluster, ({ client }) => client), `the client that cluster ${cluster} shows`);
}

function updates(cluster: string): string {
  return `cluster.${cluster}.client_ssl_socket_factory.ssl_context_update_by_file`;
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  otherCa = await folder.make('other-ca', { isAuthority: true });
  for (const name of ['one', 'two', 'three']) clients.set(name, await folder.make(name, { days: 90 }));
  await startUpstream(await folder.make('server', { issuer: ca }));
  const { port: at } = upstream.address() as AddressInfo;
  for (const name of ['written', 'kept', 'broken', 'matched', 'unasked']) copyPair(filesOf(name), clients.get('one')!);
  copyFileSync(ca.certificatePath, place('trusted.pem'));
  writeFileSync(place('secret.json'), secretResponse({ name: 'client', tls_certificate: pair(clients.get('one')!) }));

  const socket = (common: object): object => ({
    name: 'tls',
    typed_config: tlsMessage('UpstreamTlsContext', { common_tls_context: common }),
  });
  /** Each request has a connection of its own. */
  const once = { max_requests_per_connection: 1 };
  const cluster = (name: string, fields: object): object => ({
    ...clusterAt(name, at),
    connect_timeout: '20s',
    ...fields,
  });
  const presenting = (name: string): object => socket({ tls_certificates: [pair(filesOf(name))] });
  const member = { address: { socket_address: { address: '127.0.0.1', port_value: at } } };
  const metadata = { filter_metadata: { 'envoy.transport_socket_match': { mode: 'mutual' } } };
  const clusters = [
    cluster('written', { ...once, transport_socket: presenting('written') }),
    cluster('kept', { transport_socket: presenting('kept') }),
    cluster('broken', { ...once, transport_socket: presenting('broken') }),
    cluster('unasked', { ...once, transport_socket: presenting('unasked') }),
    cluster('trusting', {
      ...once,
      transport_socket: socket({ validation_context: { trusted_ca: { filename: place('trusted.pem') } } }),
    }),
    cluster('secret', {
      ...once,
      transport_socket: socket({ tls_certificate_sds_secret_configs: [secretFrom('client', place('secret.json'))] }),
    }),
    {
      name: 'matched',
      ...once,
      transport_socket: socket({}),
      transport_socket_matches: [
        { name: 'mutual', match: { mode: 'mutual' }, transport_socket: presenting('matched') },
      ],
      load_assignment: { cluster_name: 'matched', endpoints: [{ lb_endpoints: [{ endpoint: member, metadata }] }] },
    },
  ];
  const names = ['written', 'kept', 'broken', 'unasked', 'trusting', 'secret', 'matched'];
  const routes = names.map((name) => ({ match: { path: `/${name}` }, route: { cluster: name } }));
  const listener = {
    name: 'web',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [
      {
        filters: [connectionManager({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } })],
      },
    ],
  };
  weir = await startWeir({ configYaml: bootstrapOf([listener], { clusters }), args: ['--concurrency', '2'] });
  port = (await weir.listeners()).get('web')!.port;
});

after(async () => {
  await weir?.stop();
  upstream?.close();
  folder[Symbol.dispose]();
});

describe('certificates of clusters in files that change', () => {
  it('are shown by connections from then on, in all workers and without a failed request', async () => {
    assert.equal(await seen('written', ({ client }) => client), 'one');
    const isOver = { value: false };
    const clientsAtWork = Array.from({ length: 4 }, async () => {
      while (!isOver.value) assert.equal((await get('written')).status, 200);
    });
    copyPair(filesOf('written'), clients.get('two')!);
    await untilClient('written', 'two');
    const { certificatePath, keyPath } = filesOf('written');
    replaceFile(certificatePath, clients.get('three')!.certificate);
    replaceFile(keyPath, clients.get('three')!.key);
    await untilClient('written', 'three');
    isOver.value = true;
    await Promise.all(clientsAtWork);
    assert.equal(await weir.stat('cluster.written.ssl.connection_error'), 0);
    assert.match(weir.output.stderr, /cluster written: TLS goes by what has changed in .*tls\.crt/);
  });

  it('leave connections alone that there are', async () => {
    using agent = new OneConnection();
    const first = await get('kept', agent);
    copyPair(filesOf('kept'), clients.get('two')!);
    await weir.untilStat(updates('kept'), 1);
    assert.deepEqual(await get('kept', agent), first);
    assert.equal(first.client, 'one');
  });

  it('are shown by the first connections of a cluster that nobody has asked for', async () => {
    copyPair(filesOf('unasked'), clients.get('two')!);
    await weir.untilStat(updates('unasked'), 1);
    assert.equal(await seen('unasked', ({ client }) => client), 'two');
  });

  it('are shown to the hosts that a transport socket match is for', async () => {
    assert.equal(await seen('matched', ({ client }) => client), 'one');
    copyPair(filesOf('matched'), clients.get('two')!);
    await untilClient('matched', 'two');
  });

  it('stay as they were while the new ones cannot be used', async () => {
    const { certificatePath, keyPath } = filesOf('broken');
    const failures = 'cluster.broken.client_ssl_socket_factory.ssl_context_update_failed';
    replaceFile(keyPath, clients.get('two')!.key);
    await weir.untilStat(failures, 1);
    assert.equal(await seen('broken', ({ client }) => client), 'one');
    const line = `cluster broken: TLS goes on with what it had: .*${keyPath}" is not the key of the certificate in "${certificatePath}"`;
    assert.match(weir.output.stderr, new RegExp(line));
    copyPair(filesOf('broken'), clients.get('three')!);
    await untilClient('broken', 'three');
    assert.equal(await weir.stat(failures), 1);
  });

  it('are those that listings show, and whose time runs out', async () => {
    const expiring = await folder.make('expiring', { days: 3 });
    const daysLeft = async (): Promise<number> => (await weir.stat('server.days_until_first_cert_expiring'))!;
    assert.ok((await daysLeft()) > 20);
    const before = (await weir.stat(updates('written')))!;
    copyPair(filesOf('written'), expiring);
    await untilClient('written', 'expiring');
    await weir.untilStat(updates('written'), before + 1);
    const serial = await folder.openssl(['x509', '-in', expiring.certificatePath, '-serial', '-noout']);
    const { certificates } = JSON.parse(await weir.admin('/certs')) as {
      certificates: { cert_chain: { path: string; serial_number: string }[] }[];
    };
    const listed = certificates.flatMap(({ cert_chain: chain }) => chain);
    const own = listed.find((entry) => entry.path === filesOf('written').certificatePath)!;
    assert.equal(`serial=${own.serial_number.toUpperCase()}`, serial.trim());
    assert.equal(await daysLeft(), 2);
  });
});

describe('authorities of clusters in a file that changes', () => {
  it('judge servers from then on', async () => {
    assert.equal(await seen('trusting', ({ status }) => status), '200');
    replaceFile(place('trusted.pem'), otherCa.certificate);
    await untilEqual('503', () => seen('trusting', ({ status }) => status), 'the answer with another authority');
    assert.ok((await weir.stat('cluster.trusting.ssl.fail_verify_error'))! > 0);
    replaceFile(place('trusted.pem'), ca.certificate);
    await untilEqual('200', () => seen('trusting', ({ status }) => status), 'the answer with the first authority');
  });
});

describe('secrets of clusters in files', () => {
  it('are taken over when another file is moved there, and counted', async () => {
    const file = place('secret.json');
    assert.equal(await seen('secret', ({ client }) => client), 'one');
    assert.equal(await weir.stat('sds.client.update_success'), 1);
    replaceFile(file, secretResponse({ name: 'client', tls_certificate: pair(clients.get('two')!) }));
    await untilClient('secret', 'two');
    await weir.untilStat('sds.client.update_success', 2);
    await weir.untilStat('cluster.secret.client_ssl_socket_factory.ssl_context_update_by_sds', 2);
    const wrong = { ...clients.get('two')!, keyPath: clients.get('one')!.keyPath };
    replaceFile(file, secretResponse({ name: 'client', tls_certificate: pair(wrong) }));
    await weir.untilStat('sds.client.update_rejected', 1);
    assert.equal(await seen('secret', ({ client }) => client), 'two');
    assert.ok(!weir.output.stderr.includes(readFileSync(wrong.keyPath, 'utf8').slice(40, 80)));
  });
});

/** One request after the other over the same connection. */
class OneConnection extends Agent implements Disposable {
  constructor() {
    super({ keepAlive: true, maxSockets: 1 });
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}
