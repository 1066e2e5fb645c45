// What browsers make of the cors and csrf filters, with the examples as they stand: pages of two sites, and a service of a third.

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { NO_BROWSER, openBrowser, openPage, type WatchedPage } from '../support/browser.ts';
import { portOf, startExample } from '../support/examples.ts';

const PAGE = '<!doctype html><title>page</title><link rel="icon" href="data:,">';

function pages() {
  return createServer((_request, response) => response.setHeader('content-type', 'text/html').end(PAGE));
}

/** A page that `host` has sent. */
async function pageAt(watched: WatchedPage, host: string, port: number): Promise<WatchedPage['page']> {
  await watched.page.goto(`http://${host}:${port}/`);
  return watched.page;
}

async function apiOf(t: TestContext, asked: IncomingMessage[]): Promise<number> {
  const answers = (request: IncomingMessage): void => void asked.push(request);
  return await portOf(
    t,
    createServer((request, response) => {
      answers(request);
      request.resume();
      response.writeHead(200, { 'content-type': 'text/html', 'x-total': '7', 'x-hidden': 'yes' }).end(PAGE);
    }),
  );
}

/** @returns what a script of the page gets of a call with a header of its own; the browser's error for none. */
function call(page: WatchedPage['page'], url: string): Promise<readonly unknown[]> {
  return page.evaluate(async (target) => {
    try {
      const response = await fetch(target, { method: 'PUT', headers: { 'x-basket': '1' }, credentials: 'include' });
      return [response.status, response.headers.get('x-total'), response.headers.get('x-hidden')];
    } catch (error) {
      return [String(error)];
    }
  }, url);
}

/** @returns the status that a page gets which sends a form. */
async function post(page: WatchedPage['page'], url: string): Promise<number> {
  const answered = page.waitForResponse((response) => response.url() === url);
  await page.evaluate((action) => {
    const form = Object.assign(document.createElement('form'), { action, method: 'post' });
    document.body.append(form);
    form.submit();
  }, url);
  return (await answered).status();
}

describe('pages of other sites', { skip: NO_BROWSER }, () => {
  it('call an API where cors.yaml lets them, and do not hear it elsewhere', async (t) => {
    const asked: IncomingMessage[] = [];
    const api = await apiOf(t, asked);
    const site = await portOf(t, pages());
    await using weir = await startExample('cors.yaml', { 9090: api }, undefined, {
      'shop\\.example\\.com': 'localhost',
    });
    const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}/basket`;
    await using browser = await openBrowser();
    await using friend = await openPage(browser);
    await using stranger = await openPage(browser);
    assert.deepEqual(await call(await pageAt(friend, 'localhost', site), url), [200, '7', null]);
    assert.deepEqual(friend.complaints, []);
    assert.deepEqual(
      asked.map(({ method }) => method),
      ['PUT'],
    );
    const [refused] = await call(await pageAt(stranger, '127.0.0.1', site), url);
    assert.match(String(refused), /TypeError: Failed to fetch/);
    assert.ok(!asked.slice(1).some(({ method }) => method === 'PUT'), 'the call itself was never made');
  });

  it('cannot send the forms of a site behind csrf.yaml, which sends them itself', async (t) => {
    const asked: IncomingMessage[] = [];
    const bank = await apiOf(t, asked);
    const site = await portOf(t, pages());
    await using weir = await startExample('csrf.yaml', { 9090: bank });
    const { port } = (await weir.listeners()).get('web')!;
    const url = `http://127.0.0.1:${port}/transfer`;
    await using browser = await openBrowser();
    await using own = await openPage(browser);
    await using foreign = await openPage(browser);
    assert.equal(await post(await pageAt(own, '127.0.0.1', port), url), 200);
    assert.equal(await post(await pageAt(foreign, 'localhost', site), url), 403);
    assert.equal(asked.filter(({ method }) => method === 'POST').length, 1);
  });
});
