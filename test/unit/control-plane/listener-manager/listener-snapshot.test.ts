// What a listener is given on its way to the workers: stats of which names, and limits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Holdings } from '../../../../src/control-plane/holdings.ts';
import { FilterChains } from '../../../../src/control-plane/listener-manager/filter-chains.ts';
import { makeListenerSnapshot } from '../../../../src/control-plane/listener-manager/listener-snapshot.ts';
import { TicketSecret } from '../../../../src/control-plane/listener-manager/ticket-secret.ts';
import type { NetworkFilterSnapshot } from '../../../../src/snapshot/index.ts';
import {
  httpFilter,
  type JsonObject,
  listenerWith,
  mustLoad,
  ROUTER,
  socketAddress,
  tapFilter,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';
import { NO_FILTERS_LEASED } from '../../../support/no-filters.ts';
import { NO_ROUTES_LEASED } from '../../../support/no-routes.ts';
import { NO_SECRETS_LEASED } from '../../../support/no-secrets.ts';
import { statsFixture } from '../../../support/stats.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters';
const GLOBAL_RECORD = 640;

interface Options {
  readonly concurrency?: number;
  readonly connectionLimit?: number;
}

function snapshotOf(listener: JsonObject, { concurrency = 2, connectionLimit }: Options = {}) {
  const { store: stats, owner: memory } = statsFixture();
  const before = memory.recordAllocator.usedRecords;
  const settings = mustLoad(withListeners(listener)).listeners[0]!;
  const leases = { routes: NO_ROUTES_LEASED, filters: NO_FILTERS_LEASED, secrets: NO_SECRETS_LEASED };
  const of = { globalRecord: GLOBAL_RECORD, ticketSecret: new TicketSecret(), ...leases };
  const deps = { ...of, concurrency, connectionLimit };
  const chains = new FilterChains({ ...deps, stats, memory });
  chains.replace(settings);
  const holdings = new Holdings({ stats, memory });
  const snapshot = makeListenerSnapshot(3, settings, chains.current, { ...deps, holdings });
  /** Whether the counter of this name is the one at a cell. */
  const isAt = (name: string, cell: number): boolean => {
    const value = stats.value(name);
    stats.cells.add(cell, 1);
    return value !== undefined && stats.value(name) === value + 1;
  };
  return { snapshot, stats, isAt, records: memory.recordAllocator.usedRecords - before };
}

function limitFilter(fields: JsonObject): JsonObject {
  const type = `${TYPES}.network.connection_limit.v3.ConnectionLimit`;
  return { name: 'limit', typed_config: { '@type': type, stat_prefix: 'few', ...fields } };
}

function proxyProtocol(statPrefix: string): JsonObject {
  const type = `${TYPES}.listener.proxy_protocol.v3.ProxyProtocol`;
  return { name: 'proxy', typed_config: { '@type': type, stat_prefix: statPrefix } };
}

const ORIGINAL_DST: JsonObject = {
  name: 'original',
  typed_config: { '@type': `${TYPES}.listener.original_dst.v3.OriginalDst` },
};

describe('the snapshot of a listener', () => {
  it('has stats under its address, for each worker, and for the main thread', () => {
    const { snapshot, stats, isAt } = snapshotOf(
      listenerWith([tcpFilter({})], { address: socketAddress('::1', 10000) }),
    );
    assert.equal(snapshot.id, 3);
    const prefix = 'listener.[__1]_10000';
    assert.ok(isAt(`${prefix}.downstream_cx_total`, snapshot.statBlock));
    assert.equal(snapshot.workerStatBlocks.length, 2);
    for (const [index, cell] of snapshot.workerStatBlocks.entries()) {
      assert.ok(isAt(`${prefix}.worker_${index}.downstream_cx_total`, cell), `${index}`);
    }
    assert.equal(stats.value(`${prefix}.main_thread.downstream_cx_total`), 0);
  });

  it('has them under its own prefix where it has one', () => {
    const { snapshot, isAt } = snapshotOf(listenerWith([tcpFilter({})], { stat_prefix: 'a:b' }));
    assert.ok(isAt('listener.a_b.downstream_cx_total', snapshot.statBlock));
  });

  it('has stats for the filter of each chain, and of HTTP for each listener, too', () => {
    const { snapshot, isAt } = snapshotOf({
      ...listenerWith([], { stat_prefix: 'one' }),
      filter_chains: [
        { filters: [httpFilter({ stat_prefix: 'in' })], filter_chain_match: { destination_port: 1 } },
        { filters: [tcpFilter({ stat_prefix: 'raw' })] },
      ],
      default_filter_chain: { filters: [tcpFilter({ stat_prefix: 'rest' })] },
    });
    const [http, tcp] = snapshot.filterChains;
    const rest = snapshot.defaultFilterChain!;
    assert.ok(isAt('http.in.downstream_cx_total', http!.filterStatBlock));
    assert.ok(isAt('listener.one.http.in.downstream_rq_1xx', http!.listenerHttpStatBlock));
    assert.ok(isAt('tcp.raw.downstream_cx_total', tcp!.filterStatBlock));
    assert.ok(isAt('tcp.rest.downstream_cx_total', rest.filterStatBlock));
    assert.deepEqual([tcp!.listenerHttpStatBlock, rest.listenerHttpStatBlock], [0, 0]);
    const { settings } = snapshot;
    assert.deepEqual([http!.settings, tcp!.settings], settings.filterChains);
    assert.equal(rest.settings, settings.defaultFilterChain);
  });

  it('has counters of its HTTP filters, of those of upgrades, too, and of what may be wrong with HTTP', () => {
    const filters: JsonObject = { http_filters: [tapFilter('a'), ROUTER] };
    const upgrade: JsonObject = { upgrade_type: 'websocket', filters: [tapFilter('b'), ROUTER] };
    const plain: JsonObject = { upgrade_type: 'plain' };
    for (const fields of [filters, { upgrade_configs: [plain, upgrade] }]) {
      const { snapshot, stats, isAt } = snapshotOf(listenerWith([httpFilter({ stat_prefix: 'in', ...fields })]));
      const filterCounters = snapshot.filterChains[0]!.filterCounters!;
      assert.deepEqual(Object.keys(filterCounters), ['tap.rq_tapped']);
      assert.ok(isAt('http.in.tap.rq_tapped', filterCounters['tap.rq_tapped']!));
      assert.equal(stats.value('http1.response_flood'), 0);
    }
    const { snapshot, stats } = snapshotOf(listenerWith([tcpFilter({})]));
    assert.deepEqual(snapshot.filterChains[0]!.filterCounters, {});
    assert.equal(stats.value('http1.response_flood'), undefined);
  });

  it('has no default chain where the configuration has none', () => {
    assert.equal(snapshotOf(listenerWith([tcpFilter({})])).snapshot.defaultFilterChain, null);
  });

  it('has stats and a count for each of its connection limits', () => {
    const { snapshot, isAt, records } = snapshotOf(
      listenerWith([limitFilter({ max_connections: 4 }), limitFilter({ max_connections: 2 }), tcpFilter({})]),
    );
    const [first, second] = snapshot.filterChains[0]!.networkFilters;
    const limitOf = ({ settings }: NetworkFilterSnapshot) =>
      (settings.settings as { maxConnections: number }).maxConnections;
    assert.deepEqual([limitOf(first!), limitOf(second!)], [4, 2]);
    assert.deepEqual(Object.keys(first!.cells), ['limited_connections', 'active_connections']);
    assert.ok(isAt('connection_limit.few.limited_connections', first!.cells.limited_connections!));
    assert.deepEqual(second!.cells, first!.cells);
    assert.notEqual(first!.countRecord, second!.countRecord);
    assert.ok(records > 0);
  });

  it('has stats for the PROXY protocol, with a prefix or without', () => {
    const { snapshot, isAt } = snapshotOf(
      listenerWith([tcpFilter({})], { listener_filters: [ORIGINAL_DST, proxyProtocol(''), proxyProtocol('edge')] }),
    );
    const [original, plain, edge] = snapshot.listenerFilters;
    assert.deepEqual(original, { settings: { kind: 'original-dst' }, statBlock: 0 });
    assert.ok(isAt('proxy_proto.not_found_allowed', plain!.statBlock));
    assert.ok(isAt('proxy_proto.edge.not_found_allowed', edge!.statBlock));
    assert.deepEqual([plain!.settings, edge!.settings], snapshot.settings.listenerFilters.slice(1));
  });

  it('has stats for inspectors, which those of all listeners share', () => {
    const names = ['tls_inspector', 'http_inspector'];
    const listener_filters = names.map((name) => ({ name: `envoy.filters.listener.${name}` }));
    const { snapshot, isAt } = snapshotOf(listenerWith([tcpFilter({})], { listener_filters }));
    const [tls, http] = snapshot.listenerFilters;
    assert.ok(isAt('tls_inspector.client_hello_too_large', tls!.statBlock));
    assert.ok(isAt('http_inspector.http10_found', http!.statBlock));
  });

  it('may be limited by the runtime at any time, by itself and with all others', () => {
    const { snapshot, records } = snapshotOf(listenerWith([tcpFilter({})]));
    const { globalLimit, limit } = snapshot;
    assert.deepEqual(globalLimit, {
      maxConnections: Number.POSITIVE_INFINITY,
      runtimeKey: 'overload.global_downstream_max_connections',
      recordAddress: GLOBAL_RECORD,
    });
    assert.equal(limit.maxConnections, Number.POSITIVE_INFINITY);
    assert.equal(limit.runtimeKey, 'proxy.resource_limits.listener.main.connection_limit');
    assert.ok(limit.recordAddress > 0);
    assert.equal(records, 1);
  });

  it('has the limit of the overload manager before that of the runtime, and none with others where it is to ignore that', () => {
    const listener = listenerWith([tcpFilter({})]);
    const limited = snapshotOf(listener, { connectionLimit: 50 }).snapshot.globalLimit;
    assert.deepEqual(limited, { maxConnections: 50, runtimeKey: '', recordAddress: GLOBAL_RECORD });
    const ignoring = snapshotOf({ ...listener, ignore_global_conn_limit: true }, { connectionLimit: 50 });
    assert.deepEqual(ignoring.snapshot.globalLimit, {
      maxConnections: Number.POSITIVE_INFINITY,
      runtimeKey: '',
      recordAddress: GLOBAL_RECORD,
    });
  });
});
