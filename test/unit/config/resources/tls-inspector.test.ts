// What filter chains say of TLS clients, and the listener filter that finds it out.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListenerSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  type Json,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';
import { TLS_INSPECTOR as PLAIN_TLS_INSPECTOR } from '../../../support/listeners.ts';

const AT = 'static_resources.listeners[0]';
const CHAIN = `${AT}.filter_chains[0]`;
const CHAIN_1 = `${AT}.filter_chains[1]`;
const TLS_INSPECTOR: JsonObject = { name: 'envoy.filters.listener.tls_inspector' };

function settingsOf(listener: JsonObject): ListenerSettings {
  return mustLoad(withListeners(listener)).listeners[0]!;
}

function errorsOf(...listeners: Json[]): string[] {
  return faultTexts(load(withListeners(...listeners)));
}

/** A filter chain for each set of criteria. */
function chains(...matches: readonly JsonObject[]): JsonObject {
  const filter_chains = matches.map((match) => ({ filter_chain_match: match, filters: [tcpFilter({})] }));
  return listenerWith([], { filter_chains });
}

describe('criteria of filter chains', () => {
  it('of TLS are names of servers, transports and protocols', () => {
    const match = {
      transport_protocol: 'tls',
      application_protocols: ['h2', 'http/1.1'],
      server_names: ['WWW.Example.com', '*.example.com'],
    };
    const settings = settingsOf({ ...chains(match), listener_filters: [TLS_INSPECTOR] });
    const { transportProtocol, applicationProtocols, serverNames } = settings.filterChains[0]!.match;
    assert.equal(transportProtocol, 'tls');
    assert.deepEqual(applicationProtocols, ['h2', 'http/1.1']);
    assert.deepEqual(serverNames, ['www.example.com', '*.example.com']);
    assert.deepEqual(errorsOf(chains({ transport_protocol: 'quic' })), [
      `${CHAIN}.filter_chain_match.transport_protocol: transport_protocol quic is not supported by this build: there is no QUIC`,
    ]);
  });

  it('of server names have wildcards for whole labels at the front only', () => {
    const names = ['*', '*w.test', 'w.*', 'a.*.test', '*.*.test', '', '.test', 'a b', 'ä.test', '*.', '*.test'];
    const middle = 'may have a wildcard as its first label only, as in *.example.com';
    const unknown = 'is no name that a client can ask for';
    const at = `${CHAIN}.filter_chain_match.server_names`;
    assert.deepEqual(errorsOf(chains({ server_names: names })), [
      `${at}[0]: "*" is not needed: a chain without server names takes all`,
      `${at}[1]: "*w.test" ${middle}`,
      `${at}[2]: "w.*" ${middle}`,
      `${at}[3]: "a.*.test" ${middle}`,
      `${at}[4]: "*.*.test" ${middle}`,
      `${at}[5]: "" is no server name; without any, a chain takes all`,
      `${at}[6]: ".test" ${unknown}`,
      `${at}[7]: "a b" ${unknown}`,
      `${at}[8]: "ä.test" ${unknown}`,
      `${at}[9]: "*." ${unknown}`,
    ]);
  });
});

describe('the TLS inspector', () => {
  const typed = (fields: JsonObject): JsonObject => ({
    name: 'tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector',
      ...fields,
    },
  });
  const withFilters = (...listener_filters: JsonObject[]): JsonObject =>
    listenerWith([tcpFilter({})], { listener_filters });

  it('reads its limits, and which fingerprints it makes', () => {
    const filter = typed({
      initial_read_buffer_size: 512,
      max_client_hello_size: 1000,
      close_connection_on_client_hello_parsing_errors: true,
      enable_ja4_fingerprinting: true,
    });
    assert.deepEqual(settingsOf(withFilters(filter)).listenerFilters, [
      {
        kind: 'tls-inspector',
        maxClientHelloBytes: 1000,
        refusesMalformed: true,
        makesJa3: false,
        makesJa4: true,
      },
    ]);
    const [ja3] = settingsOf(withFilters(typed({ enable_ja3_fingerprinting: true }))).listenerFilters;
    assert.deepEqual(ja3, { ...PLAIN_TLS_INSPECTOR, makesJa3: true });
    assert.deepEqual(settingsOf(withFilters(TLS_INSPECTOR)).listenerFilters, [PLAIN_TLS_INSPECTOR]);
    assert.deepEqual(settingsOf(withFilters({ name: 'envoy.listener.tls_inspector' })).listenerFilters, [
      PLAIN_TLS_INSPECTOR,
    ]);
  });

  const warning = `${CHAIN_1}.filter_chain_match: is decided by what TLS clients announce, so the listener filter tls_inspector is added`;

  it('is added, with a warning, where a filter chain cannot be chosen without it', () => {
    for (const match of [
      { transport_protocol: 'tls' },
      { server_names: ['a.test'] },
      { application_protocols: ['h2'] },
    ]) {
      const listener = chains({ destination_port: 7 }, match);
      const result = load(
        withListeners({ ...listener, listener_filters: [{ name: 'envoy.listener.http_inspector' }] }),
      );
      assert.deepEqual(result.bootstrap!.listeners[0]!.listenerFilters, [
        { kind: 'http-inspector' },
        PLAIN_TLS_INSPECTOR,
      ]);
      assert.ok(faultTexts(result, 'warning').includes(warning));
    }
  });

  it('is not where it stands already, or where TLS is not asked for', () => {
    const named = load(
      withListeners({ ...chains({}, { server_names: ['a.test'] }), listener_filters: [TLS_INSPECTOR] }),
    );
    const raw = { transport_protocol: 'raw_buffer', application_protocols: ['http/1.1'] };
    const plain = load(withListeners(chains({}, raw)));
    for (const result of [named, plain]) assert.ok(!faultTexts(result, 'warning').includes(warning));
    assert.deepEqual(named.bootstrap!.listeners[0]!.listenerFilters, [PLAIN_TLS_INSPECTOR]);
    assert.deepEqual(plain.bootstrap!.listeners[0]!.listenerFilters, []);
  });
});
