// The home page of the admin interface in a real browser: over the real program under load, and over an interface of its own with
// names and numbers that no configuration has.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type BusyClusterView, type OverviewView, readPageFiles } from '../../src/admin/index.ts';
import { NO_BROWSER, openBrowser, openPage } from '../support/browser.ts';
import { statsFixture } from '../support/stats.ts';
import { startWeir } from '../support/weir-process.ts';
import { type RunningAdmin, startAdmin } from '../unit/admin/fixture.ts';

const HOSTILE = `<script>document.title='broken'</script><img src=x onerror=alert(1)>'"&`;
const FILTER_MS = 200;

function overview(name: string): OverviewView {
  const use = {
    overflows: 1,
    members: 2,
    membersHealthy: 1,
    membersDegraded: 0,
    activeRequests: 5,
    activeConnections: 3,
  };
  const breakers = [{ name: 'requests', used: 9, limit: 10 }];
  const clusters: readonly BusyClusterView[] = [{ name, use: () => use, breakers: () => breakers }];
  const seconds = Array.from({ length: 300 }, (_, at) => at);
  return {
    history: {
      tick: 299,
      firstAfter: (tick) => Math.min(tick, 299) + 1,
      times: (from) => seconds.slice(from).map((second) => 1_700_000_000_000 + 1000 * second),
      listeners: () => [['ingress', (from) => Array.from({ length: 11 }, () => seconds.slice(from))]],
      clusters: () => [[name, (from) => Array.from({ length: 7 }, () => seconds.slice(from))]],
    },
    process: {
      epoch: 0,
      memory: { residentBytes: () => 2 ** 27, heapBytes: () => 2 ** 25 },
      descriptors: () => ({ open: 10, limit: 1024 }),
      eventLoopUses: () => [{ name: 'main', use: 0.25 }],
      troubles: () => [],
      warnings: [HOSTILE],
    },
    clusters: () => clusters,
    sources: () => [
      {
        kind: 'stream',
        name,
        isConnected: false,
        sinceMs: 1_700_000_000_000,
        identifier: name,
        complaint: name,
        unaskedTypes: [],
        types: [
          {
            typeName: `proxy.${name}`,
            wanted: 3,
            accepted: null,
            refused: { version: name, atMs: 1_700_000_000_000, reasons: name },
            unasked: 2,
          },
        ],
      },
    ],
    hostTimes: () => new Map(),
  };
}

/** An admin interface with the page of the build. */
async function pageOf(options: Parameters<typeof startAdmin>[0] = {}): Promise<RunningAdmin> {
  return startAdmin({ pageFiles: readPageFiles() ?? null, overview: overview('web'), ...options });
}

/** What a reader hears of a table. */
function rowsOf(page: Page, table: string): Promise<string[][]> {
  return page
    .locator(`${table} > tbody > tr:not([hidden])`)
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
}

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('the page in a browser', { skip: NO_BROWSER }, () => {
  let browser: Browser;
  before(async () => {
    browser = await openBrowser();
  });
  after(() => browser.close());

  it('opens with five minutes, shows a program at work, and does what it was told after a question', async () => {
    const upstream = createServer((asked, answer) => {
      answer.statusCode = asked.url === '/bad' ? 503 : 200;
      answer.end();
    }).listen(0, '127.0.0.1');
    const configYaml = `
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
flags_path: /nowhere
# A busy machine may hold a thread up: no warning of that here.
watchdogs:
  main_thread_watchdog: { miss_timeout: 600s, megamiss_timeout: 600s }
  worker_watchdog: { miss_timeout: 600s, megamiss_timeout: 600s }
static_resources:
  listeners:
  - name: edge
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: edge
          route_config: { virtual_hosts: [ { name: all, domains: ["*"], routes: [ { match: { prefix: /gone }, route: { cluster: gone } }, { match: { prefix: / }, route: { cluster: web } } ] } ] }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:
  - name: web
    connect_timeout: 1s
    load_assignment:
      cluster_name: web
      endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${await portOf(upstream)} } } } } ] } ]
  - name: gone
    connect_timeout: 1s
    load_assignment: { cluster_name: gone }
`;
    try {
      await using weir = await startWeir({ configYaml });
      const { port } = (await weir.listeners()).get('edge')!;
      let isOver = false;
      const load = (async () => {
        for (let count = 0; !isOver; count++) {
          const sent = get({
            host: '127.0.0.1',
            port,
            path: count % 20 === 0 ? '/bad' : count % 20 === 10 ? '/gone' : '/',
          });
          const [response] = await once(sent, 'response');
          response.resume();
          await once(response, 'end');
        }
      })();
      // What fails first is told.
      load.catch(() => {});
      await using watched = await openPage(browser);
      const { page } = watched;
      await page.goto(weir.adminUrl);
      await page.locator('#state .state-live').waitFor();
      // The cluster that has nobody to answer stands first, and what it costs is said at the top.
      await page.getByText(/^⚠ 2 problems, 1 warning$/).waitFor();
      await page.getByText(/^cluster down: gone \(it has no host\)$/).waitFor();
      await page.getByText(/^cluster failing: web \(\d+\.\d % of answers are 5xx\)$/).waitFor();
      const shownConditions = async () => (await rowsOf(page, '.clusters')).map((row) => row.slice(0, 2).join(' '));
      assert.match((await shownConditions()).join(';'), /^gone downit has no host;web failing\d/);
      const listener = page.getByRole('article', { name: 'Listener edge' });
      await page.waitForFunction(() =>
        [...document.querySelectorAll('.of-requests .figures div')].every((figure) => {
          const [, value = ''] = /(?:\/s|\dxx )(.*)$/.exec(figure.textContent) ?? [];
          return !/requests|2xx|5xx/.test(figure.textContent) || Number(value.replace('k', '')) > 0;
        }),
      );
      assert.equal(await listener.locator('canvas').count(), 3);
      await page.getByRole('button', { name: 'web', exact: true }).click();
      await page.getByRole('rowheader', { name: '127.0.0.1:' }).waitFor();
      assert.match((await rowsOf(page, '.hosts'))[0]!.join(' '), /^127\.0\.0\.1:\d+ healthy/);
      // Times are recorded now that somebody looks.
      await page.waitForFunction(() =>
        [7, 8].every((at) => /^[\d.]+$/.test(document.querySelector(`.hosts td:nth-child(${at})`)?.textContent ?? '')),
      );
      await page.waitForFunction(() =>
        /^\s*9\d\.\d/.test(document.querySelector('.clusters .is-failing td:nth-child(6)')?.textContent ?? ''),
      );

      await page.getByRole('searchbox', { name: 'Stats' }).fill('edge rq_5xx');
      await page.getByRole('button', { name: 'http.edge.downstream_rq_5xx', exact: true }).click();
      await page.getByText(/change a second over [1-9]/).waitFor();
      await page.getByRole('searchbox', { name: 'Stats' }).fill('/^http.edge.downstream_rq_time$/');
      await page.getByRole('button', { name: 'http.edge.downstream_rq_time' }).click();
      await page.getByRole('img', { name: /^Distribution/ }).waitFor();
      assert.equal((await rowsOf(page, '.quantiles')).length, 9);
      isOver = true;
      await load;

      const reset = page.getByRole('button', { name: 'Reset counters …' });
      await reset.click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
      assert.ok((await weir.stat('http.edge.downstream_rq_total'))! > 0);
      await reset.click();
      await page.getByRole('dialog').getByRole('button', { name: 'Reset counters' }).click();
      await page.getByText('Reset counters: OK').waitFor();
      assert.equal(await weir.stat('http.edge.downstream_rq_total'), 0);
      assert.deepEqual(watched.complaints, []);
    } finally {
      upstream.close();
      upstream.closeAllConnections();
    }
  });

  it('opens with the points that the server has kept', async () => {
    await using server = await pageOf();
    await using watched = await openPage(browser);
    await watched.page.goto(server.url);
    // The mean of the last ten points of a line that rises by one a second.
    await watched.page.waitForFunction(() =>
      /2xx ?295/.test(document.querySelector('.of-requests')?.textContent ?? ''),
    );
    const path = await watched.page.locator('.clusters .spark-line').first().getAttribute('d');
    assert.match(path!, /^M0\.0 1\d\.\dL.*L9\d\.\d 1\.0$/);
  });

  it('says where resources come from, what has come, and what was refused of it', async () => {
    await using server = await pageOf({ overview: overview('control') });
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(server.url);
    await page.getByRole('heading', { name: 'Discovery' }).waitFor();
    const [cells] = await rowsOf(page, '.sources');
    const [source, state, type, wanted, accepted, refused] = cells as [string, string, string, string, string, string];
    assert.equal(source, 'controlmanagement server · control');
    assert.match(state, /^not connected for \d+ d \d+ hcontrol$/);
    assert.deepEqual([type, wanted, accepted], ['control', '3 (2 unasked)', '–']);
    assert.match(refused, /^version control, [\d:]+, \d+ d \d+ h ago: control$/);
    assert.equal(await page.locator('.sources td.bad').count(), 1);
  });

  it('takes no name for markup', async () => {
    const { store } = statsFixture();
    store.scope('x.').counter(HOSTILE).add(1);
    await using server = await pageOf({ stats: store, overview: overview(HOSTILE) });
    await using watched = await openPage(browser);
    const { page, complaints } = watched;
    await page.goto(`${server.url}/stats?format=html&filter=${encodeURIComponent('.')}`);
    await page.getByRole('button', { name: `x.${HOSTILE}` }).click();
    await page.getByRole('button', { name: HOSTILE, exact: true }).first().click();
    await page.getByText('1 problem, 2 warnings').waitFor();
    assert.equal(await page.locator('#live img, #live script').count(), 0);
    assert.equal(await page.title(), 'weir admin');
    assert.deepEqual(
      complaints.filter((text) => !/404/.test(text)),
      [],
    );
  });

  it('runs nothing that has come into it', async () => {
    await using server = await pageOf();
    await using watched = await openPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    const hasRun = await page.evaluate(() => {
      const script = document.createElement('script');
      script.append('document.title = "broken"');
      document.body.append(script);
      try {
        document.body.innerHTML = '<p>broken</p>';
      } catch {
        return document.title === 'broken';
      }
      return true;
    });
    assert.equal(hasRun, false);
    assert.notDeepEqual(complaints, []);
  });

  it(`finds some of 50,000 stats within ${FILTER_MS} ms`, async () => {
    const { store } = statsFixture();
    for (let owner = 0; owner < 500; owner++) {
      const scope = store.scope(`cluster.service_${owner}.`);
      for (let stat = 0; stat < 100; stat++) scope.counter(`upstream_rq_of_kind_${stat}`).add(stat);
    }
    await using server = await pageOf({ stats: store });
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(`${server.url}/stats?format=html`);
    await page.getByText(/^50,00\d$/).waitFor();
    // The best of several: other processes want the machine, too.
    const ms = await page.evaluate(async () => {
      const input = document.querySelector<HTMLInputElement>('#stat-filter')!;
      const texts = ['s', 'service_4', 'service_49 kind_7', '', '/_4.*_77$/', 'kind_5', 'e', 'service_3'];
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 25 && best > 200; round++) {
        for (const text of texts) {
          input.value = text;
          const startedMs = performance.now();
          input.dispatchEvent(new InputEvent('input'));
          // As far as the paint.
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          best = Math.min(best, performance.now() - startedMs);
        }
      }
      return best;
    });
    assert.ok(ms <= FILTER_MS, `${ms} ms`);
    await page.fill('#stat-filter', 'service_1234 _kind_99');
    await page.getByText('0 of 50,00').waitFor();
    await page.fill('#stat-filter', 'SERVICE_123 _kind_99');
    await page.getByText('1 of 50,00').waitFor();
    assert.deepEqual((await rowsOf(page, '.stats'))[0]!.slice(0, 3), [
      'cluster.service_123.upstream_rq_of_kind_99',
      'counter',
      '99',
    ]);
  });

  it('works below another path, behind a proxy that asks by another host', async () => {
    await using server = await pageOf();
    const { port } = new URL(server.url);
    const proxy = createServer((asked, answer) => {
      const path = /^\/deep\/below(\/.*)$/.exec(asked.url!)?.[1];
      if (path === undefined) {
        answer.writeHead(404).end();
        return;
      }
      const headers = { ...asked.headers, host: `127.0.0.1:${port}` };
      const sent = request({ host: '127.0.0.1', port, path, method: asked.method!, headers }, (response) => {
        answer.writeHead(response.statusCode!, response.headers);
        response.pipe(answer);
      });
      asked.pipe(sent);
    }).listen(0, '127.0.0.1');
    try {
      await using watched = await openPage(browser);
      const { page, complaints } = watched;
      await page.goto(`http://localhost:${await portOf(proxy)}/deep/below/`);
      await page.getByRole('button', { name: 'web', exact: true }).click();
      await page.getByRole('rowheader', { name: '127.0.0.1:8080' }).waitFor();
      await page.getByRole('button', { name: 'Reset counters …' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Reset counters' }).click();
      await page.getByText('Reset counters: OK').waitFor();
      assert.equal(server.world.resets, 1);
      assert.deepEqual(complaints, []);
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  });

  it('offers no actions on a read-only interface', async () => {
    await using server = await pageOf({ isReadOnly: true });
    await using watched = await openPage(browser);
    await watched.page.goto(server.url);
    await watched.page.getByText('read-only').first().waitFor();
    await watched.page.getByText('This interface is read-only: nothing can be changed from here.').waitFor();
    assert.equal(await watched.page.locator('#live-actions button').count(), 0);
    assert.deepEqual(await watched.page.getByRole('navigation').locator('a').allTextContents(), [
      'Traffic',
      'Upstreams',
      'Stats',
      'Actions',
      'Commands',
    ]);
  });

  it('is light or dark as the system is, or as one chooses, and can be read in both', async () => {
    await using server = await pageOf();
    for (const colorScheme of ['light', 'dark'] as const) {
      await using watched = await openPage(browser, { colorScheme });
      const { page } = watched;
      await page.goto(server.url);
      await page.locator('.opener').waitFor();
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [light, dark] = ['rgb(255, 255, 255)', 'rgb(15, 20, 25)'];
      assert.equal(await ground(), colorScheme === 'light' ? light : dark);
      assert.deepEqual(await page.evaluate(weakTexts), []);
      await page.getByLabel('Colours').selectOption(colorScheme === 'light' ? 'dark' : 'light');
      assert.equal(await ground(), colorScheme === 'light' ? dark : light);
      assert.deepEqual(await page.evaluate(weakTexts), []);
      await page.reload();
      assert.equal(await ground(), colorScheme === 'light' ? dark : light);
    }
  });

  it('is no wider than a narrow window, and can be used by keyboard', async () => {
    await using server = await pageOf();
    await using watched = await openPage(browser, { viewport: { width: 380, height: 700 } });
    const { page } = watched;
    await page.goto(server.url);
    await page.locator('.opener').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 380);
    await page.locator('.opener').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('rowheader', { name: '127.0.0.1:8080' }).waitFor();
    assert.equal(await page.locator('.opener').getAttribute('aria-expanded'), 'true');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 380);
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle);
    assert.equal(outline, 'solid');
  });

  it('offers the loggers that there are, with the levels that they have', async () => {
    await using server = await pageOf();
    await using watched = await openPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    const loggers = page.locator('#logging-logger-action');
    await loggers.scrollIntoViewIfNeeded();
    await page.getByRole('option', { name: 'upstream (debug)' }).waitFor({ state: 'attached' });
    await loggers.selectOption('upstream');
    await page.locator('#logging-level-action').selectOption('error');
    await page.getByRole('button', { name: 'Set log levels …' }).click();
    await page.getByRole('dialog').getByText('logger: upstream').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Set log levels' }).click();
    await page.getByRole('option', { name: 'upstream (error)' }).waitFor({ state: 'attached' });
    assert.equal(await loggers.inputValue(), 'upstream');
    assert.equal(server.world.loggers.get('upstream').level, 'error');
    assert.equal(server.world.loggers.get('admin').level, 'info');
    await loggers.selectOption('');
    await page.getByRole('button', { name: 'Set log levels …' }).click();
    await page.getByRole('dialog').getByText('logger: all').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Set log levels' }).click();
    await page.getByRole('option', { name: 'all loggers (error)' }).waitFor({ state: 'attached' });
    assert.deepEqual(complaints, []);
  });

  it('lets a row that moves keep the focus that it has', async () => {
    const { store } = statsFixture();
    const scope = store.scope('x.');
    const [one, two] = [scope.counter('one'), scope.counter('two')];
    one.add(1);
    two.add(2);
    await using server = await pageOf({ stats: store });
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(`${server.url}/stats?format=html&filter=^x`);
    await page.getByRole('columnheader', { name: 'Value' }).getByRole('button').click();
    await page.getByRole('button', { name: 'x.one' }).focus();
    assert.equal((await rowsOf(page, '.stats'))[0]![0], 'x.two');
    one.add(5);
    await page.waitForFunction(() => document.querySelector('.stats tbody tr')?.textContent?.startsWith('x.one'));
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'x.one');
  });

  it('says when its server does not answer, and goes on when it does', async () => {
    await using server = await pageOf();
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(server.url);
    await page.locator('.opener').waitFor();
    await page.route('**/page/overview*', (route) => route.abort());
    const outage = page.getByRole('alert');
    await outage.getByText(/^No answer for \d.*the page goes on by itself/).waitFor();
    await page.unroute('**/page/overview*');
    await page.getByText('live', { exact: true }).waitFor();
    await outage.waitFor({ state: 'hidden' });
  });
});

/** Runs in the page: texts that stand out from their ground by less than 4.5 to 1. */
function weakTexts(): string[] {
  const channels = (colour: string): number[] => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([red = 0, green = 0, blue = 0]: number[]): number => {
    const [r, g, b] = [red, green, blue].map((value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
    ) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (element: Element | null): number[] => {
    for (let at = element; at !== null; at = at.parentElement) {
      const ground = channels(getComputedStyle(at).backgroundColor);
      if (ground[3] !== 0) return ground;
    }
    return [255, 255, 255];
  };
  const weak: string[] = [];
  for (const element of document.querySelectorAll<HTMLElement>('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent!.trim() !== '');
    if (!hasText || element.offsetParent === null) continue;
    const [text, ground] = [luminance(channels(getComputedStyle(element).color)), luminance(groundOf(element))];
    const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    if (contrast < 4.5)
      weak.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)}: ${element.textContent}`);
  }
  return weak;
}
