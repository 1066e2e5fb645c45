// Certificates, authorities and ticket keys by secret discovery, from a management server in every form of the protocol: who serves
// goes on, and nothing that is secret is told to anybody.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import {
  answerOf,
  bootstrap,
  CLUSTER,
  cluster,
  FORMS,
  type Form,
  LISTENER,
  listener,
  SECRET,
  serve,
} from '../support/discovered-proxy.ts';
import {
  ANYBODY,
  assertSecrecy,
  certified,
  dumped,
  from,
  inline,
  namingUpstream,
  portOf,
  secret,
  secured,
  securely,
  trusting,
  untilShown,
} from '../support/discovered-secrets.ts';
import { untilEqual } from '../support/eventually.ts';
import { getOverTls, isResumed, newSession, shownSubject } from '../support/tls-client.ts';
import { pair } from '../support/tls-config.ts';
import { startWeir } from '../support/weir-process.ts';

const [STATE, , CHANGES] = FORMS as [Form, Form, Form];

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
  for (const form of FORMS) {
    it(`come, change, are refused for themselves and stay: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      plane.set(SECRET, '1', [certified('server', one), certified('unasked', two)]);
      serve(plane, '1', [], [secured('in', { tls_certificate_sds_secret_configs: [from(form, 'server')] })]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
      assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
      assert.equal((await plane.answered(SECRET, '1')).error_detail, null);

      plane.set(SECRET, '2', [certified('server', two)]);
      assert.equal((await plane.answered(SECRET, '2')).error_detail, null);
      await untilShown(weir, 'in', 'two');

      plane.set(SECRET, '3', [secret('server', { tls_certificate: inline({ ...one, key: two.key }) })]);
      const { error_detail: refusal } = await plane.answered(SECRET, '3');
      assert.match(
        refusal!.message,
        /secret server: resources\[0\]\.tls_certificate\.private_key: the value is not the key of the certificate/,
      );
      await weir.untilStat('sds.server.update_rejected', 1);
      await untilShown(weir, 'in', 'two');
      const [shown, ...others] = await dumped(weir, 'active');
      assert.deepEqual([shown!.name, shown!.version_info, shown!.client_status, others], ['server', '2', 'NACKED', []]);
      assert.deepEqual([shown!.error_state!.version_info, await dumped(weir, 'warming')], ['3', []]);
      assert.match(shown!.error_state!.details, /private_key/);
      assert.match(JSON.stringify(shown!.secret), /\[redacted\]/);

      // What has gone at the server stays.
      plane.set(SECRET, '4', []);
      await plane.answered(SECRET, '4');
      await untilShown(weir, 'in', 'two');
      plane.set(SECRET, '5', [certified('server', one)]);
      await plane.answered(SECRET, '5');
      await untilShown(weir, 'in', 'one');
      assert.deepEqual((await dumped(weir, 'active'))[0]!.client_status, 'ACKED');
      assert.match(await weir.admin('/stats?filter=sds'), /sds\.server\.version_text: "5"/);
      const factory = 'listener.in.server_ssl_socket_factory.';
      await weir.untilStat(`${factory}ssl_context_update_by_sds`, 3);
      assert.equal(await weir.stat(`${factory}downstream_context_secrets_not_ready`), 0);
      assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
      assert.match(await weir.admin('/certs'), /"<inline>"/);
      assert.deepEqual(plane.violations, []);
      const asked = plane.requests.find(({ type_url }) => type_url.endsWith('.Secret'))!;
      assert.equal(asked.type_url.includes('envoy.api.v2.auth.'), form.generation === 'V2');
      await assertSecrecy(weir, plane, one.key, two.key);
    });
  }

  it('judge clients, also laid over what the context says, and make tickets', async (t) => {
    const plane = await ControlPlane.start(t);
    const keys = (...all: readonly Buffer[]): JsonObject => {
      return secret('tickets', {
        session_ticket_keys: { keys: all.map((key) => ({ inline_bytes: key.toString('base64') })) },
      });
    };
    const key = randomBytes(80);
    plane.set(SECRET, '1', [certified('server', one), trusting('trust', ca), keys(key)]);
    const certificates = { tls_certificate_sds_secret_configs: [from(STATE, 'server')] };
    const named = { match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'a.example' } }] };
    const combined = { default_validation_context: named, validation_context_sds_secret_config: from(STATE, 'trust') };
    const strict = { require_client_certificate: true };
    serve(
      plane,
      '1',
      [],
      [
        secured('mutual', { ...certificates, validation_context_sds_secret_config: from(STATE, 'trust') }, strict),
        secured('combined', { ...certificates, combined_validation_context: combined }, strict),
        secured('tickets', certificates, { session_ticket_keys_sds_secret_config: from(STATE, 'tickets') }),
      ],
    );
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane]) });
    const [mutual, both, tickets] = [
      await portOf(weir, 'mutual'),
      await portOf(weir, 'combined'),
      await portOf(weir, 'tickets'),
    ];
    const as = ({ certificate: cert, key: own }: TestCertificate) => ({ ...ANYBODY, cert, key: own });
    for (const port of [mutual, both]) {
      assert.match(await getOverTls(port, as(two)), /200 OK/);
      await assert.rejects(getOverTls(port, as(expired)));
    }
    const session = await newSession(tickets, ANYBODY);
    assert.equal(await isResumed(tickets, session, ANYBODY), true);
    plane.set(SECRET, '2', [certified('server', one), trusting('trust', expired), keys(randomBytes(80))]);
    await plane.answered(SECRET, '2');
    await weir.untilStat('listener.tickets.server_ssl_socket_factory.ssl_context_update_by_sds', 2);
    await weir.untilStat('listener.combined.server_ssl_socket_factory.ssl_context_update_by_sds', 2);
    await assert.rejects(getOverTls(both, as(two)));
    assert.equal(await isResumed(tickets, session, ANYBODY), false);
    await assertSecrecy(weir, plane, one.key, key.toString('base64'), key.toString('hex'));
  });

  it('hold up no other listener, and are told of while they are waited for', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.set(SECRET, '1', []);
    const tls = (name: string): JsonObject =>
      secured(name, { tls_certificate_sds_secret_configs: [from(STATE, name)] });
    serve(plane, '1', [], [secured('first', { tls_certificates: [pair(one)] as JsonObject[] })]);
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane]) });
    plane.set(LISTENER, '2', [
      tls('late'),
      secured('first', { tls_certificates: [pair(one)] as JsonObject[] }),
      listener('plain', 'a', { validate_clusters: false }),
    ]);
    await plane.answered(LISTENER, '2');
    await untilEqual(true, async () => (await weir.listeners()).has('plain'), 'the listener beside');
    assert.match(await weir.admin('/init_dump'), /"target SdsApi late"/);
    assert.equal((await weir.listeners()).has('late'), false);
    plane.set(SECRET, '2', [certified('late', two)]);
    await untilEqual(true, async () => (await weir.listeners()).has('late'), 'the listener');
    assert.equal(await shownSubject(await portOf(weir, 'late'), ANYBODY), 'CN=two');
    assert.equal(await weir.stat('listener.late.server_ssl_socket_factory.downstream_context_secrets_not_ready'), 0);
    // A listener that comes again as it was is left as it is, whatever its secret has become.
    plane.set(SECRET, '3', [certified('late', one)]);
    await untilShown(weir, 'late', 'one');
    plane.set(LISTENER, '3', [tls('late')]);
    await plane.answered(LISTENER, '3');
    assert.equal(await shownSubject(await portOf(weir, 'late'), ANYBODY), 'CN=one');
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
    assert.equal(await weir.stat('listener_manager.listener_in_place_updated'), 0);
    plane.set(LISTENER, '4', []);
    await untilEqual(0, async () => (await dumped(weir, 'active')).length, 'secrets that nobody wants');
    assert.equal(await weir.stat('sds.late.update_success'), undefined);
  });
});

describe('secrets of clusters', () => {
  it('are one for two clusters, are warmed for, and change for connections from then on', async (t) => {
    const plane = await ControlPlane.start(t);
    const upstream = await namingUpstream(t, one);
    const mutual = (name: string): JsonObject => ({
      ...cluster(name, upstream),
      max_requests_per_connection: 1,
      ...securely({
        tls_certificate_sds_secret_configs: [from(CHANGES, 'client')],
        validation_context_sds_secret_config: from(CHANGES, 'trust'),
      }),
    });
    plane.set(SECRET, '1', [trusting('trust', ca)]);
    serve(
      plane,
      '1',
      [cluster('none', upstream)],
      [listener('in', 'a', { validate_clusters: false }), listener('on', 'b', { validate_clusters: false })],
    );
    await using weir = await startWeir({ configYaml: bootstrap(CHANGES, [plane]) });
    plane.set(CLUSTER, '2', [mutual('a'), mutual('b')]);
    await plane.answered(CLUSTER, '2');
    await untilEqual(
      true,
      async () => (await weir.admin('/init_dump')).includes('SdsApi client'),
      'what is waited for',
    );
    assert.equal(await weir.stat('cluster_manager.warming_clusters'), 2);
    plane.set(SECRET, '2', [trusting('trust', ca), certified('client', one)]);
    await untilEqual('200 one', () => answerOf(weir, 'in'), 'the first cluster');
    await untilEqual('200 one', () => answerOf(weir, 'on'), 'the second cluster');
    assert.equal(plane.requests.filter(({ resource_names_subscribe: names }) => names.includes('client')).length, 1);
    plane.set(SECRET, '3', [trusting('trust', ca), certified('client', two)]);
    await untilEqual('200 two', () => answerOf(weir, 'in'), 'the other certificate');
    await untilEqual('200 two', () => answerOf(weir, 'on'), 'the other certificate');
    // A cluster that comes again as it was stays.
    plane.set(CLUSTER, '3', [mutual('a'), mutual('b'), cluster('none', upstream)]);
    await plane.answered(CLUSTER, '3');
    assert.equal(await weir.stat('cluster_manager.cluster_modified'), 0);
    plane.set(SECRET, '4', [trusting('trust', expired), certified('client', two)]);
    await untilEqual('503', async () => (await answerOf(weir, 'in')).slice(0, 3), 'the answer with another authority');
    assert.equal(await weir.stat('cluster.a.client_ssl_socket_factory.upstream_context_secrets_not_ready'), 0);
    assert.deepEqual(plane.violations, []);
    await assertSecrecy(weir, plane, one.key, two.key);
  });
});
