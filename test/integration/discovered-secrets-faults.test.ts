// Secrets by discovery that come late, are wrong or stay away: who lacks them waits, is counted, and serves when they come.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ServerCredentials } from '@grpc/grpc-js';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { bootstrap, CLUSTER, cluster, FORMS, type Form, SECRET, serve } from '../support/discovered-proxy.ts';
import {
  ANYBODY,
  certified,
  dumped,
  from,
  inline,
  namingUpstream,
  portOf,
  secret,
  secured,
  securely,
  stdoutLog,
  untilShown,
  untilTold,
  withStatic,
} from '../support/discovered-secrets.ts';
import { untilEqual } from '../support/eventually.ts';
import { getOverTls, shownSubject } from '../support/tls-client.ts';
import { pair, routesTo, tlsListener } from '../support/tls-config.ts';
import { replaceFile, secretFrom, secretResponse } from '../support/tls-files.ts';
import { startWeir } from '../support/weir-process.ts';

const [STATE] = FORMS as [Form];
const NOT_SUPPLIED = 'Secret_is_not_supplied_by_SDS';

let folder: CertificateFolder;
let ca: TestCertificate;
let one: TestCertificate;
let two: TestCertificate;
let expired: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  one = await folder.make('one', { issuer: ca, altNames: 'DNS:a.example' });
  two = await folder.make('two', { issuer: ca, altNames: 'DNS:a.example' });
  expired = await folder.make('expired', { days: -1 });
});
after(() => folder[Symbol.dispose]());

describe('secrets from a management server', () => {
  it('are waited for as long as the source says; then connections are closed and counted until they come', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.isSilent = true;
    const impatient = { initial_fetch_timeout: '0.2s' };
    const own = tlsListener('own', { common: { tls_certificates: [pair(one)] } });
    const missing = tlsListener('missing', {
      common: { tls_certificate_sds_secret_configs: [from(STATE, 'server', impatient)] },
      fields: { access_log: [stdoutLog('%DOWNSTREAM_TRANSPORT_FAILURE_REASON%')] },
    });
    const configYaml = withStatic(plane, [own, missing]);
    await using weir = await startWeir({ configYaml });
    await weir.untilStat('sds.server.init_fetch_timeout', 1);
    const port = await portOf(weir, 'missing');
    await assert.rejects(getOverTls(port, ANYBODY));
    const counter = 'listener.missing.server_ssl_socket_factory.downstream_context_secrets_not_ready';
    await weir.untilStat(counter, 1);
    assert.equal(await weir.stat('listener.missing.ssl.connection_error'), 0);
    await untilEqual(true, () => weir.output.stdout.includes(NOT_SUPPLIED), 'the log');
    assert.match(await getOverTls(await portOf(weir, 'own'), ANYBODY), /200 OK/);
    const [shown] = await dumped(weir, 'warming');
    assert.deepEqual(
      [shown!.name, shown!.version_info, shown!.client_status],
      ['server', 'uninitialized', 'REQUESTED'],
    );
    plane.isSilent = false;
    plane.set(SECRET, '1', [certified('server', one)]);
    await plane.answered(SECRET, '1');
    await untilShown(weir, 'missing', 'one');
    assert.equal(await weir.stat(counter), 1);
  });

  it('are refused for what is wrong with them, and told again as they were cost nothing', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.set(SECRET, '1', [certified('server', one)]);
    serve(plane, '1', [], [secured('in', { tls_certificate_sds_secret_configs: [from(STATE, 'server')] })]);
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane]) });
    const cases: readonly (readonly [fields: JsonObject, reason: RegExp])[] = [
      [{}, /secret "server" is no tls_certificate/],
      [{ validation_context: {} }, /secret "server" is no tls_certificate, but a validation_context/],
      [{ generic_secret: { secret: { inline_string: 'sesame' } } }, /is no tls_certificate, but a generic_secret/],
      [{ tls_certificate: {} }, /tls_certificate: needs certificate_chain and private_key, or pkcs12/],
      [{ tls_certificate: inline({ ...one, certificate: 'Kennwort' }) }, /certificate_chain: the value holds no cert/],
      [{ tls_certificate: inline({ ...one, key: 'Kennwort' }) }, /private_key: the value holds no private key in PEM/],
      [
        { tls_certificate: { ...inline(one), private_key: { filename: '/nowhere/key' } } },
        /private_key: "\/nowhere\/key" cannot be read: ENOENT/,
      ],
      [
        { tls_certificate: { ...inline(one), private_key_provider: { provider_name: 'p' } } },
        /private_key_provider: is not supported|private_key_provider: /,
      ],
    ];
    for (const [index, [fields, reason]] of cases.entries()) {
      const version = `bad-${index}`;
      plane.set(SECRET, version, [secret('server', fields)]);
      const { error_detail: refusal } = await plane.answered(SECRET, version);
      assert.match(refusal!.message, /^secret server: resources\[0\]/);
      assert.match(refusal!.message, reason);
    }
    await weir.untilStat('sds.server.update_rejected', cases.length);
    plane.setOdd(SECRET, 'odd', [[CLUSTER, { name: 'server' }]]);
    assert.match((await plane.answered(SECRET, 'odd')).error_detail!.message, /resources\[0\]: is no .*Secret/);
    assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
    const updates = 'listener.in.server_ssl_socket_factory.ssl_context_update_by_sds';
    plane.set(SECRET, '2', [certified('server', one)]);
    assert.equal((await plane.answered(SECRET, '2')).error_detail, null);
    assert.equal(await weir.stat(updates), 1);
    assert.equal((await dumped(weir, 'active'))[0]!.version_info, '2');
    // Clients may refuse it, but who is to say so at night?
    plane.set(SECRET, '3', [certified('server', expired)]);
    assert.equal((await plane.answered(SECRET, '3')).error_detail, null);
    await untilShown(weir, 'in', 'expired');
    await untilTold(weir, 'resources[0].tls_certificate.certificate_chain: the value expired on');
    const told = `${weir.output.stderr}${JSON.stringify(plane.requests)}${await weir.admin('/config_dump')}`;
    assert.doesNotMatch(told, /sesame|Kennwort/);
  });

  it('stay while their server is away, and change when it is there again', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.set(SECRET, '1', [certified('server', one)]);
    const configYaml = withStatic(plane, [
      tlsListener('in', { common: { tls_certificate_sds_secret_configs: [from(STATE, 'server')] } }),
    ]);
    await using weir = await startWeir({ configYaml });
    assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
    plane.stop();
    await weir.untilStat('control_plane.connected_state', 0);
    assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
    const again = await ControlPlane.start(t, plane.port);
    again.set(SECRET, '0', [certified('server', two)]);
    await untilShown(weir, 'in', 'two');
    assert.deepEqual(again.violations, []);
    const asked = again.requests.find(({ type_url }) => type_url.endsWith('.Secret'))!;
    assert.deepEqual([asked.version_info, asked.resource_names], ['1', ['server']]);
  });

  it('live as long as they are used where the server gives them a time', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.set(SECRET, '1', [certified('server', one)], '1s');
    serve(plane, '1', [], [secured('in', { tls_certificate_sds_secret_configs: [from(STATE, 'server')] })]);
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane]) });
    await untilTold(weir, 'has lived its time');
    assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
  });
});

describe('secrets of clusters', () => {
  it('that do not come in time fail its connections and checks, which are counted, until they come', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.isSilent = true;
    const upstream = await namingUpstream(t, one);
    const impatient = { initial_fetch_timeout: '0.2s' };
    const transport = securely({ tls_certificate_sds_secret_configs: [from(STATE, 'client', impatient)] });
    const check = {
      timeout: '5s',
      interval: '0.1s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      tcp_health_check: {},
    };
    const matched = { name: 'm', match: { mode: 'tls' }, ...transport };
    const metadata = { filter_metadata: { 'envoy.transport_socket_match': { mode: 'tls' } } };
    const { load_assignment: assigned, ...byMatch } = cluster('c', upstream);
    const [
      {
        lb_endpoints: [member],
      },
    ] = (assigned as { endpoints: [{ lb_endpoints: [JsonObject] }] }).endpoints;
    const clusters = [
      { ...cluster('a', upstream), ...transport },
      { ...cluster('b', upstream), ...transport, health_checks: [check] },
      {
        ...byMatch,
        transport_socket_matches: [matched],
        load_assignment: { cluster_name: 'c', endpoints: [{ lb_endpoints: [{ ...member!, metadata }] }] },
      },
    ] as JsonObject[];
    const http = { access_log: [stdoutLog('%UPSTREAM_TRANSPORT_FAILURE_REASON%')] };
    const listeners = ['a', 'b', 'c'].map((name) =>
      tlsListener(name, { common: { tls_certificates: [pair(one)] }, http: { ...routesTo(name), ...http } }),
    );
    await using weir = await startWeir({ configYaml: withStatic(plane, listeners, clusters) });
    const ask = async (name: string): Promise<string> =>
      (await getOverTls(await portOf(weir, name), ANYBODY)).slice(9, 12);
    assert.equal(await ask('a'), '503');
    assert.equal(await ask('c'), '503');
    await untilEqual(true, () => weir.output.stdout.includes(NOT_SUPPLIED), 'the log');
    for (const name of ['a', 'c']) {
      const counter = `cluster.${name}.client_ssl_socket_factory.upstream_context_secrets_not_ready`;
      assert.ok((await weir.stat(counter))! > 0);
    }
    await weir.untilStat('cluster.b.membership_healthy', 0);
    assert.ok((await weir.stat('cluster.b.client_ssl_socket_factory.upstream_context_secrets_not_ready'))! > 0);
    plane.isSilent = false;
    plane.set(SECRET, '1', [certified('client', two)]);
    for (const name of ['a', 'b', 'c']) await untilEqual('200', () => ask(name), `the answer of ${name}`);
    await weir.untilStat('cluster.b.membership_healthy', 1);
  });

  it('of a management server come from elsewhere, and let it be asked when they have', async (t) => {
    const credentials = ServerCredentials.createSsl(
      Buffer.from(ca.certificate),
      [{ cert_chain: Buffer.from(one.certificate), private_key: Buffer.from(one.key) }],
      true,
    );
    const plane = await ControlPlane.start(t, 0, credentials);
    const file = path.join(folder.path, 'plane.json');
    plane.set(SECRET, '1', [certified('server', two)]);
    serve(plane, '1', [], [secured('in', { tls_certificate_sds_secret_configs: [from(STATE, 'server')] })]);
    writeFileSync(file, secretResponse({ name: 'client', tls_certificate: inline({ ...one, key: two.key }) }));
    const server = securely({ tls_certificate_sds_secret_configs: [secretFrom('client', file) as JsonObject] });
    await using weir = await startWeir({
      configYaml: bootstrap(STATE, [plane], { server, source: { initial_fetch_timeout: '0.2s' } }),
    });
    assert.equal(plane.requests.length, 0);
    await weir.untilStat('sds.client.update_rejected', 1);
    replaceFile(file, secretResponse({ name: 'client', tls_certificate: inline(two) }));
    await untilEqual(true, async () => (await weir.listeners()).has('in'), 'the listener');
    await untilShown(weir, 'in', 'two');
    assert.deepEqual(plane.violations, []);
  });
});

describe('secrets from a file', () => {
  it('may come later than the proxy, and are read when the file is written in place', async () => {
    const file = path.join(folder.path, 'late.json');
    const configYaml = JSON.stringify({
      admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
      static_resources: {
        listeners: [
          tlsListener('in', { common: { tls_certificate_sds_secret_configs: [secretFrom('server', file)] } }),
        ],
      },
    });
    await using weir = await startWeir({ configYaml });
    const port = await portOf(weir, 'in');
    await assert.rejects(getOverTls(port, ANYBODY));
    writeFileSync(file, secretResponse({ name: 'other', tls_certificate: inline(one) }));
    await weir.untilStat('sds.server.update_rejected', 1);
    await untilTold(weir, 'late.json is refused: it holds no secret "server"');
    writeFileSync(file, secretResponse({ name: 'server', tls_certificate: inline(one) }));
    await untilShown(weir, 'in', 'one');
    assert.equal(await weir.stat('sds.server.update_failure'), 1);
  });
});
