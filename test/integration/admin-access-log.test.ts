// The access logs of the admin interface, of the real program.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

it('requests at the admin interface are logged by format and filter, and files are opened anew on SIGUSR1', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-admin-log-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [file, renamed] = [path.join(folder, 'log'), path.join(folder, 'log.1')];
  const admin = {
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    access_log: [
      {
        name: 'envoy.access_loggers.file',
        filter: {
          status_code_filter: { comparison: { op: 'GE', value: { default_value: 400, runtime_key: 'least_status' } } },
        },
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
          path: file,
          log_format: { text_format_source: { inline_string: '%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE%\n' } },
        },
      },
    ],
  };
  const layered_runtime = { layers: [{ name: 'admin', admin_layer: {} }] };
  await using weir = await startWeir({ configYaml: JSON.stringify({ admin, layered_runtime }) });
  const ask = async (target: string, method = 'GET'): Promise<string> =>
    (await fetch(weir.adminUrl + target, { method })).text();
  await ask('/ready');
  await ask('/nowhere?x=1');
  await eventually(() => readFileSync(file, 'utf8') !== '', 'an entry');
  assert.equal(readFileSync(file, 'utf8'), 'GET /nowhere?x=1 404\n');
  renameSync(file, renamed);
  process.kill(weir.pid, 'SIGUSR1');
  await eventually(() => existsSync(file), 'a file of that name');
  // The filter follows the runtime.
  await ask('/runtime_modify?least_status=200', 'POST');
  await ask('/ready');
  const ready = 'GET /ready 200\n';
  await eventually(() => readFileSync(file, 'utf8').endsWith(ready), 'an entry in the new file');
  assert.equal(readFileSync(renamed, 'utf8'), 'GET /nowhere?x=1 404\n');
});
