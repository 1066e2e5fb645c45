// The JSON schema that --print-schema prints for editors: what weir takes is valid by it, and mistakes are flagged where they
// stand.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { load as readYaml } from 'js-yaml';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import {
  clusterNamed,
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  withClusters,
  withListeners,
} from '../support/bootstrap.ts';
import { type SchemaFaults, schemaFaults } from '../support/schema-check.ts';
import { runWeir } from '../support/weir-process.ts';

const CONFIG_TESTS = path.join(PACKAGE_ROOT, 'test/unit/config');

interface Schema {
  readonly definitions: Readonly<Record<string, { readonly properties?: Readonly<Record<string, JsonObject>> }>>;
}

describe('--print-schema', () => {
  let printed: Schema;
  let faultsOf: SchemaFaults;

  it('prints a schema, and nothing else', async () => {
    const { code, stdout, stderr } = await runWeir(['--print-schema']);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    printed = JSON.parse(stdout) as Schema;
    faultsOf = schemaFaults(printed);
  });

  it('finds configurations of weir good, in every spelling', () => {
    const folder = path.join(CONFIG_TESTS, 'bootstrap/front-proxy');
    const files = ['v3.yaml', 'v2.yaml', 'bootstrap.json'].map((file) => path.join(folder, file));
    for (const file of [...files, path.join(PACKAGE_ROOT, 'demo/bootstrap.yaml')]) {
      assert.deepEqual(faultsOf(readYaml(readFileSync(file, 'utf8'))), [], file);
    }
  });

  const cluster = (fields: JsonObject): JsonObject => withClusters(clusterNamed('web', fields));
  const manager = (fields: JsonObject): JsonObject => withListeners(listenerWith([httpFilter(fields)]));
  const MANAGER = '/static_resources/listeners/0/filter_chains/0/filters/0/typed_config';
  const mistakes: readonly { readonly name: string; readonly config: Json; readonly at: string }[] = [
    { name: 'an unknown field', config: { statics: {} }, at: ' must NOT have additional properties: statics' },
    {
      name: 'one of a cluster',
      config: cluster({ conect_timeout: '1s' }),
      at: '/static_resources/clusters/0 must NOT have additional properties: conect_timeout',
    },
    {
      name: 'one of an extension, by its @type',
      config: manager({ stat_prefx: 'x' }),
      at: `${MANAGER} must NOT have additional properties: stat_prefx`,
    },
    {
      name: 'a word that is none of an enum',
      config: cluster({ lb_policy: 'RANDOMLY' }),
      at: '/static_resources/clusters/0/lb_policy ',
    },
    {
      name: 'text for a number',
      config: manager({ xff_num_trusted_hops: 'two' }),
      at: `${MANAGER}/xff_num_trusted_hops `,
    },
    {
      name: 'a number out of range',
      config: manager({ xff_num_trusted_hops: -1 }),
      at: `${MANAGER}/xff_num_trusted_hops `,
    },
    { name: 'a number for text', config: { node: { id: 7 } }, at: '/node/id must be string' },
    {
      name: 'a duration without its unit',
      config: cluster({ connect_timeout: '1' }),
      at: '/static_resources/clusters/0/connect_timeout ',
    },
    {
      name: 'a message for a list',
      config: { static_resources: { clusters: {} } },
      at: '/static_resources/clusters must be array',
    },
    {
      name: 'two fields that exclude one another',
      config: manager({ route_config: {}, rds: { route_config_name: 'x', config_source: {} } }),
      at: `${MANAGER} must NOT be valid`,
    },
    {
      name: 'a required field that is missing',
      config: withClusters({}),
      at: '/static_resources/clusters/0 must have required property',
    },
    {
      name: 'settings of an extension without @type',
      config: withListeners(listenerWith([{ name: 'x', typed_config: { stat_prefix: 'x' } }])),
      at: `${MANAGER} must have required property '@type'`,
    },
  ];
  for (const { name, config, at } of mistakes) {
    it(`flags ${name}`, () => {
      const faults = faultsOf(config);
      assert.ok(
        faults.some((fault) => fault.startsWith(at)),
        faults.join('\n'),
      );
    });
  }

  it('says what this build does not do, what fields are for, and offers each under its own name', () => {
    const bootstrap = printed.definitions['proxy.config.bootstrap.v3.Bootstrap']!.properties!;
    const dynamic = printed.definitions['proxy.config.bootstrap.v3.Bootstrap.DynamicResources']!.properties!;
    assert.match(String(dynamic.cds_resources_locator!.deprecationMessage), /not supported by this build.* refused/);
    assert.match(
      String(bootstrap.flags_path!.deprecationMessage),
      /not supported by this build: options stand on the command line/,
    );
    assert.equal(bootstrap.static_resources!.deprecationMessage, undefined);
    assert.equal(bootstrap.static_resources!.doNotSuggest, undefined);
    assert.equal(bootstrap.staticResources!.doNotSuggest, true);
    assert.match(String(bootstrap.node!.description), /management server/);
    const clusterFields = printed.definitions['proxy.config.cluster.v3.Cluster']!.properties!;
    assert.match(String(clusterFields.hosts!.deprecationMessage), /older interface/);
  });
});
