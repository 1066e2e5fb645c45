// Mistakes that operators make in clusters: each is told with file, line and column, the field, and what stands there.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { formatFault } from '../../../../src/config/index.ts';
import { loadFile } from '../../../support/bootstrap.ts';

/** The mistake begins in line 4: before it stand the name of the cluster and its members. */
const FIRST_LINE = 4;
const MEMBERS = 'hosts: [{ socket_address: { address: 10.0.0.1, port_value: 80 } }]';

interface Mistake {
  readonly name: string;
  readonly lines: readonly string[];
  readonly members?: string;
  /** Behind the first line. */
  readonly line: number;
  readonly field: string;
  readonly says: RegExp;
}

const MISTAKES: readonly Mistake[] = [
  {
    name: 'a ring above 8M entries',
    lines: ['lb_policy: RING_HASH', 'ring_hash_lb_config:', '  maximum_ring_size: 8388609'],
    line: 2,
    field: 'ring_hash_lb_config.maximum_ring_size',
    says: /8388609 exceeds the limit 8388608/,
  },
  {
    name: 'a least size above the largest',
    lines: ['lb_policy: RING_HASH', 'ring_hash_lb_config:', '  minimum_ring_size: 20', '  maximum_ring_size: 10'],
    line: 2,
    field: 'ring_hash_lb_config.minimum_ring_size',
    says: /20 exceeds maximum_ring_size 10/,
  },
  {
    name: 'options of a balancer without its policy',
    lines: ['lb_policy: RANDOM', 'ring_hash_lb_config: {}'],
    line: 1,
    field: 'ring_hash_lb_config',
    says: /needs lb_policy RING_HASH, not RANDOM/,
  },
  {
    name: 'both members of a one-of',
    lines: ['common_lb_config:', '  zone_aware_lb_config: {}', '  locality_weighted_lb_config: {}'],
    line: 2,
    field: 'common_lb_config.locality_weighted_lb_config',
    says: /zone_aware_lb_config/,
  },
  {
    name: 'a base interval of 0',
    lines: ['dns_failure_refresh_rate:', '  base_interval: 0s'],
    line: 1,
    field: 'dns_failure_refresh_rate.base_interval',
    says: /0s is not above 0/,
  },
  {
    name: 'a base interval above the longest',
    lines: ['dns_failure_refresh_rate:', '  base_interval: 3s', '  max_interval: 2s'],
    line: 2,
    field: 'dns_failure_refresh_rate.max_interval',
    says: /must not be less than base_interval/,
  },
  {
    name: 'lookups more often than once a millisecond',
    lines: ['dns_refresh_rate: 0.0005s'],
    line: 0,
    field: 'dns_refresh_rate',
    says: /0\.0005s is below the minimum 1ms/,
  },
  {
    name: 'fallback keys that are all keys',
    lines: [
      'lb_subset_config:',
      '  subset_selectors:',
      '  - keys: [a]',
      '    fallback_policy: KEYS_SUBSET',
      '    fallback_keys_subset: [a]',
    ],
    line: 4,
    field: 'lb_subset_config.subset_selectors[0].fallback_keys_subset',
    says: /must hold fewer keys than keys/,
  },
  {
    name: 'fallback keys that are none of the keys',
    lines: [
      'lb_subset_config:',
      '  subset_selectors:',
      '  - keys: [a, b]',
      '    fallback_policy: KEYS_SUBSET',
      '    fallback_keys_subset: [c]',
    ],
    line: 4,
    field: 'lb_subset_config.subset_selectors[0].fallback_keys_subset',
    says: /"c" is not one of keys/,
  },
  {
    name: 'a percentage above 100',
    lines: ['common_lb_config:', '  healthy_panic_threshold:', '    value: 101'],
    line: 2,
    field: 'common_lb_config.healthy_panic_threshold.value',
    says: /101 exceeds the limit 100/,
  },
  {
    name: 'ORIGINAL_DST with members',
    lines: ['type: ORIGINAL_DST', 'lb_policy: CLUSTER_PROVIDED'],
    line: -1,
    field: 'hosts',
    says: /takes its members from the connections/,
  },
  {
    name: 'ORIGINAL_DST with an assignment',
    members: 'load_assignment: { cluster_name: web }',
    lines: ['type: ORIGINAL_DST', 'lb_policy: CLUSTER_PROVIDED'],
    line: -1,
    field: 'load_assignment',
    says: /takes its members from the connections/,
  },
  {
    name: 'a port for all hosts that is none',
    members: 'type: ORIGINAL_DST',
    lines: ['lb_policy: CLUSTER_PROVIDED', 'original_dst_lb_config:', '  upstream_port_override: 65536'],
    line: 2,
    field: 'original_dst_lb_config.upstream_port_override',
    says: /65536 exceeds the limit 65535/,
  },
];

describe('a mistake in a cluster', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'weir-cluster-faults-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const faultsOf = (text: string): string[] => {
    const file = path.join(folder, 'bad.yaml');
    writeFileSync(file, text);
    const { faults } = loadFile(file);
    return faults.filter(({ severity }) => severity === 'error').map((fault) => formatFault(fault));
  };
  const bootstrap = ({ lines, members = MEMBERS }: Mistake): string =>
    ['static_resources:', '  clusters:', '  - name: web', ...[members, ...lines].map((line) => `    ${line}`)].join(
      '\n',
    );

  for (const mistake of MISTAKES) {
    it(`is told where it stands: ${mistake.name}`, () => {
      const faults = faultsOf(bootstrap(mistake));
      const [fault, ...others] = faults;
      assert.deepEqual(others, []);
      const line = FIRST_LINE + 1 + mistake.line;
      assert.match(fault ?? '', new RegExp(`bad\\.yaml:${line}:\\d+: `));
      assert.ok(fault?.includes(`static_resources.clusters[0].${mistake.field}: `));
      assert.match(fault!, mistake.says);
    });
  }

  it('is told of both clusters of one name', () => {
    const cluster = `- { name: web, ${MEMBERS} }`;
    const [fault, ...others] = faultsOf(`static_resources:\n  clusters:\n  ${cluster}\n  ${cluster}\n`);
    assert.deepEqual(others, []);
    assert.match(fault!, /bad\.yaml:4:\d+: static_resources\.clusters\[1\]\.name: .*web/);
  });

  it('is no mistake where a member comes twice: it is one host', () => {
    const twice = MEMBERS.replace('[{', '[{ socket_address: { address: 10.0.0.1, port_value: 80 } }, {');
    const text = `static_resources:\n  clusters:\n  - { name: web, ${twice} }\n`;
    assert.deepEqual(faultsOf(text), []);
    assert.equal(loadFile(path.join(folder, 'bad.yaml')).bootstrap!.clusters[0]!.hosts.length, 1);
  });
});
