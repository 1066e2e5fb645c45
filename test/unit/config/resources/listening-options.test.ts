// What the sockets of a listener begin with, and which of its options are for accepted sockets instead.

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
  socketAddress,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0]';
const MARK = { level: 1, name: 36, int_value: 7 };
const NO_DELAY = { level: 6, name: 1, int_value: 0 };
const MARKED = { level: 1, name: 36, value: 7 };
const V6 = 'SOCKET_IP_VERSION_IPV6';

function listener(fields: JsonObject): Json {
  return listenerWith([tcpFilter({})], fields);
}

function settingsOf(fields: JsonObject): ListenerSettings {
  return mustLoad(withListeners(listener(fields))).listeners[0]!;
}

describe('the sockets of a listener', () => {
  it('begin with nothing by default', () => {
    assert.ok(!('listeningOptions' in settingsOf({})));
    assert.ok(!('listeningOptions' in settingsOf({ transparent: false, freebind: false, socket_options: [NO_DELAY] })));
  });

  it('take what has to be set before, after, and when they listen', () => {
    const options = ['STATE_LISTENING', 'STATE_BOUND', 'STATE_PREBIND'].map((state, name) => ({
      ...MARK,
      name,
      state,
    }));
    const { listeningOptions } = settingsOf({ socket_options: options, tcp_fast_open_queue_length: 5 });
    assert.deepEqual(listeningOptions, [
      {
        beforeBind: [{ level: 1, name: 2, value: 7 }],
        afterBind: [{ level: 1, name: 1, value: 7 }],
        afterListen: [
          { level: 6, name: 23, value: 5 },
          { level: 1, name: 0, value: 7 },
        ],
      },
    ]);
  });

  it('are transparent and bound freely by the options of their family', () => {
    const { listeningOptions } = settingsOf({
      transparent: true,
      freebind: true,
      additional_addresses: [{ address: socketAddress('::1', 81) }],
    });
    assert.deepEqual(
      listeningOptions!.map((options) => options!.beforeBind.map(({ level, name }) => `${level}/${name}`)),
      [
        ['0/19', '0/15'],
        ['41/75', '41/78'],
      ],
    );
  });

  it('have options of their own where their address does, perhaps none', () => {
    const { listeningOptions } = settingsOf({
      socket_options: [MARK, { ...MARK, name: 8, ip_version: V6 }],
      additional_addresses: [
        { address: socketAddress('::1', 81) },
        { address: socketAddress('127.0.0.1', 82), socket_options: {} },
        {
          address: socketAddress('127.0.0.1', 83),
          socket_options: { socket_options: [{ ...NO_DELAY, int_value: 1 }] },
        },
      ],
    });
    assert.deepEqual(
      listeningOptions!.map((options) => options?.beforeBind),
      [[MARKED], [MARKED, { level: 1, name: 8, value: 7 }], undefined, [{ level: 6, name: 1, value: 1 }]],
    );
  });

  it('are not what has options that accepted sockets are given', () => {
    const { socketOptions, listeningOptions } = settingsOf({
      socket_options: [NO_DELAY, MARK, { level: 6, name: 1, int_value: 1, ip_version: V6 }],
    });
    assert.equal(socketOptions.noDelay, false);
    assert.deepEqual(listeningOptions, [{ beforeBind: [MARKED], afterBind: [], afterListen: [] }]);
  });

  it('have none of it on a unix socket, with a warning, nor for datagrams', () => {
    const pipe = listener({ address: { pipe: { path: '/run/a' } }, socket_options: [MARK], transparent: true });
    assert.deepEqual(faultTexts(load(withListeners(pipe)), 'warning'), [
      `${AT}.socket_options: have no effect on the unix socket /run/a`,
    ]);
    const datagram = listener({ socket_options: [{ ...NO_DELAY, type: { datagram: {} } }] });
    assert.deepEqual(faultTexts(load(withListeners(datagram)), 'warning'), [
      `${AT}.socket_options[0]: has no effect: it is for datagrams`,
    ]);
  });
});
