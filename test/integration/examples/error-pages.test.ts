// The example of pages for what goes wrong, as it stands: it does what its first lines promise.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { it } from 'node:test';
import { portOf, startExample } from '../../support/examples.ts';

it('error-pages.yaml: what goes wrong has a page, or JSON for programs, and what goes well stays', async (t) => {
  const asked: string[] = [];
  const shop = createServer((message, response) => {
    const { pathname, searchParams } = new URL(message.url!, 'http://shop');
    response.writeHead(Number(searchParams.get('status') ?? 200), { 'x-shop': '1' }).end(pathname);
  });
  const pages = createServer((message, response) => {
    asked.push(`${message.headers.host}${message.url}`);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Nothing here.');
  });
  const ports = { 9090: await portOf(t, shop), 9191: await portOf(t, pages) };
  await using weir = await startExample('error-pages.yaml', ports);
  const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}`;
  const ask = async (path: string) => {
    const response = await fetch(`${url}${path}`, { headers: { connection: 'close' } });
    const { status, headers } = response;
    return { status, headers, type: headers.get('content-type'), text: await response.text() };
  };
  for (const status of [200, 403]) {
    const { status: told, text, headers } = await ask(`/a?status=${status}`);
    assert.deepEqual([told, text, headers.get('x-shop')], [status, '/a', '1']);
  }
  const missing = await ask('/not/there?status=404');
  assert.deepEqual([missing.status, missing.type, missing.text], [404, 'text/html', '<p>Nothing here.']);
  assert.deepEqual(asked, ['pages.internal/not-found.html']);
  const broken = await ask('/a?status=500');
  assert.deepEqual([broken.status, broken.type, broken.headers.get('retry-after')], [503, 'text/html', '30']);
  assert.match(broken.text, /half a minute/);
  for (const status of [404, 500]) {
    const { status: told, type, text } = await ask(`/api/stock?status=${status}`);
    assert.deepEqual([told, type], [status, 'application/json']);
    const said = JSON.parse(text) as Record<string, unknown>;
    assert.equal(said.status, status);
    assert.match(String(said.request), /^[0-9a-f-]{36}$/);
  }
  shop.closeAllConnections();
  shop.close();
  const away = await ask('/');
  assert.deepEqual([away.status, away.headers.get('retry-after')], [503, '30']);
  assert.equal((await ask('/api/stock')).type, 'application/json');
});
