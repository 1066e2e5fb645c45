// Listeners that hand connections over, and listeners that only get what others hand over.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListenerSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  socketAddress,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0]';
const LISTENER_FILTERS = 'type.googleapis.com/envoy.extensions.filters.listener';
const ORIGINAL_DST = {
  name: 'envoy.filters.listener.original_dst',
  typed_config: { '@type': `${LISTENER_FILTERS}.original_dst.v3.OriginalDst` },
};
const PROXY_PROTOCOL = {
  name: 'envoy.filters.listener.proxy_protocol',
  typed_config: { '@type': `${LISTENER_FILTERS}.proxy_protocol.v3.ProxyProtocol` },
};

function settingsOf(fields: JsonObject): ListenerSettings {
  return mustLoad(withListeners(listenerWith([tcpFilter({})], fields))).listeners[0]!;
}

describe('a listener', () => {
  it('hands over by use_original_dst, behind its other filters, and looks once where connections were meant to go', () => {
    const kinds = (fields: JsonObject): unknown[] => {
      const { handsOver, listenerFilters } = settingsOf(fields);
      return [handsOver, ...listenerFilters.map(({ kind }) => kind)];
    };
    assert.deepEqual(kinds({}), [false]);
    assert.deepEqual(kinds({ use_original_dst: false }), [false]);
    assert.deepEqual(kinds({ use_original_dst: true }), [true, 'original-dst']);
    const both = { use_original_dst: true, listener_filters: [PROXY_PROTOCOL] };
    assert.deepEqual(kinds(both), [true, 'proxy-protocol', 'original-dst']);
    assert.deepEqual(kinds({ use_original_dst: true, listener_filters: [ORIGINAL_DST] }), [true, 'original-dst']);
    assert.deepEqual(kinds({ listener_filters: [ORIGINAL_DST] }), [false, 'original-dst']);
  });

  it('binds to no port by either field', () => {
    assert.equal(settingsOf({}).bindsToPort, true);
    assert.equal(settingsOf({ bind_to_port: true, deprecated_v1: {} }).bindsToPort, true);
    assert.equal(settingsOf({ bind_to_port: false }).bindsToPort, false);
    assert.equal(settingsOf({ deprecated_v1: { bind_to_port: false } }).bindsToPort, false);
  });

  it('that binds to no port has IP addresses, with ports', () => {
    const unbound = (address: JsonObject, ...others: JsonObject[]) => {
      const additional_addresses = others.map((other) => ({ address: other }));
      return load(withListeners(listenerWith([tcpFilter({})], { bind_to_port: false, address, additional_addresses })));
    };
    const ip = socketAddress('10.0.0.1', 80);
    assert.deepEqual(faultTexts(unbound(ip, { pipe: { path: '/run/a' } })), [
      `${AT}.additional_addresses[0].address: a listener that binds to no port is found by IP addresses alone`,
    ]);
    assert.deepEqual(faultTexts(unbound(socketAddress('10.0.0.1', 0)), 'warning'), [
      `${AT}.address: no connection is meant for port 0`,
    ]);
    assert.deepEqual(faultTexts(unbound(ip), 'warning'), []);
  });
});
