// What is kept of a bootstrap to be shown: all of it, resource by resource, in the form that it has after the load.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Version } from '../../../../src/base/version.ts';
import { messageJson } from '../../../../src/config/proto/json-text/message-json.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { partsOf, textOf } from '../../../../src/config/proto/wire-parts.ts';
import { clusterNamed, httpFilter, listenerWith, mustLoad, withListeners } from '../../../support/bootstrap.ts';

const schema = protoSchema();
const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';
const MANAGER = 'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

function shown(typeName: string, bytes: Uint8Array): Record<string, never> {
  return JSON.parse([...messageJson(schema, schema.messageType(typeName), bytes)].join(''));
}

const SOFTWARE: Version = {
  revision: 'c0ffee',
  release: '1.2.3-dev',
  treeStatus: 'Clean',
  buildMode: 'RELEASE',
  tlsLibrary: 'OpenSSL',
};

describe('the messages of a bootstrap', () => {
  const source = {
    node: { id: 'one', locality: { region: 'eu' } },
    stats_flush_interval: '2s',
    static_resources: {
      clusters: [clusterNamed('web'), { ...clusterNamed('api'), connect_timeout: '3s' }],
      listeners: [listenerWith([httpFilter({ route_config: { name: 'front' } })])],
    },
  };

  it('are the whole and, in its order, views of its resources', () => {
    const { messages } = mustLoad(source);
    const whole = shown(BOOTSTRAP, messages.bootstrap) as {
      static_resources?: { clusters: object[]; listeners: object[] };
    };
    assert.deepEqual(Object.keys(whole), ['node', 'static_resources', 'stats_flush_interval']);
    const clusters = messages.clusters.map((cluster) => shown('proxy.config.cluster.v3.Cluster', cluster));
    assert.deepEqual(whole.static_resources!.clusters, clusters);
    assert.deepEqual(
      clusters.map(({ name }) => name),
      ['web', 'api'],
    );
    const listeners = messages.listeners.map((listener) => shown('proxy.config.listener.v3.Listener', listener));
    assert.deepEqual(whole.static_resources!.listeners, listeners);
    for (const part of messages.clusters) assert.equal(part.buffer, messages.bootstrap.buffer);
  });

  it('have the node as the command line wants it, and what it says of the program', () => {
    const options = { serviceNode: 'two', serviceCluster: 'edge', serviceZone: 'z', software: SOFTWARE };
    const { node } = shown(BOOTSTRAP, mustLoad(source, options).messages.bootstrap) as {
      node?: Record<string, unknown>;
    };
    const { extensions, ...rest } = node!;
    assert.deepEqual(rest, {
      id: 'two',
      cluster: 'edge',
      locality: { region: 'eu', zone: 'z' },
      user_agent_name: 'weir',
      user_agent_build_version: {
        version: { major_number: 1, minor_number: 2, patch: 3 },
        metadata: {
          'build.label': 'dev',
          'build.type': 'RELEASE',
          'revision.sha': 'c0ffee',
          'revision.status': 'Clean',
          'ssl.version': 'OpenSSL',
        },
      },
    });
    const router = { name: 'proxy.filters.http.router', category: 'proxy.filters.http' };
    assert.ok((extensions as object[]).some((extension) => JSON.stringify(extension) === JSON.stringify(router)));
  });

  it('are there for a bootstrap without node and resources', () => {
    const { messages } = mustLoad({ stats_flush_interval: '2s' });
    assert.deepEqual(shown(BOOTSTRAP, messages.bootstrap), { node: {}, stats_flush_interval: '2s' });
    assert.deepEqual(messages.clusters, []);
  });

  it('are found by paths through lists and into an Any of the type that is asked for', () => {
    const [listener] = mustLoad(withListeners(listenerWith([httpFilter({ route_config: { name: 'front' } })]))).messages
      .listeners;
    const type = schema.messageType('proxy.config.listener.v3.Listener');
    const path = ['filter_chains', 'filters', 'typed_config'];
    const routeType = schema.messageType('proxy.config.route.v3.RouteConfiguration');
    const found = [...partsOf(schema, type, listener!, [...path, MANAGER, 'route_config'])];
    assert.deepEqual(
      found.map((route) => textOf(routeType, route, 'name')),
      ['front'],
    );
    assert.deepEqual([...partsOf(schema, type, listener!, [...path, BOOTSTRAP, 'admin'])], []);
    assert.deepEqual([...partsOf(schema, type, listener!, ['default_filter_chain', 'filters'])], []);
  });
});
