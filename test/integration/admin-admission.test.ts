// What the configuration and the command line allow of the admin interface, asked of the real program.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { startWeir } from '../support/weir-process.ts';

const ADMIN = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } }';

async function statusOf(url: string, options: { method?: string; host?: string } = {}): Promise<number> {
  const { method = 'GET', host } = options;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent: false, ...(host === undefined ? {} : { headers: { host } }) });
    sent.once('error', reject).once('response', (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    sent.end();
  });
}

describe('the admin interface of the program', () => {
  it('answers only the paths of allow_paths', async () => {
    const configYaml = `${ADMIN}, allow_paths: [{ exact: /ready }, { safe_regex: { google_re2: {}, regex: '/(stats|listeners)' } }] }`;
    await using weir = await startWeir({ configYaml });
    const statuses = ['/ready', '/stats?filter=live', '/listeners', '/stats/prometheus', '/', '/clusters'].map((path) =>
      statusOf(weir.adminUrl + path),
    );
    assert.deepEqual(await Promise.all(statuses), [200, 200, 200, 403, 403, 403]);
  });

  it('changes nothing and goes by another name when the command line says so', async () => {
    const args = ['--admin-read-only', '--admin-name', 'proxy.example'];
    await using weir = await startWeir({ configYaml: `${ADMIN} }`, args });
    assert.equal(await statusOf(`${weir.adminUrl}/quitquitquit`, { method: 'POST' }), 403);
    assert.equal(await statusOf(`${weir.adminUrl}/ready`, { host: 'proxy.example' }), 200);
    assert.equal(await statusOf(`${weir.adminUrl}/ready`, { host: 'evil.example' }), 403);
  });
});
