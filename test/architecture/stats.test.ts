// Every row of the stat tables is written by someone, or stands here with the reason why it is not: a stat that is always 0
// tells its reader something untrue.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import * as stats from '../../src/stats/index.ts';

const SOURCES = path.join(import.meta.dirname, '../../src');
const TABLES = path.join('stats', 'tables');

/** Why nobody writes the rows; each by its table. */
const UNWRITTEN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'HTTP/3 and early data do not exist': {
    CLUSTER_STATS: ['upstream_cx_http3_total', 'upstream_cx_connect_with_0_rtt', 'upstream_rq_0rtt'],
    HTTP_STATS: ['downstream_cx_http3_total', 'downstream_cx_http3_active', 'downstream_rq_http3_total'],
  },
  'METADATA frames are skipped, bodies are copied before a write, one response at a time waits for a client of HTTP/1':
    {
      HTTP1_STATS: ['metadata_not_supported_error', 'response_flood'],
      HTTP2_STATS: ['headers_cb_no_stream', 'metadata_empty_frames', 'deferred_stream_close'],
    },
  'OpenSSL is that of Node': {
    SERVER_STATS: ['compilation_settings.fips_mode'],
  },
  'resources do not change at run time': {
    WORKER_CLUSTER_MANAGER_STATS: ['clusters_inflated'],
  },
  'zones of different number do not keep requests from being routed by them': {
    CLUSTER_STATS: ['lb_zone_number_differs'],
  },
  'options of connection managers that are refused or warned of': {
    HTTP_STATS: ['downstream_rq_non_relative_path', 'downstream_rq_rejected_via_ip_detection'],
    TCP_PROXY_STATS: ['early_data_received_count_total'],
  },
  'there is no debug build, and no message that is work in progress': {
    SERVER_STATS: ['debug_assertion_failures', 'envoy_bug_failures', 'wip_protos'],
  },
};

/** Written by their distance from the first of them: one number each from 1xx to 5xx. */
const BY_CLASS = /^downstream_rq_[2-5]xx$/;

interface Table {
  readonly name: string;
  readonly rows: readonly { readonly name: string }[];
}

function tables(): readonly Table[] {
  return Object.entries(stats).flatMap(([name, value]) =>
    typeof value === 'object' && 'rows' in value && 'histogramsAt' in value ? [{ name, rows: value.rows }] : [],
  );
}

/** All names in the sources, but for those of the tables themselves. */
function namesInUse(): ReadonlySet<string> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith(TABLES),
  );
  const texts = files.map((file) => readFileSync(path.join(SOURCES, file), 'utf8'));
  return new Set(
    texts.flatMap((text) => text.match(/\w+(?:\.\w+)*/g) ?? []).flatMap((name) => [name, ...name.split('.')]),
  );
}

function reasonless(): string[] {
  const used = namesInUse();
  const excused = new Set(Object.values(UNWRITTEN).flatMap((byTable) => fullNames(byTable)));
  return tables().flatMap(({ name: table, rows }) =>
    rows
      .map(({ name }) => name)
      .filter((name) => !used.has(name) && !BY_CLASS.test(name) && !excused.has(`${table}.${name}`))
      .map((name) => `${table}.${name}`),
  );
}

function fullNames(byTable: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(byTable).flatMap(([table, names]) => names.map((name) => `${table}.${name}`));
}

test('every stat is written, or it is known why not', () => {
  assert.deepEqual(reasonless(), []);
});

test('what is excused exists, is excused once, and is written nowhere', () => {
  const used = namesInUse();
  const all = new Set(tables().flatMap(({ name: table, rows }) => rows.map(({ name }) => `${table}.${name}`)));
  const excused = Object.values(UNWRITTEN).flatMap(fullNames);
  assert.deepEqual(
    excused.filter((name) => !all.has(name)),
    [],
  );
  assert.equal(new Set(excused).size, excused.length);
  assert.deepEqual(
    excused.filter((name) => used.has(name.slice(name.indexOf('.') + 1))),
    [],
  );
});
