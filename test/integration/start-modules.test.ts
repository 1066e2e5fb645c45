// What the main thread loads for a plain start, which is most of the time that one takes. Names and bytes rather than times: they are the same
// on every machine. Of the bundle, as it is shipped; sources that run unbuilt load more.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { StartRecord } from '../support/record-start.ts';
import { startWeir } from '../support/weir-process.ts';

const RECORDER = path.join(import.meta.dirname, '../support/record-start.ts');
const SKIP = process.env.WEIR_TEST_MAIN === undefined && 'of the bundle only';
/**
 * 3.46 MB in 35 files on 29 November 2026. Filters, what one of them reads definitions of gRPC with, and the managers of what is discovered
 * come with every start, whether a configuration has them or not; what speaks with servers of discovery, load and health does not. What else
 * raises it should be something that every start needs.
 */
const MOST_BYTES = 3_490_000;
/** Each is opened and read for itself. */
const MOST_FILES = 38;
const NOT_OF_A_PLAIN_START = ['crypto', 'http2', 'https', 'tls', 'zlib'];

const PLAIN = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: web
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: proxy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts: [{name: all, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: upstream}}]}]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: upstream
    load_assignment:
      cluster_name: upstream
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]
`;

test('a plain HTTP/1 start loads nothing of TLS, HTTP/2 and compression, nor more than a bounded amount of code', {
  skip: SKIP,
}, async () => {
  const { files, builtins, segmenters } = await recordStart(PLAIN);
  const loaded = NOT_OF_A_PLAIN_START.filter((name) => builtins.includes(name));
  assert.deepEqual(loaded, []);
  assert.equal(segmenters, 0, 'tables of Unicode were loaded');
  const ours = files.filter((url) => url.includes('/dist/'));
  const bytes = ours.reduce((sum, url) => sum + statSync(fileURLToPath(url)).size, 0);
  assert.ok(ours.length > 10 && bytes > 1_000_000, 'the recorder has seen the program load');
  assert.ok(bytes <= MOST_BYTES && ours.length <= MOST_FILES, `${bytes} bytes of ${ours.length} files`);
});

async function recordStart(configYaml: string): Promise<StartRecord> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
  const record = path.join(folder, 'record.json');
  try {
    const weir = await startWeir({
      configYaml,
      env: { NODE_OPTIONS: `--import=${RECORDER}`, WEIR_TEST_RECORD: record },
    });
    await weir.stop();
    return JSON.parse(readFileSync(record, 'utf8')) as StartRecord;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
