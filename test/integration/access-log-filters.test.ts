// Every filter of access logs as operators write it: one proxy whose logs differ in their filters, and what of the same
// requests each of them has let pass.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf } from '../support/embedded-filters.ts';
import { WireClient } from '../support/wire.ts';

const FILE = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
/** By their paths, in the order in which they are asked for. */
const ALL = ['/fine', '/none', '/tagged', '/call', '/health', '/forced', '/asked'];
const LINES: Readonly<Record<string, string>> = {
  '/tagged': 'x-tier: gold\r\n',
  '/call': 'content-type: application/grpc\r\n',
  '/forced': 'x-envoy-force-trace: 1\r\n',
  '/asked': 'x-client-trace-id: 1\r\n',
};

function status(op: string, value: number): JsonObject {
  return { status_code_filter: { comparison: { op, value: { default_value: value, runtime_key: 'none' } } } };
}

function duration(op: string): JsonObject {
  return { duration_filter: { comparison: { op, value: { default_value: 600_000, runtime_key: 'none' } } } };
}

function sent(name: string, value: string): JsonObject {
  return { header_filter: { header: { name, string_match: { exact: value } } } };
}

function share(percent: number): JsonObject {
  return {
    runtime_filter: { runtime_key: 'none', percent_sampled: { numerator: percent }, use_independent_randomness: true },
  };
}

function said(value: JsonObject, fields: JsonObject = {}, matcher: JsonObject = {}): JsonObject {
  return { metadata_filter: { matcher: { filter: 'm', path: [{ key: 'tier' }], value, ...matcher }, ...fields } };
}

const GOLD = { string_match: { exact: 'gold' } };
const LEAD = { string_match: { exact: 'lead' } };
const but = (...paths: string[]): string[] => ALL.filter((each) => !paths.includes(each));

const CASES: readonly (readonly [name: string, filter: JsonObject, passed: readonly string[]])[] = [
  ['status_code_filter EQ', status('EQ', 404), ['/none']],
  ['status_code_filter GE', status('GE', 400), ['/none']],
  ['status_code_filter LE', status('LE', 399), but('/none')],
  ['status_code_filter NE', status('NE', 200), ['/none']],
  ['duration_filter GE', duration('GE'), []],
  ['duration_filter LE', duration('LE'), ALL],
  ['not_health_check_filter', { not_health_check_filter: {} }, but('/health')],
  ['runtime_filter of none', share(0), []],
  ['runtime_filter of all', share(100), ALL],
  ['header_filter', sent('x-tier', 'gold'), ['/tagged']],
  ['and_filter', { and_filter: { filters: [status('EQ', 200), sent('x-tier', 'gold')] } }, ['/tagged']],
  ['and_filter of what excludes itself', { and_filter: { filters: [status('EQ', 404), sent('x-tier', 'gold')] } }, []],
  ['or_filter', { or_filter: { filters: [status('EQ', 404), sent('x-tier', 'gold')] } }, ['/none', '/tagged']],
  ['response_flag_filter', { response_flag_filter: { flags: ['NR', 'UH'] } }, ['/none']],
  ['response_flag_filter of any', { response_flag_filter: {} }, ['/none']],
  ['grpc_status_filter', { grpc_status_filter: { statuses: ['UNIMPLEMENTED'] } }, ['/none']],
  [
    'grpc_status_filter that excludes',
    { grpc_status_filter: { statuses: ['UNIMPLEMENTED'], exclude: true } },
    but('/none'),
  ],
  ['log_type_filter', { log_type_filter: { types: ['DownstreamEnd'] } }, ALL],
  ['log_type_filter that excludes', { log_type_filter: { types: ['DownstreamEnd'], exclude: true } }, []],
  ['metadata_filter of a value', said(GOLD, { match_if_key_not_found: false }), ['/tagged']],
  ['metadata_filter of another value', said(LEAD, { match_if_key_not_found: false }), []],
  ['metadata_filter with those without', said(LEAD), but('/tagged')],
  ['metadata_filter that is inverted', said(LEAD, { match_if_key_not_found: false }, { invert: true }), ['/tagged']],
  ['metadata_filter of another namespace', said(GOLD, { match_if_key_not_found: false }, { filter: 'n' }), []],
  ['metadata_filter without a matcher', { metadata_filter: {} }, ALL],
  ['metadata_filter without all', { metadata_filter: { match_if_key_not_found: false } }, []],
  ['traceable_filter', { traceable_filter: {} }, ['/forced']],
];

describe('an access log lets pass by', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-filters-'));
  const fileOf = (index: number): string => path.join(folder, `${index}.log`);
  let passed: readonly (readonly string[])[] = [];

  before(async () => {
    const access_log = CASES.map(([, filter], index) => ({
      name: 'file',
      filter,
      typed_config: {
        '@type': FILE,
        path: fileOf(index),
        log_format: { text_format_source: { inline_string: '%REQ(:PATH)%\n' } },
      },
    }));
    const filters = [
      filterOf('health_check.v3.HealthCheck', {
        pass_through_mode: false,
        headers: [{ name: ':path', string_match: { exact: '/health' } }],
      }),
      filterOf('header_to_metadata.v3.Config', {
        request_rules: [{ header: 'x-tier', on_header_present: { metadata_namespace: 'm', key: 'tier' } }],
      }),
    ];
    const routes = but('/none').map((each) => ({ match: { path: each }, direct_response: { status: 200 } }));
    const tracing = { random_sampling: { value: 0 } };
    const manager = { access_log, tracing, use_remote_address: true };
    const listener = filteredListener(filters, routes, { manager });
    const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', 1)]));
    const client = new WireClient(proxy.listeners.get('main')!.port);
    for (const each of ALL) {
      await client.write(`GET ${each} HTTP/1.1\r\nhost: h\r\n${LINES[each] ?? ''}\r\n`).response();
    }
    client.close();
    await proxy.close();
    passed = CASES.map((_case, index) => readFileSync(fileOf(index), 'utf8').split('\n').filter(Boolean));
  });

  after(() => rmSync(folder, { recursive: true }));

  for (const [index, [name, , expected]] of CASES.entries()) {
    it(name, () => assert.deepEqual(passed[index], expected));
  }
});

test('filters by CEL are refused by name', () => {
  const filter = { extension_filter: { name: 'cel' } };
  const access_log = [{ name: 'file', filter, typed_config: { '@type': FILE, path: '/dev/null' } }];
  const faults = managerFaults({ access_log }).join('\n');
  assert.match(faults, /filter\.extension_filter: extension_filter is not supported/);
});
