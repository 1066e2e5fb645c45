// Filter chains chosen by a decision tree: by addresses, by what TLS clients announce and what PROXY headers bring, by names that
// are made for each connection; and how trees change while connections go on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bootstrap } from '../../../src/library/index.ts';
import { httpFilter, type Json, type JsonObject, listenerWith, socketAddress } from '../../support/bootstrap.ts';
import { CertificateFolder } from '../../support/certificates.ts';
import { byServerName, bySource, byValue, networkInput, toChain, toFormattedChain } from '../../support/chain-trees.ts';
import { bootstrapOf, createProxy } from '../../support/embedded.ts';
import { untilEqual } from '../../support/eventually.ts';
import { proxyV2 } from '../../support/proxy-header.ts';
import { getOverTls, isResumed, newSession, shownSubject } from '../../support/tls-client.ts';
import { pair, tlsSocket } from '../../support/tls-config.ts';
import { WireClient } from '../../support/wire.ts';

type WeirProxy = Awaited<ReturnType<typeof createProxy>>;

const ONE = '127.0.0.83';
const OTHER = '127.0.0.84';
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

/** Says its name. */
function chain(name: string, fields: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: name } } }];
  const filters = [httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } })];
  return { name, filters, ...fields };
}

function chosenBy(tree: JsonObject, chains: readonly Json[], fields: JsonObject = {}): Bootstrap {
  const address = socketAddress('127.0.0.1', 0);
  const own = { name: 'main', address, stat_prefix: 'main', filter_chains: chains, filter_chain_matcher: tree };
  return bootstrapOf([listenerWith([], { ...own, ...fields })], []) as Bootstrap;
}

function from(ip: string, proxy: WeirProxy): WireClient {
  return new WireClient(proxy.listeners.get('main')!.port, '127.0.0.1', ip);
}

/** @returns the name of the chain, and whether its connection goes on; empty where no chain has taken it. */
async function ask(client: WireClient): Promise<string> {
  const { head, body } = await client.write(GET).response();
  return /^connection: close\r$/im.test(head) ? `${body}, the last` : body;
}

/** Of a connection of its own. */
async function chainOf(ip: string, proxy: WeirProxy, first: Buffer = Buffer.alloc(0)): Promise<string> {
  const client = from(ip, proxy);
  if (first.length > 0) client.socket.write(first);
  const body = await ask(client);
  client.close();
  return body;
}

test('addresses lead to chains, those that lead nowhere to the default one, and a name that no chain has to none', async () => {
  const tree = bySource({ [`${ONE}/32`]: toChain('one'), '127.0.0.0/28': toChain('nobody') });
  const last = { default_filter_chain: chain('last') };
  await using proxy = await createProxy(chosenBy(tree, [chain('one'), chain('two')], last), { concurrency: 2 });
  assert.equal(await chainOf(ONE, proxy), 'one');
  assert.equal(await chainOf(OTHER, proxy), 'last');
  assert.equal(await from('127.0.0.1', proxy).rest(), '');
  await untilEqual(1, () => proxy.stats.value('listener.main.no_filter_chain_match'), 'connections without a chain');
});

test('a tree may look at ports, and lead to trees; a connection that nothing takes is closed and counted', async () => {
  const predicate = {
    input: networkInput('DestinationPortInput'),
    value_match: { safe_regex: { google_re2: {}, regex: '[0-9]+' } },
  };
  const tree = {
    matcher_list: {
      matchers: [
        {
          predicate: { single_predicate: predicate },
          on_match: { matcher: byValue('SourceIPInput', { [ONE]: toChain('one') }) },
        },
        { predicate: { single_predicate: predicate }, on_match: { ...toChain('two'), keep_matching: true } },
      ],
    },
  };
  await using proxy = await createProxy(chosenBy(tree, [chain('one'), chain('two')]));
  assert.equal(await chainOf(ONE, proxy), 'one');
  assert.equal(await from(OTHER, proxy).rest(), '');
  await untilEqual(1, () => proxy.stats.value('listener.main.no_filter_chain_match'), 'connections without a chain');
});

test('what a PROXY header brings is what trees look at', async () => {
  const fields = {
    listener_filters: [
      {
        name: 'envoy.filters.listener.proxy_protocol',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
          rules: [{ tlv_type: 0xe1, on_tlv_present: { key: 'tenant' } }],
        },
      },
    ],
  };
  const tenant = {
    name: 'tenant',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput',
      filter: 'envoy.filters.listener.proxy_protocol',
      path: [{ key: 'tenant' }],
    },
  };
  const tree = {
    matcher_tree: { input: tenant, exact_match_map: { map: { blue: toChain('blue') } } },
    on_no_match: { matcher: bySource({ '10.1.0.0/16': toChain('ten') }) },
  };
  await using proxy = await createProxy(chosenBy(tree, [chain('blue'), chain('ten')], fields));
  const header = (firstByte: number, secondByte: number, tlv: string) => {
    const addresses = Buffer.from([firstByte, secondByte, 0, 9, 10, 0, 0, 1, 0, 1, 0, 2]);
    return proxyV2(0x21, 0x11, Buffer.concat([addresses, Buffer.from([0xe1, 0, tlv.length]), Buffer.from(tlv)]));
  };
  assert.equal(await chainOf(ONE, proxy, header(10, 2, 'blue')), 'blue');
  assert.equal(await chainOf(ONE, proxy, header(10, 1, 'red')), 'ten');
});

test('a chain may have the name that a format makes of the connection', async () => {
  const format = { text_format_source: { inline_string: 'for %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } };
  const chains = [chain(`for ${ONE}`), chain('for –')];
  await using proxy = await createProxy(chosenBy({ on_no_match: toFormattedChain(format) }, chains));
  assert.equal(await chainOf(ONE, proxy), `for ${ONE}`);
  assert.equal(await from(OTHER, proxy).rest(), '');
  const beyondAscii = { text_format_source: { inline_string: 'for –' } };
  await proxy.applyBootstrap(chosenBy({ on_no_match: toFormattedChain(beyondAscii) }, chains));
  assert.equal(Buffer.from(await chainOf(OTHER, proxy), 'latin1').toString(), 'for –');
});

test('server names lead to chains with certificates of their own, whose sessions go on nowhere else', async () => {
  using folder = new CertificateFolder();
  const secured = async (name: string): Promise<JsonObject> => {
    const certificate = await folder.make(name, { altNames: `DNS:${name}.example` });
    return chain(name, { transport_socket: tlsSocket({ tls_certificates: [pair(certificate)] }) as JsonObject });
  };
  const tree = byServerName({ 'one.example': toChain('one'), '*.example': toChain('many') });
  const chains = [await secured('one'), await secured('many')];
  await using proxy = await createProxy(chosenBy(tree, chains), { concurrency: 2 });
  const { port } = proxy.listeners.get('main')!;
  const options = (servername: string) => ({ rejectUnauthorized: false, servername });
  assert.equal(await shownSubject(port, options('one.example')), 'CN=one');
  assert.equal(await shownSubject(port, options('a.b.example')), 'CN=many');
  assert.match(await getOverTls(port, options('x.example')), /many$/);
  assert.equal(proxy.stats.value('tls_inspector.tls_found'), 3);
  await assert.rejects(shownSubject(port, options('other.test')));
  // The same name at another chain: what one has let in is no guest of the other.
  const sources = { [`${ONE}/32`]: toChain('one'), [`${OTHER}/32`]: toChain('many') };
  await proxy.applyBootstrap(chosenBy(bySource(sources), chains));
  const fromIp = (localAddress: string) => ({ ...options('one.example'), localAddress });
  const session = await newSession(port, fromIp(ONE));
  assert.equal(await isResumed(port, session, fromIp(ONE)), true);
  assert.equal(await isResumed(port, session, fromIp(OTHER)), false);
});

test('another tree takes the place of the former one, and connections go on', async () => {
  const chains = [chain('one'), chain('two')];
  const first = bySource({ [`${ONE}/32`]: toChain('one'), [`${OTHER}/32`]: toChain('two') });
  const options = { concurrency: 2, drainStrategy: 'immediate' } as const;
  await using proxy = await createProxy(chosenBy(first, chains), options);
  const kept = from(ONE, proxy);
  assert.equal(await ask(kept), 'one');
  const second = bySource({ [`${ONE}/32`]: toChain('two'), [`${OTHER}/32`]: toChain('one') });
  await proxy.applyBootstrap(chosenBy(second, chains));
  assert.equal(proxy.stats.value('listener_manager.listener_in_place_updated'), 1);
  assert.equal(proxy.stats.value('listener_manager.total_filter_chains_draining'), 0);
  assert.equal(await ask(kept), 'one');
  for (let again = 0; again < 4; again += 1) {
    assert.equal(await chainOf(ONE, proxy), 'two');
    assert.equal(await chainOf(OTHER, proxy), 'one');
  }
  // Criteria may take its place, too: the chain that stays has none.
  const criteria = { source_prefix_ranges: [{ address_prefix: OTHER, prefix_len: 32 }] };
  const { filter_chain_matcher: _, ...withoutTree } = listenerWith([], {
    name: 'main',
    address: socketAddress('127.0.0.1', 0),
    stat_prefix: 'main',
    filter_chains: [chain('one'), chain('three', { filter_chain_match: criteria })],
  });
  await proxy.applyBootstrap(bootstrapOf([withoutTree as JsonObject], []) as Bootstrap);
  assert.equal(proxy.stats.value('listener_manager.listener_in_place_updated'), 2);
  assert.equal(await chainOf(ONE, proxy), 'one');
  assert.equal(await chainOf(OTHER, proxy), 'three');
  assert.equal(await ask(kept), 'one');
  kept.close();
});
