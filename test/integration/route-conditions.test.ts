// Routes by what no head says: the client's certificate, and what filters have made of the request.

import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import type { RouteConditions } from '../../src/snapshot/index.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { routeFor, routeTable } from '../support/data-plane.ts';
import { proxyWith } from '../support/filtered-proxy.ts';
import { getOverTls } from '../support/tls-client.ts';
import { bootstrapOf, pair, tlsListener } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

describe('a certificate', () => {
  let folder: CertificateFolder;
  let ca: TestCertificate;
  let alice: TestCertificate;
  let weir: WeirProcess;
  let ports: Map<string, number>;

  before(async () => {
    folder = new CertificateFolder();
    ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('own', { issuer: ca, altNames: 'DNS:a.example' });
    alice = await folder.make('alice', { issuer: ca });
    const answering = (text: string, tls_context: object = {}): object => ({
      match: { prefix: '/', tls_context },
      direct_response: { status: 200, body: { inline_string: text } },
    });
    const routes = [
      answering('validated', { presented: true, validated: true }),
      answering('presented', { presented: true }),
      answering('anonymous', { presented: false }),
    ];
    const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    const trusted = { trusted_ca: { filename: ca.certificatePath } };
    const listeners = [
      tlsListener('asking', {
        common: { tls_certificates: [pair(own)], validation_context: trusted },
        http: { route_config },
      }),
      tlsListener('plain', { common: { tls_certificates: [pair(own)] }, http: { route_config } }),
    ];
    weir = await startWeir({ configYaml: bootstrapOf(listeners) });
    ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
  });

  after(async () => {
    await weir?.stop();
    folder?.[Symbol.dispose]();
  });

  const answerOf = async (listener: string, options: ConnectionOptions = {}): Promise<string | undefined> =>
    (await getOverTls(ports.get(listener)!, { ca: ca.certificate, ...options })).split('\r\n\r\n')[1];

  it('chooses by whether there is one, and whether it was held against something', async () => {
    assert.equal(await answerOf('asking', { cert: alice.certificate, key: alice.key }), 'validated');
    assert.equal(await answerOf('asking'), 'anonymous');
  });

  it('that nobody has asked for is none', async () => {
    assert.equal(await answerOf('plain', { cert: alice.certificate, key: alice.key }), 'anonymous');
  });
});

test('what a filter says of a request chooses its route, once the filter has it chosen anew', async (t) => {
  const conditions: RouteConditions = {
    headers: [],
    queryParameters: [],
    metadata: [
      {
        namespace: 'test',
        path: ['tier'],
        value: { kind: 'string', match: { kind: 'exact', value: 'gold', ignoresCase: false } },
        isInverted: false,
      },
    ],
    fraction: null,
  };
  const saying = (text: string) => ({ kind: 'direct-response', status: 200, body: Buffer.from(text) }) as const;
  const routes = [routeFor('/', saying('gold'), { conditions }), routeFor('/', saying('others'))];
  const { client } = await proxyWith(
    t,
    1,
    [
      (callbacks) => ({
        decodeHeaders: (head) => {
          callbacks.addMetadata('test', { tier: head.headerByName('x-tier') ?? '' });
          if (head.headerByName('x-settle') !== undefined) callbacks.settleRequestHead();
          return 'continue';
        },
      }),
    ],
    undefined,
    { routeTable: routeTable(routes) },
  );
  const answerTo = async (...lines: string[]): Promise<string> => {
    client.write(`${['GET / HTTP/1.1', 'host: h', ...lines].join('\r\n')}\r\n\r\n`);
    return (await client.response()).body;
  };
  assert.equal(await answerTo('x-tier: gold', 'x-settle: 1'), 'gold');
  assert.equal(await answerTo('x-tier: silver', 'x-settle: 1'), 'others');
  assert.equal(await answerTo('x-tier: gold'), 'others');
});
