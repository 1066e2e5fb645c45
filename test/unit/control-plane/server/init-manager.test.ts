// What the start waits for.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InitManager } from '../../../../src/control-plane/server/init-manager.ts';
import { unready } from '../../../../src/control-plane/server/unready.ts';
import {
  clusterNamed,
  clusterSettings,
  listenerWith,
  mustLoad,
  socketAddress,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';
import { ManagedClusters } from '../../../support/managed-clusters.ts';

describe('an initialization', () => {
  it('is over with the last of its targets, in any order', () => {
    const init = new InitManager();
    assert.equal(init.phase, 'uninitialized');
    const [first, second, third] = ['first', 'second', 'third'].map((name) => init.add(name)) as [
      () => void,
      () => void,
      () => void,
    ];
    // Nothing is over before it has begun.
    third();
    init.begin();
    assert.deepEqual([init.phase, init.unready], ['initializing', ['first', 'second']]);
    second();
    second();
    assert.deepEqual([init.phase, init.unready], ['initializing', ['first']]);
    first();
    assert.deepEqual([init.phase, init.unready], ['initialized', []]);
  });

  it('without targets is over when it begins', () => {
    const init = new InitManager();
    init.begin();
    assert.equal(init.phase, 'initialized');
  });
});

describe('what is not initialized yet', () => {
  const { listeners, messages } = mustLoad(withListeners(listenerWith([tcpFilter({})])));
  const endpoint = { endpoint: { address: socketAddress('web.example', 80) } };
  const dns = clusterNamed('web', {
    type: 'STRICT_DNS',
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
  });

  it('are the server, its listeners, and clusters that look for their members', () => {
    const init = new InitManager();
    init.add('worker threads');
    const listenerIsReady = init.add('Listener-init-target main');
    using clusters = new ManagedClusters([clusterSettings(dns)]);
    const listenersAtStart = [[listeners[0]!, messages.listeners[0]!]] as const;
    const listenersNow = { dump: () => [], missing: () => ['RdsRouteConfigSubscription init web', 'SdsApi own'] };
    const sources = { init, clusters: clusters.manager, listeners: listenersNow, listenersAtStart };
    const shown = () => [...unready(sources)].map(({ component, name, targets }) => [component, name, ...targets]);
    const cluster = ['cluster', 'web', 'first resolution of web.example'];
    assert.deepEqual(shown(), [
      ['server', '', 'worker threads', 'Listener-init-target main'],
      ['listener', 'main', 'Listener-init-target main', 'RdsRouteConfigSubscription init web', 'SdsApi own'],
      cluster,
    ]);
    listenerIsReady();
    assert.deepEqual(shown(), [['server', '', 'worker threads'], cluster]);
  });

  it('are listeners that warm, once the server has started', () => {
    const init = new InitManager();
    init.begin();
    const record = (name: string, state: 'active' | 'warming') => ({
      name,
      message: messages.listeners[0]!,
      addedViaApi: true,
      version: '1',
      updatedMs: 0,
      state,
      error: '',
    });
    const dump = () => [record('old', 'active'), record('new', 'warming')];
    const shown = (at: InitManager) =>
      [
        ...unready({
          init: at,
          clusters: { warming: () => [] },
          listeners: { dump, missing: () => [] },
          listenersAtStart: [],
        }),
      ].map(({ component, name, targets }) => [component, name, targets]);
    const warming = ['listener', 'new', ['Listener-init-target new']];
    assert.deepEqual(shown(init), [warming]);
    // Those that discovery brings to the start as well.
    const starting = new InitManager();
    starting.add('LDS');
    starting.begin();
    assert.deepEqual(shown(starting), [['server', '', ['LDS']], warming]);
  });
});
